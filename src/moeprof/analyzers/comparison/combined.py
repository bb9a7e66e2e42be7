"""Put the parts of a diff together: structure from traces, metrics from timed passes, and one verdict over all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from moeprof.analyzers.accuracy.results import AccuracyRow
from moeprof.analyzers.comparison.disagreements import in_order
from moeprof.analyzers.results import Diff, DiffSubject, PairChange, PairChanges, Verdict
from moeprof.analyzers.serving.compare import ServingComparison
from moeprof.analyzers.serving.results import ServingRow
from moeprof.findings import Finding, JsonValue

#: The overall verdict is the first of these that the structure or a metric that gates has.
ORDER: tuple[Verdict, ...] = ("not_comparable", "regressed", "improved", "changed", "inconclusive", "unchanged")


def without_structure(base: DiffSubject, candidate: DiffSubject, *, traced: Sequence[str] = ()) -> Diff:
    """Return a diff of two sides that cannot be compared by their traces, since at least one has none.

    Args:
        base: The base side.
        candidate: The other one.
        traced: Which of the sides have a trace.
    """
    findings: tuple[Finding, ...] = ()
    if traced:
        without = "candidate" if "base" in traced else "base"
        message = f"{without} has no trace: structure, kernels and times per iteration are not compared"
        findings = (Finding("trace-absent", "warning", message, evidence={"side": without}),)
    nothing = PairChange(None, None)
    return Diff(
        base=base,
        candidate=candidate,
        summary=(),
        structure=(),
        kernels=(),
        pairs=PairChanges(nothing, nothing),
        layers=(),
        time=(),
        serving=(),
        accuracy=(),
        environment=(),
        claims=(),
        verdict="unchanged",
        findings=findings,
    )


def with_serving(diff: Diff, compared: ServingComparison) -> Diff:
    """Return a diff with the metrics of timed passes, and the verdict that follows from both."""
    gating = [row for row in compared.rows if row.gates]
    return replace(
        diff,
        serving=compared.rows,
        verdict=overall(diff.verdict, compared.rows),
        summary=(*(sentence(row) for row in gating), *diff.summary),
        findings=in_order([*diff.findings, *compared.findings]),
    )


def with_accuracy(diff: Diff, rows: tuple[AccuracyRow, ...]) -> Diff:
    """Return a diff with the accuracy of both sides, and the verdict that follows from it too."""
    words = {diff.verdict} if _judged(diff) else set()
    words |= {accuracy_verdict(row) for row in rows}
    findings = [*diff.findings, *(_unlike(row) for row in rows if row.reason == "questions_differ")]
    return replace(
        diff,
        accuracy=rows,
        verdict=next(word for word in ORDER if word in words) if words else diff.verdict,
        summary=(*diff.summary, *(row.text for row in rows)),
        findings=in_order(findings),
    )


def accuracy_verdict(row: AccuracyRow) -> Verdict:
    """Return what a task adds to the overall verdict. That no drop was shown is not "unchanged": only a shown margin is."""
    if row.label == "drop shown":
        return "regressed"
    if row.label == "no drop shown":
        if row.least_favourable is not None and row.least_favourable.interval[0] > 0:
            return "improved"
        if row.noninferiority is not None and row.noninferiority.shown:
            return "unchanged"
    return "inconclusive"


def _judged(diff: Diff) -> bool:
    """Tell whether anything but accuracy was compared."""
    return bool(diff.serving or diff.structure or diff.kernels) or diff.verdict != "unchanged"


def _unlike(row: AccuracyRow) -> Finding:
    sides = (("base", row.base), ("candidate", row.candidate))
    totals: dict[str, JsonValue] = {name: None if side is None else side.questions for name, side in sides}
    message = (
        f"{row.task}: the evaluations did not ask the same questions in the same way; nothing is said about a drop"
    )
    return Finding("evaluations-differ", "warning", message, evidence={"task": row.task, "questions": totals})


def overall(structure: Verdict, rows: Sequence[ServingRow]) -> Verdict:
    """Return the verdict over structure and metrics; a metric that is missing leaves the comparison inconclusive.

    >>> overall("changed", ())
    'changed'
    """
    words: set[Verdict] = {structure}
    words |= {"inconclusive" if row.verdict == "missing" else row.verdict for row in rows if row.gates}
    return next(word for word in ORDER if word in words)


def sentence(row: ServingRow) -> str:
    """Return what happened to a metric, in a sentence."""
    what = f"{row.metric} ({row.workload})"
    if row.change is None or row.base.median is None or row.candidate.median is None:
        return f"{what}: {row.verdict.replace('_', ' ')}, {row.label_because or row.reason.replace('_', ' ')}"
    why = "" if row.reason == "shown" else f" ({row.reason.replace('_', ' ')})"
    return f"{what} {row.change:+.2%}: {row.verdict.replace('_', ' ')}{why}, {row.label}"
