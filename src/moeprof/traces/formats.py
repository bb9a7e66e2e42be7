"""Recognise a trace by its content: torch.profiler's JSON, exports of Nsight Systems, and reports that only nsys reads."""

from __future__ import annotations

import zlib
from enum import Enum
from pathlib import Path

#: Names that exports of Nsight Systems bear. They only tell which files of a folder to look at; the content decides.
SUFFIXES = (".sqlite", ".sqlite.gz", ".nsys-rep", ".qdstrm", ".parquet", ".arrow")
HINT = "give the traces that torch.profiler wrote (*.pt.trace.json.gz), or exports of Nsight Systems (*.sqlite)"
_HEAD = 64
_STEM_ENDS = (".sqlite.gz", ".sqlite", ".nsys-rep", ".qdstrm", "_pqtdir", "_arwdir")


class Format(Enum):
    """What the first bytes of a file say."""

    TORCH = "torch"  # anything else: the JSON reader knows what it is
    SQLITE = "sqlite"
    REPORT = "nsys-rep"
    STREAM = "qdstrm"
    TABLE = "table"  # one table of an export that is a folder


_MAGIC = (
    (b"SQLite format 3\0", Format.SQLITE),
    (b"NVIDIA Tegra Profiler Report", Format.REPORT),
    (b"NVIDIA Nsight Systems Report", Format.REPORT),
    (b"NVIDIA Nsight Systems Stream", Format.STREAM),
    (b"NVIDIA Tegra Profiler Stream", Format.STREAM),
    (b"PAR1", Format.TABLE),
    (b"ARROW1", Format.TABLE),
    (b"\xff\xff\xff\xff", Format.TABLE),  # how a stream of Arrow messages begins
)


def head(path: Path) -> bytes:
    """Return the first bytes of a file, inflated where it is gzip; none where it cannot be read."""
    try:
        with path.open("rb") as file:
            first = file.read(4096)
    except OSError:
        return b""
    if not first.startswith(b"\x1f\x8b"):
        return first[:_HEAD]
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(first, _HEAD)
    except zlib.error:
        return b""


def recognise(path: Path) -> Format:
    """Tell what a file is by its first bytes."""
    first = head(path)
    return next((known for magic, known in _MAGIC if first.startswith(magic)), Format.TORCH)


def stem(name: str) -> str:
    """Return a name without the ending that tells which export of a report it is.

    Example:
        >>> stem("rank0.sqlite.gz"), stem("rank0.nsys-rep"), stem("rank0_pqtdir")
        ('rank0', 'rank0', 'rank0')
    """
    return next((name.removesuffix(end) for end in _STEM_ENDS if name.endswith(end)), name)
