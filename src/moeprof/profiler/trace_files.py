"""The trace files that a server leaves after a window: one per rank, waited for, and complete to the last byte."""

from __future__ import annotations

import gzip
import re
import time
import zlib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import IO, cast

from moeprof.errors import WindowFailedError

_NAME = re.compile(r"(?P<rank>.+?)(?:\.\d{10,})?\.pt\.trace\.json(?:\.gz)?(?P<tmp>\.tmp)?$")
_LOOK_S = 0.25
_SETTLE_S = 15.0
_BLOCK = 1024 * 1024
_TAIL = 64 * 1024
_END = b"Record Window End"
_Seen = tuple[tuple[Path, int, int], ...]


def trace_files(folder: Path) -> list[Path]:
    """Return the workers' trace files in a folder, unfinished ones too; the front end's own is left out.

    Args:
        folder: Where the profiler writes; it need not exist.
    """
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in found if _NAME.match(path.name) and ".async_llm." not in path.name]


def rank_of(path: Path) -> str:
    """Return the rank that a file's name says, all of what stands before the time.

    >>> rank_of(Path("dp1_pp0_tp0_dcp0_ep1_rank0.1796074479206590682.pt.trace.json.gz"))
    'dp1_pp0_tp0_dcp0_ep1_rank0'
    """
    match = _NAME.match(path.name)
    return match["rank"] if match else path.name


def is_complete(path: Path) -> bool:
    """Return whether a trace ends as the profiler ends it; the file is read once, in blocks.

    Args:
        path: Plain or gzip.
    """
    tail = b""
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if zipped else raw
            while block := stream.read(_BLOCK):
                tail = (tail + block)[-_TAIL:]
    except (OSError, EOFError, zlib.error):  # BadGzipFile is an OSError
        return False
    _, found, after = tail.rpartition(_END)
    return (
        bool(found) and b"]" in after and after.rstrip().endswith(b"}")
    )  # the list of events is closed, then the object


def await_traces(
    folder: Path,
    *,
    before: Collection[Path],
    ranks: int | None,
    min_bytes: int,
    limit_s: float,
    check: Callable[[], None],
    settle_s: float = _SETTLE_S,
) -> tuple[Path, ...]:
    """Wait until every rank's file is there, no longer grows, and is complete.

    Args:
        folder: Where the profiler writes.
        before: Files that were there before the window.
        ranks: How many ranks write; None: unknown, one at least.
        min_bytes: A smaller file holds nothing.
        limit_s: How long to wait.
        check: Called at each look; raises when waiting has no sense any more.
        settle_s: A file that did not change for so long will not change again.

    Returns:
        The files, ordered by rank.

    Raises:
        WindowFailedError: No file, not all ranks, two files of one rank, a tiny or a cut one.
    """
    began = changed = time.monotonic()
    seen: _Seen = ()
    cut: list[Path] | None = None  # None: not read since the last change
    while True:
        check()
        now = time.monotonic()
        late = now - began >= limit_s
        look = _look(folder, before)
        if look != seen:
            seen, changed, cut = look, now, None
        paths = tuple(path for path, _, _ in seen)
        quiet_s = now - changed
        if paths and quiet_s >= _LOOK_S and not _unfinished(paths) and len(paths) >= (ranks or 1):
            if cut is None:
                cut = [path for path in paths if not is_complete(path)]
            if not cut:
                return _accept(folder, seen, ranks, min_bytes)
            if late or quiet_s >= settle_s:
                raise WindowFailedError(
                    f"the trace {cut[0].name} ends in the middle", path=str(cut[0]), hint="look at the server's log"
                )
        if late:
            raise _missing(folder, paths, ranks, limit_s)
        time.sleep(_LOOK_S)


def _look(folder: Path, before: Collection[Path]) -> _Seen:
    found = []
    for path in trace_files(folder):
        if path not in before:
            try:
                status = path.stat()
            except FileNotFoundError:  # renamed between two looks
                continue
            found.append((path, status.st_size, status.st_mtime_ns))
    return tuple(found)


def _unfinished(paths: tuple[Path, ...]) -> list[Path]:
    return [path for path in paths if path.name.endswith(".tmp")]


def _accept(folder: Path, seen: _Seen, ranks: int | None, min_bytes: int) -> tuple[Path, ...]:
    names = [rank_of(path) for path, _, _ in seen]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise WindowFailedError(f"rank {double} left two traces in one window", path=str(folder))
    if ranks is not None and len(seen) > ranks:
        raise WindowFailedError(f"{len(seen)} ranks left a trace, and {ranks} were expected", path=str(folder))
    for path, size, _ in seen:
        if size < min_bytes:
            raise WindowFailedError(
                f"the trace {path.name} has {size} bytes, so little that nothing can be in it (at least {min_bytes})",
                path=str(path),
                hint="the window was open while nothing ran; window.min_bytes is the limit",
            )
    return tuple(path for path, _, _ in sorted(seen, key=lambda item: rank_of(item[0])))


def _missing(folder: Path, paths: tuple[Path, ...], ranks: int | None, limit_s: float) -> WindowFailedError:
    unfinished = _unfinished(paths)
    if not paths:
        text = f"no trace appeared within {limit_s:g} s after the window"
    elif unfinished:
        text = f"the trace {unfinished[0].name} was not finished within {limit_s:g} s"
    elif ranks is not None and len(paths) < ranks:
        text = f"{len(paths)} of {ranks} ranks left a trace within {limit_s:g} s: {', '.join(map(rank_of, paths))}"
    else:
        text = f"the traces still changed after {limit_s:g} s"
    return WindowFailedError(text, path=str(folder), hint="window.traces_s is the limit; the server's log may say more")
