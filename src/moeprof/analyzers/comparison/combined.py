"""Put the parts of a diff together: structure from traces, metrics from timed passes, and one verdict over all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from moeprof.analyzers.claims.results import ClaimRow
from moeprof.analyzers.claims.sentences import sentences
from moeprof.analyzers.claims.structure import Figure, structure_claims
from moeprof.analyzers.results import Diff, DiffSubject, PairChange, PairChanges, Verdict
from moeprof.analyzers.serving.compare import ServingComparison
from moeprof.analyzers.serving.results import ServingRow
from moeprof.findings import Finding, in_order
from moeprof.wording import signed

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
        message = "no trace on this side: structure, kernels and times per iteration are not compared"
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
        claims=(*sentences(compared.rows), *diff.claims),
        verdict=overall(diff.verdict, compared.rows),
        summary=(*(sentence(row) for row in gating), *diff.summary),
        findings=in_order([*diff.findings, *compared.findings]),
    )


def with_structure_claims(diff: Diff) -> Diff:
    """Return a diff of traces with the sentences that their counts carry; as it is where they are not comparable."""
    if diff.verdict == "not_comparable":
        return diff
    pairs = (("AG/RS pairs", diff.pairs.ag_rs), ("MoE GEMM pairs", diff.pairs.moe_gemm))
    figures: list[Figure] = [(name, pair.base, pair.candidate) for name, pair in pairs]
    figures += [
        (f"{row.class_} launches of phase {row.phase}", row.base, row.candidate)
        for row in diff.structure
        if row.class_.startswith("moe_") and row.change != "same"
    ]
    claims = structure_claims(figures, ranks=(diff.base.ranks, diff.candidate.ranks))
    return replace(diff, claims=(*diff.claims, *claims))


def with_checks(diff: Diff, rows: Sequence[ClaimRow], findings: Sequence[Finding]) -> Diff:
    """Return a diff with the outcome of written claims."""
    return replace(diff, claims=(*diff.claims, *rows), findings=in_order([*diff.findings, *findings]))


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
    if row.verdict == "not_comparable":
        return f"{what} {signed(row.change)}: not comparable, {row.label_because}"
    why = "" if row.reason == "shown" else f" ({row.reason.replace('_', ' ')})"
    return f"{what} {signed(row.change)}: {row.verdict.replace('_', ' ')}{why}, {row.label}"
