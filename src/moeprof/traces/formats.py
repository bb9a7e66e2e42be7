"""Recognise, by their first bytes, formats that are known and not read."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path

_NSYS = "Nsight Systems exports are not read yet"
_NSYS_HINT = "give the traces that torch.profiler wrote (*.pt.trace.json.gz)"


@dataclass(frozen=True, slots=True)
class KnownFormat:
    """A format by name, with the sentence for a person and what to do."""

    name: str
    message: str
    hint: str = _NSYS_HINT


_MAGIC = (
    (b"SQLite format 3\x00", KnownFormat("SQLite", f"an SQLite database; {_NSYS}")),
    (b"PAR1", KnownFormat("Parquet", f"a Parquet file; {_NSYS}")),
    (b"ARROW1", KnownFormat("Arrow", f"an Arrow file; {_NSYS}")),
    (b"\xff\xff\xff\xff", KnownFormat("Arrow", f"an Arrow stream; {_NSYS}")),
    (b"NVIDIA Tegra Profiler Report", KnownFormat("nsys-rep", f"an Nsight Systems report; {_NSYS}")),
    (b"NVIDIA Nsight Systems Stream", KnownFormat("qdstrm", f"an Nsight Systems stream; {_NSYS}")),
)
SUFFIXES = (".sqlite", ".sqlite.gz", ".nsys-rep", ".qdstrm", ".parquet", ".arrow")


def recognise(path: Path) -> KnownFormat | None:
    """Return the known format of a file (also inside gzip), or None."""
    try:
        with path.open("rb") as file:
            head = file.read(64)
        if head.startswith(b"\x1f\x8b"):
            with gzip.open(path) as inner:
                head = inner.read(64)
    except (OSError, EOFError, zlib.error):
        return None
    return next((known for magic, known in _MAGIC if head.startswith(magic)), None)
