"""Take secrets out of the text files of a run before it is stored: the server's log, and what load clients wrote.

Files are read a line at a time, so that their size does not matter; one without secrets is left byte for byte as it was.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO

from moeprof.findings import JsonValue
from moeprof.store import disk, redact

_SUFFIXES = (".log", ".txt", ".json", ".jsonl", ".csv", ".err", ".out")
_LEFT = ("traces", "events", "eval")  # large, and made of names of operators; or not ours
_LINE = 1024 * 1024
_SMALL = 1024 * 1024
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_KEY_ENDS = re.compile(r"-----END [A-Z ]*PRIVATE KEY-----")


def clean_texts(folder: Path, known: Collection[str]) -> dict[str, int]:
    """Take secrets out of the texts of a run folder.

    Args:
        folder: Of the run; its traces and tables are left alone.
        known: Secrets that are known, as `redact.secrets` finds them.

    Returns:
        File, relative to the folder, to how many were taken out; files without any are left out.

    Raises:
        OSError: A file cannot be written.
    """
    found = {}
    for path in disk.files_below(folder):
        parts = path.relative_to(folder).parts
        if path.suffix in _SUFFIXES and not (len(parts) > 1 and parts[0] in _LEFT):
            count = clean_file(path, known)
            if count:
                found["/".join(parts)] = count
    return found


def clean_file(path: Path, known: Collection[str]) -> int:
    """Take secrets out of one file and return how many there were; a JSON file stays one.

    Args:
        path: The file; it is replaced where it held any.
        known: Secrets that are known.
    """
    if path.suffix == ".json":
        count = _clean_json(path, known)
        if count is not None:
            return count
    if path.stat().st_size <= _SMALL:  # in place: a full disk has room for what is there already
        lines = list(_cleaned(path, known))
        count = sum(number for _, number in lines)
        if count:
            path.write_bytes(b"".join(line for line, _ in lines))
        return count
    count = 0
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            for line, number in _cleaned(path, known):
                file.write(line)
                count += number
        if count:
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return count


def _clean_json(path: Path, known: Collection[str]) -> int | None:
    """Return how many were taken out; None where the file is no JSON."""
    try:
        value: JsonValue = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    clean = redact.value(value, known=known)
    before, after = (json.dumps(item, ensure_ascii=False) for item in (value, clean))
    if before == after:
        return 0
    path.write_text(after + "\n", encoding="utf-8", errors="surrogateescape")
    return max(1, after.count(redact.REDACTED) - before.count(redact.REDACTED))


def _cleaned(path: Path, known: Collection[str]) -> Iterator[tuple[bytes, int]]:
    """Give each line without secrets, and how many were in it."""
    inside = False  # a private key, whose lines look like nothing
    with path.open("rb") as file:
        for raw in _lines(file):
            line = raw.decode("utf-8", "surrogateescape")
            if inside:
                inside = _KEY_ENDS.search(line) is None
                yield b"", 0
                continue
            inside = _KEY_BEGINS.search(line) is not None and _KEY_ENDS.search(line) is None
            body = line.rstrip("\r\n")
            clean = redact.text(body, known=known)
            if clean == body:
                yield raw, 0
                continue
            count = max(1, clean.count(redact.REDACTED) - body.count(redact.REDACTED))
            yield (clean + line[len(body) :]).encode("utf-8", "surrogateescape"), count


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    while line := file.readline(_LINE):
        yield line
