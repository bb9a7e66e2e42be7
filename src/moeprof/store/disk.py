"""Files and folders that survive a crash, and what the system's refusals mean for a person."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moeprof.errors import StoreWriteError

_REASONS = {
    errno.ENOSPC: ("the disk is full", "free some space, for example with: moeprof runs prune --keep 3 --dry-run"),
    errno.EDQUOT: (
        "the disk quota is used up",
        "free some space, for example with: moeprof runs prune --keep 3 --dry-run",
    ),
    errno.EACCES: ("permission denied", "make the folder writable, or name another with --store"),
    errno.EPERM: ("permission denied", "make the folder writable, or name another with --store"),
    errno.EROFS: ("the file system is read-only", "name another folder with --store"),
    errno.ENOTDIR: ("a file stands where a folder belongs", "move it away, or name another folder with --store"),
    errno.EEXIST: ("a file stands where a folder belongs", "move it away, or name another folder with --store"),
}


@contextmanager
def explained(what: str, path: Path) -> Iterator[None]:
    """Turn a refusal of the system into a sentence.

    Args:
        what: What was being done: "store the run".
        path: Where, unless the system names a file.

    Raises:
        StoreWriteError: In the place of an OSError.
    """
    try:
        yield
    except OSError as error:
        reason, hint = _REASONS.get(error.errno or 0, (error.strerror or str(error), None))
        where = error.filename if isinstance(error.filename, str) else str(path)
        raise StoreWriteError(f"cannot {what}: {reason}", path=where, hint=hint) from error


def write_synced(path: Path, text: str) -> None:
    """Write a file under a temporary name, force it to the disk, and rename it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Force a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems know no sync of a folder
            raise
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Force every file and folder below a folder to the disk, and the folder itself last."""
    for path in files_below(folder):
        sync(path)
    for inner in sorted((Path(root) for root, _, _ in os.walk(folder)), reverse=True):
        sync(inner)


def files_below(folder: Path) -> list[Path]:
    """Return the plain files below a folder, sorted; links are left alone."""
    found = [Path(root) / name for root, _, names in os.walk(folder) for name in names]
    return sorted(path for path in found if path.is_file() and not path.is_symlink())


def size_below(folder: Path) -> int:
    """Return the bytes of all files below a folder; files that vanish meanwhile count nothing."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(root, name)).st_size  # noqa: PTH118 - a hot loop over plain strings
            except FileNotFoundError:
                continue
    return total


def remove_tree(folder: Path) -> int:
    """Remove a folder and return the bytes freed; a link is never followed."""
    if folder.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, "a link, not a folder", str(folder))
    freed = size_below(folder)
    shutil.rmtree(folder)
    return freed
