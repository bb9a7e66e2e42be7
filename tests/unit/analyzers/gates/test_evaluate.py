"""A run held against a baseline: which rule says what, and that nothing passes that was not measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moeprof.analyzers.accuracy.results import Evaluation
from moeprof.analyzers.environment.results import RunRecord
from moeprof.analyzers.gates.evaluate import evaluate
from moeprof.analyzers.gates.observation import Observation
from moeprof.analyzers.gates.results import GateRow
from moeprof.analyzers.gates.rules import GateRules
from moeprof.analyzers.serving.metrics import load_metrics
from moeprof.findings import Finding

from .observations import LAUNCHES, VALUES, count, passes, run, sample, structure

RULES = GateRules()


def row(base: Observation, candidate: Observation, rule: str, rules: GateRules = RULES) -> GateRow:
    """Return the outcome of one rule."""
    return next(item for item in evaluate(base, candidate, rules).rules if item.rule == rule)


def test_a_run_passes_against_itself() -> None:
    # GIVEN a run WHEN it is held against itself THEN nothing happened, every kind of rule was there, and all passed or were skipped
    result = evaluate(run(), run(), RULES)
    assert result.happened() == ()
    assert result.verdict == "pass"
    assert {item.kind for item in result.rules} == {"structure", "metric", "accuracy", "finding"}
    assert result.compared > 10


@pytest.mark.parametrize("value", [0, 41, 43, 84])
def test_another_count_fails_as_structure(value: int) -> None:
    # GIVEN a run that launches more or fewer WHEN it is gated THEN this rule fails, with both figures
    found = row(run(), run(structure=structure({**LAUNCHES, "moe_fused/target": value})), "structure/moe_fused/target")
    assert (found.verdict, found.word, found.base, found.candidate) == ("fail", "structure", 42, value)


def test_a_class_that_is_new_fails() -> None:
    # GIVEN a class that the baseline does not launch WHEN the run is gated THEN it fails from 0
    found = row(run(), run(structure=structure({**LAUNCHES, "all_reduce/target": 42})), "structure/all_reduce/target")
    assert (found.verdict, found.reason, found.base) == ("fail", "added", 0)


def test_a_minority_of_iterations_fails_too() -> None:
    # GIVEN a model class whose commonest count is right, but not in all iterations WHEN gated THEN it fails
    odd = structure({**LAUNCHES, "moe_fused/target": count(42, 43)})
    assert row(run(), run(structure=odd), "structure/moe_fused/target").reason == "minority"
    # AND where the baseline has seen it too, it passes
    assert row(run(structure=odd), run(), "structure/moe_fused/target").verdict == "pass"


@pytest.mark.parametrize(("seen", "verdict"), [(count(7, 5), "pass"), (count(9, 8), "fail")])
def test_small_operators_vary_within_their_range(seen: object, verdict: str) -> None:
    # GIVEN copies that vary within a capture WHEN ranges overlap THEN they pass; apart they fail
    base = run(structure=structure({**LAUNCHES, "copy/sample": count(5, 6)}))
    after = run(structure=structure({**LAUNCHES, "copy/sample": seen}))  # type: ignore[dict-item]  # a count
    assert row(base, after, "structure/copy/sample").verdict == verdict


@pytest.mark.parametrize(
    ("stated", "value", "verdict"), [((40, 42), 40, "pass"), ((40, 42), 41, "fail"), (None, 99, "skipped")]
)
def test_a_stated_set_replaces_the_baseline(stated: tuple[int, ...] | None, value: int, verdict: str) -> None:
    # GIVEN a rule that states what is allowed WHEN the run is gated THEN the set decides, not the baseline
    rules = GateRules(structure={"moe_fused/target": stated})
    after = run(structure=structure({**LAUNCHES, "moe_fused/target": value}))
    assert row(run(), after, "structure/moe_fused/target", rules).verdict == verdict


def test_patterns_of_launches_leave_pairs_alone() -> None:
    # GIVEN a pattern for drafts WHEN drafts move THEN launches are skipped, and pairs still fail
    rules = GateRules(structure={"*/draft": None})
    moved = replace(
        structure(), pairs={"ag_rs/per_iteration": count(6), "ag_rs/draft": count(6), "ag_rs/target": count(0)}
    )
    assert row(run(), run(structure=moved), "pairs/ag_rs/draft", rules).verdict == "fail"
    assert row(run(), run(structure=moved), "structure/all_gather/draft", rules).verdict == "skipped"


def test_a_fallback_of_the_backend_fails() -> None:
    # GIVEN the same counts from another library WHEN gated THEN the backend's rule fails
    fallen = replace(structure(), backends={"moe_fused/target": ("Triton",)})
    assert row(run(), run(structure=fallen), "backend/moe_fused/target").word == "structure"


def test_a_missing_rank_is_missing_and_named() -> None:
    # GIVEN one rank fewer WHEN gated THEN it is missing, by name
    found = row(run(), run(structure=structure(ranks=("rank1",))), "structure/ranks")
    assert (found.verdict, found.word) == ("missing", "missing")
    assert "rank0" in found.message


def test_counts_of_another_kind_are_missing_and_not_compared() -> None:
    # GIVEN traces alone, of prefill against decode WHEN gated THEN nothing was compared
    base, after = (Observation(None, "x", structure=structure(), traced=True) for _ in range(2))
    after = replace(after, structure=replace(structure(), counts_over="prefill"))
    result = evaluate(base, after, RULES)
    assert [item.verdict for item in result.rules if item.kind == "structure"] == ["missing"]
    assert result.compared == 0


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "pass"), (1.02, "inconclusive"), (1.2, "fail"), (0.8, "pass")])
def test_a_metric_goes_through_threshold_and_direction(factor: float, verdict: str) -> None:
    # GIVEN passes that are slower by a factor WHEN gated at 5 % THEN only what is shown fails
    result = evaluate(run(), run(samples=passes(factor)), RULES)
    found = {item.verdict for item in result.rules if item.kind == "metric"}
    assert found <= ({verdict, "pass", "inconclusive"} if verdict == "inconclusive" else {verdict})
    assert ("regression" in result.happened()) is (verdict == "fail")


def test_a_vanished_metric_is_missing_unless_it_is_optional() -> None:
    # GIVEN passes without one metric WHEN gated THEN it is missing
    rest = {name: value for name, value in VALUES.items() if name != "median_ttft_ms"}
    after = run(samples=passes(values=rest))
    assert row(run(), after, "metric/c8/median_ttft_ms").word == "missing"
    # AND skipped where the rules let it go
    rules = GateRules(optional=frozenset({"median_ttft_ms"}))
    assert row(run(), after, "metric/c8/median_ttft_ms", rules).verdict == "skipped"
    # AND the other way round it is new, which never fails
    assert row(after, run(), "metric/c8/median_ttft_ms").verdict == "skipped"


def test_another_workload_is_missing_not_green() -> None:
    # GIVEN passes with other token totals WHEN gated THEN the metric has no comparable value
    made = passes()
    other = tuple(replace(s, workload=replace(s.workload, output_tokens=320)) for s in made.samples)
    result = evaluate(run(), run(samples=replace(made, samples=other)), RULES)
    assert {item.verdict for item in result.rules if item.kind == "metric"} == {"missing"}


def test_a_failed_pass_fails_the_gate() -> None:
    # GIVEN a pass with failed requests WHEN gated THEN it is named and left out
    made = passes()
    bad = replace(sample(0, 0, 5.0), failed=2, completed=62)
    result = evaluate(run(), run(samples=replace(made, samples=(bad, *made.samples[1:]))), RULES)
    assert "gate" in result.happened()
    assert "regression" not in result.happened()


def test_a_stored_baseline_without_times_is_no_a_b_a() -> None:
    # GIVEN a baseline in two blocks around the run's block, without time stamps
    around = tuple(sample(block, number, 1.0 + number / 1000) for block in (0, 2) for number in range(3))
    between = tuple(sample(1, number, 1.2 + number / 1000) for number in range(3))
    base = run(samples=replace(passes(), samples=around))
    after = run(samples=replace(passes(), samples=between))
    # WHEN it was accepted earlier THEN its label is no A/B/A; measured beside the run it is
    stored, beside = (evaluate(base, after, RULES, stored=stored) for stored in (True, False))
    assert {item.label for item in stored.rules if item.kind == "metric"} == {"A/B only"}
    assert {item.label for item in beside.rules if item.kind == "metric"} == {"A/B/A complete"}
    # AND a rule that needs more turns the regression into inconclusive
    strict = evaluate(base, after, GateRules(min_label="A/B/A complete"))
    assert {item.reason for item in strict.rules if item.kind == "metric"} == {"label_too_weak"}
    # AND for one metric alone
    one = evaluate(base, after, GateRules(labels={"median_tpot_ms": "A/B/A complete"}))
    assert {item.rule for item in one.rules if item.reason == "label_too_weak"} == {"metric/c8/median_tpot_ms"}


def test_the_threshold_is_the_registrys() -> None:
    # GIVEN a threshold of 30 % for one metric WHEN it is 20 % worse THEN it does not fail
    registry = load_metrics().overlaid({"median_ttft_ms": {"threshold": "30%"}}, "x")
    found = row(run(), run(samples=passes(1.2)), "metric/c8/median_ttft_ms", GateRules(registry))
    assert (found.verdict, found.threshold) == ("pass", 0.3)


@pytest.mark.parametrize(
    ("correct", "margin", "verdict"),
    [
        (1209, None, "pass"),
        (1000, None, "fail"),
        (1209, 0.02, "pass"),
        (1195, 0.01, "inconclusive"),
        (1100, 0.02, "fail"),
    ],
)
def test_accuracy(correct: int, margin: float | None, verdict: str) -> None:
    # GIVEN an evaluation WHEN gated THEN a shown drop fails, and a margin must be shown
    after = run(evaluations=(Evaluation("gsm8k", 1319, (correct,), "x", (0,), 5),))
    assert row(run(), after, "accuracy/gsm8k", GateRules(accuracy_margin=margin)).verdict == verdict


def test_findings_that_must_not_occur() -> None:
    # GIVEN a finding WHEN it is forbidden THEN it fails as gate; known from the baseline it is skipped, unless the rules are strict
    finding = Finding("ranks-differ", "warning", "the ranks differ")
    bad = run(findings=(finding,))
    assert row(run(), bad, "finding/ranks-differ").word == "gate"
    assert row(bad, bad, "finding/ranks-differ").verdict == "skipped"
    assert row(bad, bad, "finding/ranks-differ", GateRules(strict=True)).verdict == "fail"


def test_other_ground_is_refused_unless_allowed() -> None:
    # GIVEN runs of two server versions WHEN gated THEN it is refused, and allowed on request
    old, new = (run(runs=(RunRecord("r", 0, {"versions.vllm": version}),)) for version in ("0.26.0", "0.27.0"))
    assert "versions.vllm" in (evaluate(old, new, RULES).refusal or "")
    assert evaluate(old, new, GateRules(allow_environment=("versions",))).refusal is None
    # AND so are traces of two devices
    moved = run(structure=replace(structure(), device="NVIDIA B200"))
    assert "NVIDIA B200" in (evaluate(run(), moved, RULES).refusal or "")
    assert evaluate(run(), moved, GateRules(allow_environment=("hardware.gpus",))).refusal is None


def test_nothing_in_common_is_nothing_compared() -> None:
    # GIVEN a baseline of passes and a run with a trace WHEN gated THEN nothing was compared
    base = Observation("a", "a", samples=passes())
    after = Observation("a", "a", structure=structure(), traced=True)
    assert evaluate(base, after, RULES).compared == 0
    # AND a metric that vanished from passes that are there is an outcome
    gone = Observation("a", "a", samples=passes(values={"request_throughput": 5.0}))
    result = evaluate(base, gone, RULES)
    assert result.compared > 0
    assert result.happened() == ("missing",)


def test_worst_comes_first() -> None:
    # GIVEN many failures WHEN gated THEN failures lead, and among counts pairs and backends before small operators
    broken = replace(
        structure({**LAUNCHES, "copy/sample": 500, "moe_fused/target": 41}), backends={"moe_fused/target": ("x",)}
    )
    found = [item.rule for item in evaluate(run(), run(structure=broken), RULES).rules if item.verdict == "fail"]
    assert found == ["backend/moe_fused/target", "structure/moe_fused/target", "structure/copy/sample"]
