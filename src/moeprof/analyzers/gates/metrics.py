"""Rules on serving metrics: threshold, direction, least effect and label, through the same comparison that `diff` shows."""

from __future__ import annotations

from dataclasses import replace

from moeprof.analyzers.gates.observation import Observation
from moeprof.analyzers.gates.results import GateRow, GateVerdict, Word
from moeprof.analyzers.gates.rules import GateRules
from moeprof.analyzers.serving.compare import ServingComparison, compare_serving
from moeprof.analyzers.serving.results import LABELS, ArmSamples, ServingRow
from moeprof.analyzers.serving.samples import gated
from moeprof.wording import rounded, signed

_NOTHING = ServingComparison((), ())
_EARLIER = "the baseline was accepted earlier: nothing shows that it was measured around this run"


def serving_of(base: Observation, candidate: Observation, rules: GateRules, *, stored: bool) -> ServingComparison:
    """Return the comparison of the passes; empty where neither side has any.

    Args:
        base: The baseline.
        candidate: What is gated.
        rules: Metrics and labels.
        stored: Whether the baseline was read from a file: without times of its passes it is no A/B/A then.
    """
    if base.samples is None and candidate.samples is None:
        return _NOTHING
    before, after = (side.samples or ArmSamples(side.arm, side.source, ()) for side in (base, candidate))
    found = compare_serving(before, after, rules.metrics)
    untimed = stored and not all(sample.started is not None for side in (before, after) for sample in side.samples)
    return ServingComparison(tuple(_labelled(row, rules, untimed=untimed) for row in found.rows), found.findings)


def metric_rows(found: ServingComparison, rules: GateRules) -> list[GateRow]:
    """Return the outcome of each metric that gates."""
    return [_row(row, rules) for row in found.rows if row.gates]


def pass_rows(candidate: Observation) -> list[GateRow]:
    """Return a failure for each pass of the run in which a request failed or is missing."""
    if candidate.samples is None:
        return []
    return [
        GateRow(
            f"pass/{item.block}/{item.number}/{item.gate}",
            "pass",
            "fail",
            f"pass {item.number} of block {item.block} failed {item.gate}: {item.message}",
            item.gate,
            "gate",
        )
        for item in gated(candidate.samples).excluded
    ]


def _labelled(row: ServingRow, rules: GateRules, *, untimed: bool) -> ServingRow:
    """Return a row with the label that a stored baseline can carry, and the verdict that the rules allow for that label."""
    if untimed and row.label in ("A/B/A complete", "A/B/A, drifted"):
        row = replace(row, label="A/B only", label_because=_EARLIER)
    least = rules.labels.get(row.metric, rules.min_label)
    if row.verdict in ("regressed", "improved") and LABELS.index(row.label) > LABELS.index(least):
        return replace(row, verdict="inconclusive", reason="label_too_weak")
    return row


def _row(row: ServingRow, rules: GateRules) -> GateRow:
    verdict, word, reason = _outcome(row, rules)
    return GateRow(
        f"metric/{row.workload}/{row.metric}",
        "metric",
        verdict,
        _message(row, verdict),
        reason,
        word,
        row.base.median,
        row.candidate.median,
        row.change,
        row.threshold,
        row.label,
        row.better,
    )


def _outcome(row: ServingRow, rules: GateRules) -> tuple[GateVerdict, Word | None, str]:
    if row.verdict == "regressed":
        return "fail", "regression", row.reason
    if row.verdict in ("improved", "unchanged"):
        return "pass", None, row.verdict
    if row.reason == "no_data_base":
        return "skipped", None, row.reason
    # A value that cannot be held against the baseline's is as good as none: a green gate would have measured nothing.
    if row.verdict in ("missing", "not_comparable"):
        if row.metric in rules.optional:
            return "skipped", None, row.reason
        return "missing", "missing", row.reason
    return "inconclusive", "inconclusive", row.reason


def _message(row: ServingRow, verdict: GateVerdict) -> str:
    what = f"{row.metric} ({row.workload})"
    if row.reason == "no_data_base":
        return f"{what}: new, not in the baseline"
    if row.change is None or verdict == "missing":
        return f"{what}: {row.label_because or row.reason.replace('_', ' ')}"
    n = f"{row.base.n} v {row.candidate.n} passes"
    unit = f" {row.unit}" if row.unit else ""
    said = f"{what} {signed(row.change)}: {rounded(row.base.median)} -> {rounded(row.candidate.median)}{unit}"
    beyond = f"threshold {row.threshold * 100:g} %, {row.better} is better, {n}, {row.label}"
    if row.verdict == "regressed":
        return f"{said} ({beyond})"
    if row.verdict == "inconclusive":
        return f"{said}, {_why(row)} ({beyond})"
    return f"{said}, {row.verdict} ({beyond})"


def _why(row: ServingRow) -> str:
    if row.reason == "below_threshold_interval_wide" and row.worst_not_excluded is not None:
        return f"a change for the worse of {signed(row.worst_not_excluded)} is not excluded"
    if row.reason == "label_too_weak":
        return f"the label is too weak: {row.label_because or row.label}"
    return row.reason.replace("_", " ")
