"""The store: `runs/<arm>/<UTC time>-<block>/`, one folder per run, complete or absent."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from moeprof.errors import InputNotFoundError, MoeprofError, UsageError
from moeprof.store import disk, names
from moeprof.store.manifest import FILE, Manifest
from moeprof.store.run import Run
from moeprof.store.writer import FAILED_FILE, RunWriter

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Broken:
    """A folder that has a manifest which cannot be read."""

    path: Path
    message: str


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A folder of a block that failed, set aside.

    Attributes:
        path: The folder.
        arm, block, time, reason: From its note; None where there is none.
    """

    path: Path
    arm: str | None
    block: int | None
    time: str | None
    reason: str | None

    @property
    def name(self) -> str:
        """Return its identity: ``failed/mega-20261130T203730Z``."""
        return f"failed/{self.path.name}"


def _now() -> datetime:
    return datetime.now(UTC)


class Store:
    """The runs below a folder.

    Args:
        root: The store's folder (``.moeprof``); it need not exist.
        clock: Tells the time that runs are named after.
    """

    def __init__(self, root: Path, *, clock: Callable[[], datetime] = _now) -> None:
        self.root = root
        self._clock = clock

    def begin(self, arm: str, block: int) -> RunWriter:
        """Return a writer for a new run.

        Raises:
            UsageError: When the arm's name cannot be a folder's.
            StoreWriteError: When no folder can be made.
        """
        return RunWriter(self.root, arm, block, names.stamp(self._clock()))

    def arms(self) -> list[str]:
        """Return the names of the arms that have a folder, sorted."""
        return [folder.name for folder in _folders(self.root / "runs") if not folder.name.startswith(".")]

    def scan(self, arm: str | None = None) -> tuple[list[Run], list[Broken]]:
        """Return the runs, oldest first, and the folders whose manifest cannot be read.

        Args:
            arm: Only this arm's; None: all.

        Raises:
            UsageError: When the arm's name cannot be a folder's.
        """
        runs: list[Run] = []
        broken: list[Broken] = []
        for name in self.arms() if arm is None else [names.check_arm(arm)]:
            for folder in _folders(self.root / "runs" / name):
                if names.run_key(folder.name) is None or not (folder / FILE).is_file():
                    continue
                try:
                    runs.append(Run(folder, Manifest.read(folder / FILE)))
                except MoeprofError as error:
                    broken.append(Broken(folder, error.message))
        return sorted(runs, key=_order), broken

    def runs(self, arm: str | None = None) -> list[Run]:
        """Return the runs that can be read, oldest first, of an arm or of all."""
        return self.scan(arm)[0]

    def newest(self, arm: str, *, traced: bool = False) -> Run | None:
        """Return the newest run of an arm whose outcome is complete; None where there is none.

        Args:
            arm: The arm.
            traced: Only a run that holds traces; results alone may have been ingested later.
        """
        complete = [run for run in self.runs(arm) if run.manifest.outcome == "complete"]
        return next((run for run in reversed(complete) if not traced or run.has_traces), None)

    def find(self, name: str) -> Run:
        """Return the run of a name ``arm/time-block``; an arm's name alone stands for its newest run with traces, else its newest.

        Raises:
            InputNotFoundError: When there is none.
            UnsupportedFormatError, ManifestError: When its manifest cannot be read.
        """
        arm, slash, rest = name.strip("/").partition("/")
        names.check_arm(arm)
        if not slash:
            run = self.newest(arm, traced=True) or self.newest(arm)
            if run is None:
                raise InputNotFoundError(
                    f"no complete run of arm {arm} is stored",
                    path=str(self.root),
                    hint="moeprof runs list shows what is there",
                )
            return run
        folder = self.root / "runs" / arm / rest
        if names.run_key(rest) is None or folder.is_symlink() or not (folder / FILE).is_file():
            raise InputNotFoundError(
                f"no run {name} is stored", path=str(self.root), hint="moeprof runs list shows what is there"
            )
        return Run(folder, Manifest.read(folder / FILE))

    def failed(self) -> list[FailedRun]:
        """Return the blocks that failed and were set aside, oldest first."""
        found = [_failed(folder) for folder in _folders(self.root / "failed")]
        return sorted(found, key=lambda item: (item.time or "", item.path.name))

    def remove(self, run: Run | FailedRun | Broken) -> int:
        """Remove a run, or what is left of one, and return the bytes freed.

        Raises:
            UsageError: When it does not lie in this store, or a link leads to it.
            StoreWriteError: When it cannot be removed.
        """
        folder = self._own(run.path)
        with disk.explained("remove the run", folder):
            # Under its new name it is nobody's run, whatever interrupts the removal.
            gone = folder.with_name(names.temporary_name(names.stamp(self._clock()), 0) + f"-{time.time_ns()}")
            folder.rename(gone)
            freed = disk.remove_tree(gone)
        if folder.parent.parent == self.root / "runs" and not any(folder.parent.iterdir()):
            folder.parent.rmdir()
        return freed

    def leftovers(self) -> list[Path]:
        """Return the temporary folders whose writer is gone, or that nobody has touched for a day."""
        places = [*(self.root / "runs" / arm for arm in self.arms()), self.root / "failed"]
        found = [folder for place in places for folder in _folders(place) if _is_left(folder)]
        return sorted(found)

    def sweep(self) -> list[Path]:
        """Remove the leftovers of writers that are gone, and return what was removed.

        Raises:
            StoreWriteError: When one cannot be removed.
        """
        left = self.leftovers()
        for folder in left:
            with disk.explained("remove a leftover", folder):
                disk.remove_tree(folder)
        return left

    def _own(self, path: Path) -> Path:
        relative = path.relative_to(self.root).parts if path.is_relative_to(self.root) else ()
        places = {"runs": 3, "failed": 2}
        good = len(relative) == places.get(relative[0] if relative else "") and ".." not in relative
        steps = [self.root.joinpath(*relative[: depth + 1]) for depth in range(len(relative))]
        if not good or any(step.is_symlink() for step in steps):
            raise UsageError(f"{path} is no run of the store {self.root}; nothing was removed")
        if not path.is_dir():
            raise InputNotFoundError("no such run", path=str(path))
        return path


def _order(run: Run) -> tuple[names.RunKey, str]:
    key = names.run_key(run.path.name)
    assert key is not None  # scan takes no other folders
    return key, run.path.parent.name


def _folders(place: Path) -> list[Path]:
    """Return the real folders in a place, sorted; links are passed over, as nothing may be removed through one."""
    try:
        with os.scandir(place) as entries:
            found = [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise InputNotFoundError(f"cannot read the store: {error.strerror}", path=str(place)) from error
    return sorted(found)


def _failed(folder: Path) -> FailedRun:
    try:
        note = json.loads((folder / FAILED_FILE).read_bytes())
    except (OSError, ValueError):
        note = None
    if not isinstance(note, dict):
        return FailedRun(folder, None, None, None, None)
    block = note.get("block")
    texts = {name: item if isinstance(item := note.get(name), str) else None for name in ("arm", "time", "reason")}
    return FailedRun(folder, texts["arm"], block if type(block) is int else None, texts["time"], texts["reason"])


def _is_left(folder: Path) -> bool:
    pid = names.writer_pid(folder.name)
    if pid is None or pid == os.getpid():
        return False
    return not _alive(pid) or time.time() - _touched(folder) > _DAY_S


def _touched(folder: Path) -> float:
    """Return when anything in a folder was last written: a block may run for longer than a day."""
    latest = 0.0
    for root, _, found in os.walk(folder):
        for path in (root, *(os.path.join(root, name) for name in found)):  # noqa: PTH118
            try:
                latest = max(latest, os.lstat(path).st_mtime)
            except FileNotFoundError:
                continue
    return latest


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
