"""The large traces beside the project: tests that use them skip, with the reason, where they are absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def shared_root() -> Path:
    """Return where the large traces are, if they are there at all."""
    return Path(os.environ.get("MOEPROF_SHARED", ROOT.parent / "shared"))


def shared(*parts: str) -> Path:
    """Return a path below the shared folder (``MOEPROF_SHARED``, else ``../shared``), or skip the test."""
    root = shared_root()
    path = root.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"needs the full traces: {path.relative_to(root)} is not there (set MOEPROF_SHARED)")
    return path
