"""Put accuracy into a diff, and into its verdict."""

from __future__ import annotations

from dataclasses import replace

from moeprof.analyzers.accuracy.results import AccuracyRow
from moeprof.analyzers.claims.accuracy import accuracy_claims
from moeprof.analyzers.comparison.combined import ORDER
from moeprof.analyzers.results import Diff, Verdict
from moeprof.findings import Finding, JsonValue, in_order


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
        claims=(*diff.claims, *accuracy_claims(rows)),
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
