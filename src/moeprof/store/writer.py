"""Write a run: under a temporary name, and renamed only when everything is on the disk."""

from __future__ import annotations

import errno
import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from moeprof.errors import UsageError
from moeprof.findings import JsonValue
from moeprof.store import disk, names, redact, texts
from moeprof.store.manifest import FILE, Manifest, file_entry
from moeprof.store.run import Run

FAILED_SCHEMA = "moeprof.failed/1"
FAILED_FILE = "failed.json"


class RunWriter:
    """A run that is being written; use it as a context manager.

    What leaves the ``with`` block without `commit` or `fail` is removed.

    Attributes:
        path: The temporary folder, with ``traces`` and ``bench`` in it.
        arm, block: What is being written.
        time: When it was begun, as in the run's name.
    """

    def __init__(self, root: Path, arm: str, block: int, time: str) -> None:
        self.arm = names.check_arm(arm)
        if block < 0:
            raise UsageError(f"block {block} is negative", hint="blocks count from 0")
        self.block = block
        self.time = time
        self._root = root
        self._known: tuple[str, ...] | None = None
        self._arm_folder = root / "runs" / arm
        self._open = True
        with disk.explained("make a folder for the run", self._arm_folder):
            self._arm_folder.mkdir(parents=True, exist_ok=True)
            self.path = _make_free(self._arm_folder / names.temporary_name(time, block))
            for inner in ("traces", "bench"):
                (self.path / inner).mkdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()

    def discard(self) -> None:
        """Remove what was written, unless it was committed or set aside."""
        if not self._open:
            return
        self._open = False
        with disk.explained("remove an unfinished run", self.path):
            if self.path.exists():
                disk.remove_tree(self.path)
            self._tidy()

    def hide(self, known: Collection[str]) -> None:
        """Take secrets out of the run's texts, too, when it is stored or set aside: of what a server or client wrote.

        The manifest then counts them under ``redactions``.

        Args:
            known: Secrets that are known, as `redact.secrets` finds them; others are found by name and by look.
        """
        self._known = tuple(known)

    def commit(self, manifest: Manifest) -> Run:
        """Make the folder a run: digests, files to the disk, manifest last, then the name.

        Secrets are taken out of the manifest; files that it does not list are added to its list.

        Args:
            manifest: What the run says; its arm and block must be the writer's.

        Raises:
            StoreWriteError: When the disk is full or does not allow it; the folder stays open then.
        """
        self._check(manifest)
        with disk.explained("store the run", self.path):
            stored = self._write_manifest(manifest)
            disk.sync_tree(self.path)
            final = _rename_free(self.path, self._arm_folder / f"{self.time}-{self.block}")
            self._open = False
            disk.sync(self._arm_folder)
        return Run(final, stored)

    def fail(self, reason: str, manifest: Manifest | None = None) -> Path:
        """Set the folder aside under ``failed``, for a person to look at, and return where it is.

        Args:
            reason: Why the block failed, in a sentence; secrets are taken out.
            manifest: What is known about the run so far; stored with outcome ``failed``.

        Raises:
            StoreWriteError: When the disk is full or does not allow it; the folder stays open then.
        """
        known = (*(self._known or ()), *(() if manifest is None else redact.secrets(manifest.env)))
        clean = redact.text(reason, known=known)
        note = {"schema": FAILED_SCHEMA, "arm": self.arm, "block": self.block, "time": self.time, "reason": clean}
        folder = self._root / "failed"
        with disk.explained("set the failed run aside", self.path):
            folder.mkdir(parents=True, exist_ok=True)
            if manifest is not None:
                self._check(manifest)
                self._write_manifest(replace(manifest, outcome="failed", reason=clean))
            elif self._known is not None:
                texts.clean_texts(self.path, self._known)
            disk.write_synced(self.path / FAILED_FILE, json.dumps(note, indent=2, sort_keys=True) + "\n")
            final = _rename_free(self.path, folder / f"{self.arm}-{self.time}")
            self._open = False
            disk.sync(folder)
            self._tidy()
        return final

    def _check(self, manifest: Manifest) -> None:
        if not self._open:
            raise UsageError("the run was already stored or set aside")
        if (manifest.arm, manifest.block) != (self.arm, self.block):
            raise UsageError(
                f"the manifest is of {manifest.arm} block {manifest.block}, the run of {self.arm} block {self.block}"
            )

    def _write_manifest(self, manifest: Manifest) -> Manifest:
        if self._known is not None:
            found: dict[str, JsonValue] = {**texts.clean_texts(self.path, self._known)}
            manifest = replace(manifest, extra={**manifest.extra, "redactions": found})
        files = dict(manifest.files)
        for path in disk.files_below(self.path):
            name = path.relative_to(self.path).as_posix()
            if name != FILE and name not in files:
                files[name] = file_entry(path)
        stored = replace(manifest, files=files).redacted(known=self._known or ())
        text = stored.to_json()
        disk.sync_tree(self.path)
        disk.write_synced(self.path / FILE, text)
        return stored

    def _tidy(self) -> None:
        """Remove the arm's folder where nothing is left in it."""
        try:
            self._arm_folder.rmdir()
        except OSError:
            pass  # not empty, or gone: both are fine


def _make_free(path: Path) -> Path:
    number = 1
    while True:
        folder = path.with_name(names.with_suffix(path.name, number))
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


def _rename_free(source: Path, target: Path) -> Path:
    """Rename to the first name that is free, and return it."""
    number = 1
    while True:
        final = target.with_name(names.with_suffix(target.name, number))
        try:
            if not final.is_symlink() and not final.exists():
                source.rename(final)
                return final
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):  # taken in between
                raise
        number += 1
