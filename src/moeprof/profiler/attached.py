"""A server that somebody else started: it must answer, and its traces are copied out of its own folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from moeprof.errors import NotReadyError, UsageError
from moeprof.profiler.fetch import fetch


@dataclass(frozen=True, slots=True)
class Attached:
    """A server that already runs.

    Attributes:
        address: Its base address, without a slash at the end.
        traces: Folder that its profiler writes to.
    """

    address: str
    traces: Path


def attach_to(url: str | None, traces: Path | None) -> Attached | None:
    """Return the server that the options name; None where they name none.

    Raises:
        UsageError: One is given without the other, or they cannot be used.
    """
    if url is None:
        if traces is not None:
            raise UsageError("--attach-traces is given without --attach", hint="add --attach http://127.0.0.1:8000")
        return None
    if not url.startswith("http://") or not url.removeprefix("http://").strip("/"):
        raise UsageError(f"--attach {url} is no address of a server", hint="for example --attach http://127.0.0.1:8000")
    if traces is None:
        raise UsageError(
            "--attach needs to know where the server writes its traces",
            hint="add --attach-traces DIR, the torch_profiler_dir of the server's --profiler-config",
        )
    if not traces.is_dir():
        raise UsageError(f"--attach-traces {traces} is no folder", hint="name the server's torch_profiler_dir")
    return Attached(url.rstrip("/"), traces.absolute())


def must_answer(health: str, limit_s: float) -> None:
    """Raise unless the server is there and ready.

    Raises:
        NotReadyError: It is not.
    """
    answer = fetch(health, limit_s)
    if answer.status != 200:
        raise NotReadyError(f"the server to attach to is not ready: {health} {answer.seen}", hint="start it first")


def take_over(source: Path, names: Iterable[str], target: Path) -> None:
    """Copy traces into the run; the server's own files stay where they are.

    Args:
        source: The server's folder.
        names: Files in it.
        target: The run's folder for traces.
    """
    for name in names:
        shutil.copyfile(source / name, target / Path(name).name)
