"""The part of a server's log that tells why it ended: the lines with errors near the end, and the end itself."""

from __future__ import annotations

import os
import re
from pathlib import Path

_BYTES = 512 * 1024
_WINDOW = 400  # lines looked at
_TELLING = 12
_TAIL = 15
_WIDTH = 400
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
_TELLS = re.compile(
    r"\w*(?:Error|Exception)\b|\braise\b|\bERROR\b|\bCRITICAL\b|\berror:|\bKilled\b|[Oo]ut of memory|Segmentation fault"
)
_CAUSE = re.compile(r"(?:\b[\w.]*(?:Error|Exception|Interrupt): \S|\berror: \S|[Oo]ut of memory|Segmentation fault).*")
_SECOND_HAND = re.compile(
    r"[Ss]ee root cause|initialization failed|Failed core proc|EngineDeadError|ERROR:\s+Application"
)
# A logger's line of a lesser level: the error that it mentions has not happened, or was met.
_LESSER = re.compile(r"^(?:\([^)]*\)\s*)?[\d:.,\s\[-]*(?:WARNING|WARN|INFO|DEBUG|TRACE)\b")


def tail(log: Path, lines: int) -> list[str]:
    """Return the last lines of a log, without colours and progress bars; empty if there is no log."""
    try:
        with log.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - _BYTES))
            text = stream.read().decode("utf-8", "replace")
    except OSError:
        return []
    cleaned = [_clean(line) for line in text.split("\n")]
    if cleaned and not cleaned[-1]:
        cleaned.pop()
    return cleaned[-lines:] if lines > 0 else []


def telling(log: Path) -> list[str]:
    """Return the telling lines near the end of a log and the end itself, in order; gaps show as ``...``."""
    lines = tail(log, _WINDOW)
    errors = [number for number, line in enumerate(lines) if _TELLS.search(line) and not _LESSER.match(line)]
    errors = errors[-_TELLING:]
    shown = sorted({*errors, *range(max(0, len(lines) - _TAIL), len(lines))})
    result: list[str] = []
    previous = -1
    for number in shown:
        if number != previous + 1:
            result.append("...")
        result.append(lines[number])
        previous = number
    return result


def cause(log: Path) -> str | None:
    """Return the last error that a log names, preferring those that do not merely point to another one; None without any."""
    lines = [line for line in tail(log, _WINDOW) if not _LESSER.match(line)]
    found = [match.group().strip() for line in lines if (match := _CAUSE.search(line))]
    own = [text for text in found if not _SECOND_HAND.search(text)]
    ranked = own or found
    return ranked[-1] if ranked else None


def _clean(line: str) -> str:
    last = line.rstrip("\r").rpartition("\r")[2]  # a progress bar overwrites its line
    return _ESCAPES.sub("", last).rstrip()[:_WIDTH]
