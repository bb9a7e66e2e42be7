"""Shared fixtures. Without the compiled reader the tests run on the plain one, and the header says so."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import moeprof
from tests.oracle import kineto as oracle
from tests.shared import shared

# The same examples in every run; HYPOTHESIS_PROFILE=search looks for new ones, many at random.
_SLOW = [HealthCheck.too_slow]
settings.register_profile("default", derandomize=True, max_examples=100, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("search", max_examples=2000, deadline=None, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

HAS_NATIVE = importlib.util.find_spec("moeprof._native") is not None
if not HAS_NATIVE:
    sys.modules["moeprof._native"] = oracle
    moeprof._native = oracle


# A background job is started with SIGINT ignored, and one of nohup with SIGHUP: tests of interruptions, and the programs they
# start, need both as a person at a terminal has them.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_report_header() -> str:
    """Say which reader the tests run on."""
    return "moeprof reader: " + ("native" if HAS_NATIVE else "NOT BUILT, the plain reader of the tests stands in")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out live tests unless the expression of ``-m`` names them: each starts servers for minutes."""
    if "live" in str(config.option.markexpr):
        return
    live = [item for item in items if item.get_closest_marker("live")]
    if live:
        config.hook.pytest_deselected(items=live)
        items[:] = [item for item in items if item not in live]


@pytest.fixture(scope="session")
def shared_traces() -> Path:
    """Return the folder of shared test traces; skip where it is absent."""
    return shared("traces")


@pytest.fixture
def plain_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the plain reader in the place of the native one."""
    monkeypatch.setattr("moeprof.traces.kineto._reader", lambda: oracle)
