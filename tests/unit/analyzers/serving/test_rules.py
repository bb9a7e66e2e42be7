"""Labels and verdicts on small designs, built by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moeprof.analyzers.serving.compare import ServingComparison, compare_serving
from moeprof.analyzers.serving.metrics import load_metrics
from moeprof.analyzers.serving.results import ArmSamples, Block, Label, ServingRow

from .arms import LOAD, arm, sample, with_blocks

Blocks = Mapping[int, Sequence[float]]
A0, B, A2 = (100.0, 101.0, 99.0), (120.0, 121.0, 119.0), (100.5, 99.5, 100.2)


def compare(base: ArmSamples, candidate: ArmSamples, **options: object) -> ServingComparison:
    return compare_serving(base, candidate, load_metrics(), **options)  # type: ignore[arg-type]  # by name


def row(base: Blocks, candidate: Blocks, metric: str = "output_throughput", **options: object) -> ServingRow:
    (found,) = compare(arm(base, metric), arm(candidate, metric), **options).rows
    return found


@pytest.mark.parametrize(
    ("base", "candidate", "label", "because"),
    [
        ({0: A0, 2: A2}, {1: B}, "A/B/A complete", ""),
        ({0: A0}, {1: B}, "A/B only", "the base arm was not measured again after the candidate"),
        ({0: A0, 1: A2}, {2: B}, "A/B only", "the blocks are A/A/B"),
        ({1: A0, 2: A2}, {0: B}, "A/B only", "the blocks are B/A/A"),
        ({0: A0, 2: A2}, {0: B}, "A/B only", "the order of the blocks is not known"),
        ({0: A0[:1], 2: A2}, {1: B}, "A/B only", "block 0 has 1 passes, and 2 are needed"),
        ({0: A0, 2: A2}, {1: B[:2]}, "A/B only", "block 1 has 2 passes, and 3 are needed"),
        ({0: A0, 2: (130.0, 131.0, 132.0)}, {1: B}, "A/B/A, drifted", "do not overlap"),
        ({0: (90.0, 100.0, 110.0), 2: (109.0, 112.0, 115.0)}, {1: B}, "A/B/A, drifted", "more than half of the change"),
        ({0: (100.0, 101.0), 3: (100.5, 99.5)}, {1: (120.0, 121.0), 2: (119.0, 122.0)}, "A/B/A complete", ""),
        ({0: (100.0,), 3: (100.5,)}, {1: (120.0,), 2: (119.0,)}, "A/B only", "needs 4"),
        ({0: A0, 2: A2}, {1: B, 3: B}, "A/B only", "the blocks are A/B/A/B"),
    ],
)  # fmt: skip
def test_labels(base: Blocks, candidate: Blocks, label: Label, because: str) -> None:
    # GIVEN blocks in an order, with numbers of passes THEN the label is the strongest that they earn, and says why not more
    found = row(base, candidate)
    assert found.label == label
    assert because in found.label_because


def timed(source: ArmSamples, times: Mapping[int, tuple[float, float]], fingerprint: str | None = "f") -> ArmSamples:
    samples = [replace(item, started=times[item.block][0], ended=times[item.block][1]) for item in source.samples]
    blocks = [Block(number, fingerprint, *span) for number, span in times.items()]
    return with_blocks(replace(source, samples=tuple(samples)), *blocks)


def test_time_stamps_come_before_numbers() -> None:
    # GIVEN time stamps WHEN both arms call their block 0, they still tell the order; overlaps and contradictions are no A/B/A
    base, mega = arm({0: A0, 2: A2}), arm({0: B})
    assert compare(timed(base, {0: (0, 9), 2: (30, 39)}), timed(mega, {0: (10, 19)})).rows[0].label == "A/B/A complete"
    overlap = compare(timed(base, {0: (0, 15), 2: (30, 39)}), timed(mega, {0: (10, 19)})).rows[0]
    assert (overlap.label, overlap.label_because) == ("A/B only", "blocks overlap in time")
    contrary = compare(timed(base, {0: (50, 59), 2: (30, 39)}), timed(arm({1: B}), {1: (40, 49)})).rows[0]
    assert contrary.label_because == "the time stamps contradict the numbers of the blocks"


def test_another_fingerprint_is_no_return_to_base() -> None:
    # GIVEN a second base block on another version
    base = arm({0: A0, 2: A2})
    changed = with_blocks(base, Block(0, "f"), Block(2, "g"))
    found = compare(changed, with_blocks(arm({1: B}), Block(1, "f"))).rows[0]
    assert (found.label, found.label_because) == ("A/B only", "not all blocks have the same fingerprint")


@pytest.mark.parametrize(
    ("change", "because"),
    [
        ({"client": "vllm-rs"}, "client differs: vllm against vllm-rs"),
        ({"prompts": 128}, "number of requests differs: 64 against 128"),
        ({"concurrency": 16}, "concurrency differs: 8 against 16"),
        ({"rate": 2.0}, "request rate differs: inf against 2.0"),
        ({"output_tokens": 2047}, "total of output tokens differs: 2048 against 2047"),
    ],
)
def test_another_measurement_is_not_comparable(change: dict[str, object], because: str) -> None:
    # GIVEN a candidate that was asked for something else THEN figures stand, and no verdict
    load = replace(LOAD, **change)  # type: ignore[arg-type]  # fields by name
    other = ArmSamples("m", "m", tuple(sample(1, n, {"output_throughput": v}, workload=load) for n, v in enumerate(B)))
    (found,) = compare(arm({0: A0, 2: A2}), other).rows
    assert (found.label, found.verdict, found.reason) == ("not comparable", "not_comparable", "units")
    assert found.label_because == because
    assert found.change is not None


def test_an_environment_that_differs_is_not_comparable() -> None:
    # GIVEN a difference that matters, found elsewhere
    found = row({0: A0, 2: A2}, {1: B}, environment="vllm 0.26.0 against 0.33.0")
    assert (found.label, found.verdict, found.reason) == ("not comparable", "not_comparable", "fingerprint")


@pytest.mark.parametrize(
    ("base", "candidate", "verdict", "reason"),
    [
        ({0: A0, 2: A2}, {1: B}, "improved", "shown"),
        ({0: A0, 2: A2}, {1: (80.0, 81.0, 79.0)}, "regressed", "shown"),
        ({0: A0}, {1: (80.0, 81.0, 79.0)}, "regressed", "shown"),
        ({0: (100.0,)}, {1: (120.0,)}, "inconclusive", "too_few_runs"),
        ({0: (100.0,) * 3}, {1: (100.0,) * 3}, "unchanged", "interval_within_threshold"),
        ({0: (100.0,)}, {1: (100.0,)}, "inconclusive", "too_few_runs"),
        ({0: (100.0, 90.0, 110.0)}, {1: (101.0, 92.0, 111.0)}, "inconclusive", "below_threshold_interval_wide"),
        ({0: (100.0, 90.0, 110.0)}, {1: (108.0, 92.0, 120.0)}, "inconclusive", "not_separated"),
        ({0: (100.0, 101.0, 99.0), 2: (117.0, 118.0, 116.0)}, {1: (120.0, 121.0, 119.0)}, "inconclusive", "one_block_only"),
        ({0: (0.0, 0.0, 1.0)}, {1: (5.0, 6.0, 7.0)}, "inconclusive", "zero_base"),
        ({0: (20.0,) * 3, 2: (20.0,) * 3}, {1: (19.0,) * 3}, "regressed", "shown"),
    ],
)  # fmt: skip
def test_verdicts_of_a_throughput(base: Blocks, candidate: Blocks, verdict: str, reason: str) -> None:
    # GIVEN passes THEN the rule gives one verdict with its reason; exactly the threshold counts as reached
    found = row(base, candidate)
    assert (found.verdict, found.reason) == (verdict, reason)


def test_a_latency_is_judged_the_other_way() -> None:
    # GIVEN the same values for a latency THEN more is worse
    assert row({0: A0, 2: A2}, {1: B}, "median_tpot_ms").verdict == "regressed"
    assert row({0: A0, 2: A2}, {1: B}, "duration").verdict == "regressed"


def test_a_label_may_be_asked_for() -> None:
    # GIVEN an A/B only WHEN a complete A/B/A is asked for THEN nothing is shown
    found = row({0: A0}, {1: B}, least_label="A/B/A complete")
    assert (found.verdict, found.reason) == ("inconclusive", "label_too_weak")


def test_a_metric_that_vanished_is_missing() -> None:
    # GIVEN a candidate without the metric, and one without passes
    lost = compare(arm({0: A0}), arm({1: B}, "median_tpot_ms"))
    assert {found.metric: (found.verdict, found.reason) for found in lost.rows} == {
        "output_throughput": ("missing", "no_data_candidate"),
        "median_tpot_ms": ("missing", "no_data_base"),
    }
    (none,) = compare(arm({0: A0}), ArmSamples("m", "m", ())).rows
    assert (none.verdict, none.candidate.n, none.change, none.p) == ("missing", 0, None, None)


def test_no_pass_through_its_gates_is_not_comparable() -> None:
    # GIVEN a candidate whose passes all had failed requests
    failed = ArmSamples("m", "m", tuple(sample(1, n, {"output_throughput": v}, failed=1) for n, v in enumerate(B)))
    found = compare(arm({0: A0}), failed)
    assert [(item.verdict, item.reason) for item in found.rows] == [("not_comparable", "gates")]
    assert [finding.slug for finding in found.findings] == ["pass-excluded"] * 3


def test_an_improvement_that_is_too_good() -> None:
    # GIVEN twice the throughput THEN it is reported with a warning
    found = compare(arm({0: A0, 2: A2}), arm({1: [2 * value for value in A0]}))
    assert found.rows[0].verdict == "improved"
    assert "improbable-improvement" in {finding.slug for finding in found.findings}


def test_an_absolute_threshold_must_be_exceeded_too(tmp_path: pytest.TempPathFactory) -> None:
    # GIVEN 20 % that are only 20 tok/s, where 50 are asked for
    metrics = load_metrics().overlaid({"output_throughput": {"abs": 50.0}}, "test")
    (found,) = compare_serving(arm({0: A0, 2: A2}), arm({1: B}), metrics).rows
    assert (found.verdict, found.reason) == ("inconclusive", "below_threshold_interval_wide")


def test_chunk_counts_stay_where_there_is_no_speculation() -> None:
    # GIVEN inter-token latencies WHEN the server speculates they go, else they stay and never gate
    plain = compare(arm({0: A0}, "median_itl_ms"), arm({1: B}, "median_itl_ms"))
    assert [(item.metric, item.gates) for item in plain.rows] == [("median_itl_ms", False)]
    drafts = arm({0: A0}, "median_itl_ms")
    drafts = replace(drafts, samples=tuple(replace(item, speculative=True) for item in drafts.samples))
    left = compare(drafts, drafts)
    assert left.rows == ()
    assert [finding.slug for finding in left.findings] == ["chunk-counts"]


def test_numbers_without_a_direction_are_named() -> None:
    # GIVEN a number that nobody declared THEN it is not compared, and said
    found = compare(arm({0: A0}, "cache_hits"), arm({1: B}, "cache_hits"))
    assert found.rows == ()
    assert found.findings[0].evidence == {"names": ["cache_hits"]}


VALUES = st.lists(st.floats(0.1, 1e6), min_size=1, max_size=5)


@given(VALUES, VALUES, VALUES)
def test_no_p_below_its_floor_and_no_verdict_without_evidence(
    first: list[float], second: list[float], candidate: list[float]
) -> None:
    # GIVEN any passes THEN p is never below what n can give, and a shown verdict rests on an interval of 90 % on one side
    found = row({0: first, 2: second}, {1: candidate})
    assert found.p is not None
    assert found.p_floor is not None
    assert found.interval is not None
    assert found.confidence is not None
    assert found.p_floor - 1e-12 <= found.p <= 1
    assert found.interval[0] <= found.interval[1]
    if found.reason == "shown":
        assert found.confidence >= 0.9
        assert found.interval[0] > 0 or found.interval[1] < 0
        assert found.p <= 0.1 + 1e-12


@given(VALUES)
def test_an_arm_against_itself_never_differs(values: list[float]) -> None:
    # GIVEN an arm and itself THEN the change is nothing, and p is 1
    found = row({0: values}, {0: values})
    assert (found.change, found.delta) == (0.0, 0.0)
    assert found.verdict in ("unchanged", "inconclusive")
