"""Manifests and runs for the tests of the store."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from moeprof.store.folder import Store
from moeprof.store.manifest import Manifest
from moeprof.store.run import Run

START = datetime(2026, 11, 30, 20, 37, 30, tzinfo=UTC)


def manifest(arm: str = "mega", block: int = 1, **changes: object) -> Manifest:
    """Return a manifest with little in it."""
    values: dict[str, object] = {
        "arm": arm,
        "block": block,
        "started": "2026-11-30T20:37:30Z",
        "ended": "2026-11-30T20:40:00Z",
        **changes,
    }
    return Manifest(**values)  # type: ignore[arg-type]


def clock(*, step_s: int = 0) -> Callable[[], datetime]:
    """Return a clock that starts at START and advances by a step at every look."""
    looks = -1

    def now() -> datetime:
        nonlocal looks
        looks += 1
        return START + timedelta(seconds=step_s * looks)

    return now


def stored(store: Store, arm: str = "mega", block: int = 1, *, size: int = 10, **changes: object) -> Run:
    """Store a run with one trace of a size."""
    with store.begin(arm, block) as writer:
        (writer.path / "traces" / "rank0.json").write_bytes(b"x" * size)
        return writer.commit(manifest(arm, block, **changes))


def tree(root: Path) -> list[str]:
    """Return everything below a folder but for the lock, sorted."""
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))


def dead_pid() -> int:
    """Return the id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.DEVNULL)
    process.wait()
    return process.pid


def age(folder: Path, seconds: float) -> None:
    """Set the times of everything in a folder back."""
    for path in (folder, *folder.rglob("*")):
        moment = path.lstat().st_mtime - seconds
        os.utime(path, (moment, moment))
