"""Traps of comparing passes: mixtures within an arm, values that are missing, edges of the threshold, arms the other way round."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from moeprof.analyzers.serving.compare import compare_serving
from moeprof.analyzers.serving.metrics import load_metrics
from moeprof.analyzers.serving.results import ArmSamples, ServingRow
from moeprof.analyzers.serving.samples import sample_of
from moeprof.errors import MetricsError
from moeprof.traces.benchmarks.reading import parse_results
from tests.unit.analyzers.serving.arms import LOAD, arm, sample

METRICS = load_metrics()


def row_of(base: ArmSamples, candidate: ArmSamples) -> ServingRow:
    """Return the row of the output throughput."""
    rows = compare_serving(base, candidate, METRICS).rows
    return next(row for row in rows if row.metric == "output_throughput")


def test_a_mixture_within_both_arms_is_not_compared() -> None:
    # GIVEN two arms that both hold passes of 64 and of 32 requests, in other proportions
    short = replace(LOAD, prompts=32)
    arms = [
        ArmSamples("x", str(start), tuple(
            sample(start, number, {"output_throughput": 100.0 + start + number}, workload=load)
            for number, load in enumerate(loads)
        ))
        for start, loads in ((0, (LOAD, LOAD, short)), (1, (LOAD, short, short)))
    ]  # fmt: skip
    # WHEN they are compared THEN unlike is not held against unlike
    row = row_of(*arms)
    assert (row.label, row.verdict, row.reason) == ("not comparable", "not_comparable", "units")
    assert row.label_because == "number of requests differs among the base passes: 32, 64"


def test_a_value_that_some_passes_lack_is_told() -> None:
    # GIVEN a base arm of which one pass has no value of one metric
    base = ArmSamples("x", "base", tuple(
        sample(0, number, {"output_throughput": 100.0 + number, **({"median_ttft_ms": 5.0} if number else {})})
        for number in range(3)
    ))  # fmt: skip
    candidate = ArmSamples("y", "candidate", tuple(
        sample(1, number, {"output_throughput": 110.0 + number, "median_ttft_ms": 5.0}) for number in range(3)
    ))  # fmt: skip
    # WHEN they are compared THEN n is what is left, and a finding says so
    found = compare_serving(base, candidate, METRICS)
    assert {row.metric: row.base.n for row in found.rows} == {"output_throughput": 3, "median_ttft_ms": 2}
    (finding,) = [item for item in found.findings if item.slug == "values-missing"]
    assert finding.severity == "warning"
    assert finding.evidence == {"side": "base", "workload": "c8", "missing": {"median_ttft_ms": 1}}


def test_an_interval_that_ends_at_the_threshold_lies_within_it() -> None:
    # GIVEN ratios up to exactly 1.05, which floats put a last digit beyond it
    row = row_of(arm({0: [100.0] * 3}), arm({1: [100.0, 104.0, 105.0]}))
    assert row.interval is not None
    assert row.interval[1] > 0.05
    # THEN that digit decides nothing
    assert (row.verdict, row.reason) == ("unchanged", "interval_within_threshold")


def test_the_bracketing_arm_named_last_is_told() -> None:
    # GIVEN an A/B/A whose arms are named the other way round
    row = row_of(arm({1: [110.0, 111.0, 112.0]}), arm({0: [100.0, 101.0, 102.0], 2: [103.0, 104.0, 105.0]}))
    # THEN it is no A/B/A, and the reason says how it would be one
    assert row.label == "A/B only"
    assert "the other way round it is an A/B/A" in row.label_because


def test_a_pass_under_two_names_is_told() -> None:
    # GIVEN a pass that stands in both arms
    values = {f"mean_{name}_ms": 2.0 for name in ("ttft", "tpot", "e2el")} | {"output_throughput": 9.0, "duration": 1.0}
    base = ArmSamples("x", "x", (replace(sample(0, 0, values), source="x/a"),))
    candidate = ArmSamples("y", "y", (replace(sample(1, 0, values), source="y/a"),))
    # WHEN the arms are compared THEN a warning names it; an arm against itself is no such case
    slugs = {item.slug for item in compare_serving(base, candidate, METRICS).findings}
    assert "passes-shared" in slugs
    assert "passes-shared" not in {item.slug for item in compare_serving(base, base, METRICS).findings}


def test_the_50th_percentile_is_the_median() -> None:
    # GIVEN a report without the median of a latency, but with its 50th percentile, and one with both
    report = (
        "============ Serving Benchmark Result ============\nSuccessful requests: 4\nBenchmark duration (s): 1.00\n"
    )
    for text, expected in (("P50 TTFT (ms): 7.25\n", 7.25), ("Median TTFT (ms): 7.00\nP50 TTFT (ms): 7.25\n", 7.0)):
        (found,) = parse_results((report + text).encode(), "out.txt").passes
        told = sample_of(found, block=0, number=0, source="out.txt")
        # THEN it has a median, with the digits that were printed
        assert told.values["median_ttft_ms"] == expected
        assert told.printed["median_ttft_ms"] == f"{expected:.2f}"


@pytest.mark.parametrize("other", ["x", "nonsense"])
def test_the_same_as_nothing_is_refused(other: str, tmp_path: Path) -> None:
    # GIVEN a metric that is the same as itself, or as one that is not there THEN the registry is refused
    file = tmp_path / "m.toml"
    file.write_text(f'[metrics.x]\nunit = "%"\nbetter = "higher"\nsame_as = "{other}"\n')
    with pytest.raises(MetricsError, match="no other metric"):
        load_metrics(file)


def test_what_is_declared_is_not_ignored(tmp_path: Path) -> None:
    # GIVEN a number that is no metric until somebody declares it
    file = tmp_path / "m.toml"
    file.write_text('[metrics.rtfx]\nunit = ""\nbetter = "higher"\n')
    arms = arm({0: [1.0, 2.0]}, "rtfx"), arm({1: [1.0, 2.0]}, "rtfx")
    assert compare_serving(*arms, METRICS).rows == ()
    assert [row.metric for row in compare_serving(*arms, load_metrics(file)).rows] == ["rtfx"]
