"""What the tests of the native reader share: the traces, and a way to read a text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from moeprof import _native
from tests.shared import shared


@pytest.fixture(scope="session")
def traces() -> Path:
    """Return the folder of shared traces, or skip."""
    return shared("traces")


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., _native.KinetoFile]:
    """Return a function that reads a text as if it were a file."""

    def read_text(
        text: str | bytes, *, recover: bool = False, skip_categories: tuple[str, ...] = ()
    ) -> _native.KinetoFile:
        path = tmp_path / "trace.json"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return _native.read_kineto(path, recover=recover, skip_categories=skip_categories)

    return read_text
