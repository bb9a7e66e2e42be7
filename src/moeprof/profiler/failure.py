"""What becomes of a block that failed: its folder is set aside, and the error says where, without secrets."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from moeprof.errors import MoeprofError, StoreWriteError
from moeprof.store import redact
from moeprof.store.manifest import Manifest
from moeprof.store.writer import RunWriter

_LARGE = ("events", "traces", "bench")
_LOG = 8 * 1024
_ROOM = 1024 * 1024


def redact_error(error: Exception, secrets: Collection[str]) -> None:
    """Take secrets out of everything that an error will show.

    Args:
        error: Changed in place.
        secrets: Those that are known.
    """
    if isinstance(error, MoeprofError):
        error.message = redact.text(error.message, known=secrets)
        error.hint = None if error.hint is None else redact.text(error.hint, known=secrets)
    notes = getattr(error, "__notes__", [])
    notes[:] = [redact.text(note, known=secrets) for note in notes]


def set_aside(writer: RunWriter, manifest: Callable[[], Manifest], error: Exception) -> None:
    """Move the folder to those of failed blocks, and make the error say where it is; never raises for a reason of its own.

    On a full disk traces, tables and results give way, at last all but the log's end, so that it and the reason are kept.

    Args:
        writer: Of the run.
        manifest: Gives what is known of the run.
        error: Changed in place.
    """
    full = _is_full(writer.path)
    reason = error.message if isinstance(error, MoeprofError) else f"internal error: {type(error).__name__}: {error}"
    if full:
        _make_room(writer.path)
    source = writer.path
    try:
        try:
            folder = writer.fail(reason, manifest())
        except (StoreWriteError, OSError):
            _make_room(source)
            _keep_end(source / "server.log")
            folder = writer.fail(reason)
    except (MoeprofError, OSError) as refused:
        told = refused.message if isinstance(refused, MoeprofError) else str(refused)
        error.add_note(f"what the block left could not be kept: {told}")
        moved(error, source, None)
        return
    moved(error, source, folder)
    if isinstance(error, MoeprofError):
        hints = [f"look at {folder}", error.hint, "the disk was full" if full else None]
        error.hint = "; ".join(hint for hint in hints if hint)
    else:
        error.add_note(f"what the block left lies in {folder}")


def interrupted(writer: RunWriter, ended: BaseException, *, keep: bool) -> None:
    """Make an interrupt say that nothing was stored, and where what the block left is; never raises for a reason of its own.

    Nothing is asked of the machine any more (no manifest): who ended us may not wait for long.

    Args:
        writer: Of the run.
        ended: The interrupt; gets a note.
        keep: Whether something was begun that a person may want to look at.
    """
    said = "nothing was stored"
    if keep:
        with contextlib.suppress(MoeprofError, OSError):
            folder = writer.fail(f"the block was interrupted ({str(ended) or 'Ctrl-C'})")
            said = f"{said}; what the block left lies in {folder}"
    ended.add_note(said)


def moved(error: Exception, source: Path, target: Path | None) -> None:
    """Correct the place that an error names after the folder was moved; without a target there is none any more.

    Args:
        error: Changed in place.
        source: Where the folder was.
        target: Where it is; None: gone.
    """
    if not isinstance(error, MoeprofError) or error.path is None:
        return
    for name in (str(source), str(source.absolute())):
        if error.path.startswith(name):
            error.path = None if target is None else str(target) + error.path[len(name) :]
            return


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < _ROOM
    except OSError:
        return False


def _make_room(folder: Path) -> None:
    for name in _LARGE:
        shutil.rmtree(folder / name, ignore_errors=True)


def _keep_end(log: Path) -> None:
    with contextlib.suppress(OSError), log.open("r+b") as file:
        file.seek(max(0, log.stat().st_size - _LOG))
        end = file.read()
        file.seek(0)
        file.write(end)
        file.truncate()
