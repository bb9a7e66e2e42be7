"""One writer per store: a lock that the system drops when its holder ends, however it ends."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from moeprof.errors import StoreLockedError
from moeprof.store import disk, redact

FILE = "lock"


@contextmanager
def exclusive(root: Path, *, command: Sequence[str] | None = None) -> Iterator[Path]:
    """Hold the store's lock; yields the lock file.

    Args:
        root: The store's folder; made where it is missing.
        command: Words that tell a second comer what runs; those of this process by default.

    Raises:
        StoreLockedError: When another process, or this one, holds it.
        StoreWriteError: When the lock file cannot be written.
    """
    path = root / FILE
    with disk.explained("lock the store", path):
        root.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        with disk.explained("lock the store", path):
            if not _take(handle):
                raise _refusal(path)
            _sign(handle, sys.argv if command is None else command)
        try:
            yield path
        finally:
            os.ftruncate(handle, 0)
            # A child caught between fork and exec still has the file open: closing alone would not free the lock.
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def _take(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def _sign(handle: int, command: Sequence[str]) -> None:
    words = shlex.join(redact.argv(list(command)))
    holder = {"pid": os.getpid(), "host": os.uname().nodename, "command": words}
    os.ftruncate(handle, 0)
    os.pwrite(handle, (json.dumps(holder, sort_keys=True) + "\n").encode(), 0)


def _refusal(path: Path) -> StoreLockedError:
    try:
        holder = json.loads(path.read_bytes())
        who = f"pid {holder['pid']} on {holder['host']}: {holder['command']}"
    except (OSError, ValueError, KeyError, TypeError):
        who = "its holder has not signed yet"
    return StoreLockedError(
        f"another moeprof writes to the store ({who})",
        path=str(path),
        hint="wait for it to end, or use another store with --store",
    )
