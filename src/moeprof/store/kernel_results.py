"""Hardware metrics of an arm's kernels in the store: ``kernels/<arm>/<UTC time>.json``, newest last."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from moeprof.errors import ManifestError, StoreWriteError
from moeprof.findings import JsonValue
from moeprof.store.names import check_arm

_FOLDER = "kernels"


def keep(root: Path, arm: str, result: dict[str, JsonValue]) -> Path:
    """Write an arm's result as a whole and return the file.

    Raises:
        StoreWriteError: It cannot be written.
    """
    folder = root / _FOLDER / check_arm(arm)
    file = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}.json"
    part = file.with_suffix(".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with part.open("w", encoding="utf-8") as opened:
            opened.write(json.dumps(result, indent=1, sort_keys=True, allow_nan=False) + "\n")
            opened.flush()
            os.fsync(opened.fileno())
        part.rename(file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StoreWriteError(
            f"the kernels' metrics cannot be kept: {error.strerror or error}", path=str(file)
        ) from error
    return file


def newest(root: Path, arm: str) -> dict[str, JsonValue] | None:
    """Return an arm's newest result, or None.

    Raises:
        ManifestError: The file is damaged.
    """
    files = sorted((root / _FOLDER / arm).glob("*.json"))
    if not files:
        return None
    try:
        value = json.loads(files[-1].read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ManifestError(f"the kernels' metrics cannot be read: {error}", path=str(files[-1])) from error
    if not isinstance(value, dict) or value.get("schema") != "moeprof.kernels/1":
        raise ManifestError("no metrics of kernels of this version", path=str(files[-1]))
    return value
