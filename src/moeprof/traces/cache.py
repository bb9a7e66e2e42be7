"""The tables of files that were read before: one entry a file, checked as a whole before a byte of it is believed.

An entry is the SHA-256 of the rest, the length of a JSON header, the header, and the tables as Parquet (zstd) one after another.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from moeprof.findings import Finding
from moeprof.traces.metadata import metadata
from moeprof.traces.parquet import TABLES
from moeprof.traces.trace import RankTrace

SCHEMA = "moeprof.cache/1"
#: Beyond it the entries written first are removed.
LIMIT_BYTES = 4 * 2**30
_DIGEST_BYTES, _LENGTH_BYTES = 32, 8


def through(file: Path, options: Sequence[object], read: Callable[[], list[RankTrace]]) -> list[RankTrace]:
    """Return the ranks of a file from its entry, else read them and store one.

    Without ``MOEPROF_CACHE`` nothing is looked up or stored. A folder that cannot be read or written is as good as none.

    Args:
        file: A regular file.
        options: All that the result depends on beside the content of the file.
        read: Reads the file.
    """
    chosen = os.environ.get("MOEPROF_CACHE")
    if not chosen or not file.is_file():  # hashing would drain a pipe
        return read()
    try:
        before = file.stat()
        entry = Path(chosen) / "traces" / _key(file, options)
    except OSError:
        return read()
    if (stored := _load(entry)) is not None:
        return stored
    found = read()
    try:
        after = file.stat()
        if (before.st_size, before.st_mtime_ns, before.st_ino) == (after.st_size, after.st_mtime_ns, after.st_ino):
            _store(entry, found)
    except OSError:
        pass
    return found


def _key(file: Path, options: Sequence[object]) -> str:
    """Hash the content, the options, and the code that reads: an entry of another reader has another name."""
    with file.open("rb") as stream:
        content = hashlib.file_digest(stream, "sha256").hexdigest()
    native = import_module("moeprof._native").__file__
    sources = [*sorted(Path(__file__).parent.glob("*.py")), *([Path(native)] if native else [])]
    code = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in sources]
    told = repr((SCHEMA, pl.__version__, code, content, str(file), *options))
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def _load(entry: Path) -> list[RankTrace] | None:
    """Return what an entry holds; None where there is none or it is damaged."""
    try:
        data = entry.read_bytes()
    except OSError:
        return None
    body = memoryview(data)[_DIGEST_BYTES:]
    if len(body) < _LENGTH_BYTES or hashlib.sha256(body).digest() != data[:_DIGEST_BYTES]:
        return None
    try:
        return _decode(body)
    except (KeyError, TypeError, ValueError, RecursionError, pl.exceptions.PolarsError):
        return None


def _decode(body: memoryview) -> list[RankTrace]:
    start = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "little")
    ranks = []
    for told in json.loads(bytes(body[_LENGTH_BYTES:start])):
        tables: dict[str, Any] = {}
        for name, size in zip(TABLES, told.pop("sizes"), strict=True):
            tables[name] = pl.read_parquet(io.BytesIO(body[start : start + size]))
            start += size
        findings = tuple(Finding(**finding) for finding in told.pop("findings"))
        ranks.append(RankTrace(**told.pop("rank"), **tables, metadata=metadata(told["raw"]), findings=findings))
    return ranks


def _encode(ranks: Sequence[RankTrace]) -> bytes:
    header, blobs = [], []
    for rank in ranks:
        tables = []
        for name in TABLES:
            blob = io.BytesIO()
            getattr(rank, name).write_parquet(blob, compression="zstd")
            tables.append(blob.getvalue())
        fields = {"key": rank.key, "source": rank.source, "partial": rank.partial}
        header.append(
            {
                "rank": {**fields, "event_counts": dict(rank.event_counts)},
                "raw": dict(rank.metadata.raw),
                "findings": [asdict(finding) for finding in rank.findings],
                "sizes": [len(table) for table in tables],
            }
        )
        blobs += tables
    text = json.dumps(header).encode()
    return b"".join([len(text).to_bytes(_LENGTH_BYTES, "little"), text, *blobs])


def same(one: RankTrace, other: RankTrace) -> bool:
    """Say whether two ranks are equal in every table, type and field."""
    for name in TABLES:
        left, right = getattr(one, name), getattr(other, name)
        if left.schema != right.schema or not left.equals(right):
            return False
    names = ("key", "source", "metadata", "event_counts", "findings", "partial")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _store(entry: Path, ranks: Sequence[RankTrace]) -> None:
    """Write an entry beside its name and rename it; what would not come back exactly is not stored."""
    try:
        body = _encode(ranks)
        back = _decode(memoryview(body))
    except (TypeError, ValueError, RecursionError, pl.exceptions.PolarsError):
        return
    if not all(same(*pair) for pair in zip(ranks, back, strict=True)):
        return
    entry.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, temporary = tempfile.mkstemp(dir=entry.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(hashlib.sha256(body).digest())
            stream.write(body)
        Path(temporary).replace(entry)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
    _bound(entry.parent)


def _bound(folder: Path) -> None:
    """Remove the entries written first until the rest fits."""
    entries = sorted((s.st_mtime_ns, path.name, s.st_size, path) for path in folder.iterdir() for s in (path.stat(),))
    total = sum(size for _, _, size, _ in entries)
    for _, _, size, path in entries:
        if total <= LIMIT_BYTES:
            return
        path.unlink(missing_ok=True)
        total -= size
