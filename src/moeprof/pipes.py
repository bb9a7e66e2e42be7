"""Named pipes among the inputs: opening one waits for a writer, for ever where there is none."""

from __future__ import annotations

import os
import stat

from moeprof.errors import InputNotFoundError


def is_pipe(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path names a pipe in the file system; what a shell has opened already (``/dev/stdin``) is none."""
    try:
        return stat.S_ISFIFO(os.stat(os.path.realpath(path)).st_mode)  # noqa: PTH116
    except (OSError, ValueError):
        return False


def refuse_pipe(path: str | os.PathLike[str]) -> None:
    """Refuse an input that is a named pipe.

    Raises:
        InputNotFoundError: It is one.
    """
    if is_pipe(path):
        raise InputNotFoundError(
            "a named pipe, not a file", path=os.fspath(path), hint="write what it gives to a file, and name that"
        )
