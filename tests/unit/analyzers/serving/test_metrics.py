"""The registry: directions are declared, never guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from moeprof.analyzers.serving.metrics import load_metrics
from moeprof.errors import InputNotFoundError, MetricsError


def load(tmp_path: Path, text: str) -> object:
    (tmp_path / "m.toml").write_text(text)
    return load_metrics(tmp_path / "m.toml")


def test_what_gates_by_default() -> None:
    # GIVEN the package's table THEN three metrics gate, each with unit and direction
    found = load_metrics()
    gating = {name: (metric.unit, metric.better) for name, metric in found.named.items() if metric.gates}
    assert gating == {
        "output_throughput": ("tok/s", "higher"),
        "median_tpot_ms": ("ms", "lower"),
        "median_ttft_ms": ("ms", "lower"),
    }


@pytest.mark.parametrize("name", ["p99_ttft_ms", "p99.9_e2el_ms", "mean_tpot_ms", "steady_state.p90_tpot_ms"])
def test_latencies_are_better_lower(name: str) -> None:
    # GIVEN a latency by whatever percentile THEN lower is better, also for a mean
    metric = load_metrics().find(name)
    assert metric is not None
    assert (metric.better, metric.unit, metric.gates) == ("lower", "ms", False)


def test_numbers_that_are_no_metrics() -> None:
    # GIVEN counts, settings and other names of the same THEN they are ignored; what nobody knows is not
    found = load_metrics()
    assert all(
        found.is_ignored(name) for name in ("completed", "num_prompts", "std_ttft_ms", "p50_tpot_ms", "burstiness")
    )
    assert not found.is_ignored("cache_hits")
    assert found.find("cache_hits") is None


def test_a_users_file_adds_and_overrides(tmp_path: Path) -> None:
    # GIVEN a file with a new metric under a text label, and another threshold for a known one
    text = (
        '[metrics.cache_hits]\nunit = "%"\nbetter = "higher"\ngates = true\naliases = ["Cache hits (%)"]\n'
        '[metrics.median_ttft_ms]\nthreshold = "15%"\nabs = 50.0\n[gate]\nother = 1\n'
    )
    (tmp_path / "m.toml").write_text(text)
    found = load_metrics(tmp_path / "m.toml")
    # THEN both hold, and what was not said stays
    cache, ttft = found.find("Cache hits (%)"), found.named["median_ttft_ms"]
    assert cache is not None
    assert (cache.name, cache.better, found.value(cache, {"Cache hits (%)": 3.0})) == ("cache_hits", "higher", 3.0)
    assert (ttft.threshold, ttft.abs, ttft.better, ttft.gates) == (0.15, 50.0, "lower", True)
    assert load_metrics().named["median_ttft_ms"].threshold == 0.05


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[metrics.x]\nunit = "s"\n', "metric 'x' has no direction"),
        ('[metrics.x]\nunit = "s"\nbetter = "smaller"\n', "better of metric 'x' is 'smaller'"),
        ('[metrics.x]\nbetter = "lower"\n', "metric 'x' has no unit"),
        ('[metrics.x]\nunit = "s"\nbeter = "lower"\n', "unknown key 'beter' in metrics.x"),
        ("[metrics.median_ttft_ms]\nthreshold = 5\n", "threshold of metric 'median_ttft_ms' is 5"),
        ("[metrics.median_ttft_ms]\nabs = -1\n", "abs of metric 'median_ttft_ms' is -1"),
        ("[metrics.median_ttft_ms]\ngates = 1\n", "gates of metric 'median_ttft_ms' is 1"),
        ("[metrics]\nx = 1\n", "metrics.x is no table"),
        ('[metrics.x]\nunit = "s"\nbetter = "lower"\naliases = ["duration"]\n', "'duration' is a name of both"),
        ("[other]\n", "the file has no table"),
        ("[metrics", "the file is not TOML"),
    ],
)
def test_a_file_that_cannot_be_used(text: str, message: str, tmp_path: Path) -> None:
    # WHEN a table is wrong THEN the error says what, so that no typo switches a metric off
    with pytest.raises(MetricsError) as caught:
        load(tmp_path, text)
    assert caught.value.message.startswith(message)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputNotFoundError):
        load_metrics(tmp_path / "absent.toml")
