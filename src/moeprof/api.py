"""What a caller asks for in one call: open what is a path, report, compare. The analyzers below see tables and reports only."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, TypeAlias

from moeprof.analyzers.accuracy.compare import compare_accuracy
from moeprof.analyzers.accuracy.samples import evaluations_of
from moeprof.analyzers.claims.check import check
from moeprof.analyzers.claims.results import ClaimsResult
from moeprof.analyzers.claims.written import WrittenClaim
from moeprof.analyzers.comparison.combined import with_checks, with_serving, with_structure_claims, without_structure
from moeprof.analyzers.comparison.evaluated import with_accuracy
from moeprof.analyzers.comparison.explained import with_waterfall
from moeprof.analyzers.comparison.surroundings import marked, with_devices, with_environment
from moeprof.analyzers.environment.compare import compare_environment
from moeprof.analyzers.results import Diff, DiffSubject, Report
from moeprof.analyzers.serving.compare import compare_serving
from moeprof.analyzers.serving.metrics import load_metrics
from moeprof.analyzers.serving.results import ArmSamples
from moeprof.errors import NothingToCompareError, UsageError
from moeprof.findings import in_order
from moeprof.series.environment import records
from moeprof.series.kernels import Stored, kernel_results
from moeprof.series.side import Side, sides

# What reads traces loads polars; a diff of results alone does without.
if TYPE_CHECKING:
    from moeprof.analyzers.classify import Explanation
    from moeprof.traces.trace import Trace

Source: TypeAlias = "Trace | str | PathLike[str]"
Comparable: TypeAlias = "Report | Source"


def report(
    trace: Source,
    *,
    rules: str | PathLike[str] | None = None,
    marker: str | None = None,
    marker_family: str | None = None,
    recover: bool = False,
    store: str | PathLike[str] | None = None,
    timeline: bool = False,
    ranks: bool = False,
) -> Report:
    """Count and time one arm.

    Args:
        trace: A trace, or a path or arm that `moeprof.open_trace` takes.
        rules: A rules file that comes before the package's kernel rules.
        marker: A regular expression for your own iteration markers.
        marker_family: Use this family of markers, whatever else the trace holds.
        recover: Read what is whole of a damaged file, where `trace` is a path.
        store: Where arms are looked up, as in `moeprof.open_trace`.
        timeline: Say also where the wall time of iterations went.
        ranks: Say also who waits for whom, and whose work takes longer.

    Raises:
        MoeprofError: The trace cannot be read, or an option makes no sense.

    Example:
        >>> base = report("samples/h200/base")
        >>> [rank.pairs.ag_rs.per_iteration for rank in base.ranks]
        [45, 45]
        >>> base.across_ranks.agree
        True
    """
    from moeprof.analyzers.report import report as report_trace
    from moeprof.traces.open import open_trace

    _check_markers(marker, marker_family)
    opened = open_trace(trace, recover=recover, store=store) if isinstance(trace, str | PathLike) else trace
    return report_trace(opened, rules=rules, marker=marker, marker_family=marker_family, timeline=timeline, ranks=ranks)


def diff(
    base: Comparable,
    candidate: Comparable,
    *,
    rules: str | PathLike[str] | None = None,
    marker: str | None = None,
    marker_family: str | None = None,
    recover: bool = False,
    store: str | PathLike[str] | None = None,
    metrics: str | PathLike[str] | None = None,
    claims: Sequence[WrittenClaim] = (),
    accuracy_margin: float | None = None,
    allow_environment: Collection[str] = (),
    explain: bool = False,
) -> Diff:
    """Compare two arms: the launches of their traces, the metrics of their timed passes, and their accuracy.

    Args:
        base: A report, a trace, a path (trace, folder of ranks, outputs of a load client, or a folder of them), an arm or a run.
        candidate: What is held against it, likewise.
        rules: A rules file that comes before the package's kernel rules, for sides that are no report yet.
        marker: A regular expression for your own iteration markers, likewise.
        marker_family: Marker family to use, likewise.
        recover: Read what is whole of a damaged file, for sides that are paths.
        store: Where arms are looked up, as in `moeprof.open_trace`.
        metrics: A file that adds to the package's serving metrics.
        claims: Written claims to be held against the timed passes.
        accuracy_margin: The largest drop of accuracy that is acceptable, as a difference of shares; None: none is stated.
        allow_environment: Keys of the environment that may differ between the runs; one stands for all that begin with it and a dot.
        explain: Say also where the difference of wall times comes from.

    Returns:
        The differences, from `base` to `candidate`.

    Raises:
        MoeprofError: A path cannot be read, or an option makes no sense.

    Example:
        >>> changed = diff("samples/h200/base", "samples/h200/mega_derived")
        >>> changed.verdict
        'changed'
        >>> changed.summary[1]
        'AG/RS pairs 45 -> 3 per iteration (target 42 -> 0, draft 3 -> 3)'
    """
    _check_markers(marker, marker_family)
    _check_margin(accuracy_margin)
    registry = load_metrics(metrics)
    if not isinstance(base, str | PathLike) or not isinstance(candidate, str | PathLike):
        reports = [
            side
            if isinstance(side, Report)
            else report(
                side,
                rules=rules,
                marker=marker,
                marker_family=marker_family,
                recover=recover,
                store=store,
                timeline=explain,
            )
            for side in (base, candidate)
        ]
        return with_devices(_of_reports(*reports), *reports)
    before, after = sides(fspath(base), fspath(candidate), store)
    found = [
        None
        if side.trace is None
        else report(
            side.trace,
            rules=rules,
            marker=marker,
            marker_family=marker_family,
            recover=recover,
            store=store,
            timeline=explain,
        )
        for side in (before, after)
    ]
    surroundings = compare_environment(records(before.runs), records(after.runs), allowed=allow_environment)
    result = _structure(before, after, *found)
    first, second = (
        marked(side.samples or ArmSamples(side.arm, side.source, ()), surroundings.rows, name)
        for side, name in ((before, "base"), (after, "candidate"))
    )
    if before.samples is not None or after.samples is not None:
        result = with_serving(result, compare_serving(first, second, registry, environment=surroundings.obstacle))
    if before.evaluations or after.evaluations:
        runs = [evaluations_of(side.evaluations) for side in (before, after)]
        result = with_accuracy(result, compare_accuracy(*runs, margin=accuracy_margin))
    result = _with_kernel_metrics(with_environment(result, surroundings), kernel_results(before, after, store))
    checked = check(claims, first, second, registry)
    return with_checks(result, checked.rows, checked.findings if claims else ())


def _with_kernel_metrics(result: Diff, stored: tuple[Stored, Stored] | None) -> Diff:
    if stored is None:
        return result
    from moeprof.analyzers.kernel_metrics.stored import between

    rows, findings = between(*stored)
    return replace(result, kernel_metrics=rows, findings=in_order([*result.findings, *findings]))


def _check_margin(margin: float | None) -> None:
    if margin is not None and not 0 < margin < 1:
        raise UsageError(
            f"an accuracy margin of {margin:g} makes no sense",
            hint="it is a difference of shares: 0.02 allows a drop of 2 points",
        )


def check_claims(
    claims: Sequence[WrittenClaim],
    base: str,
    candidate: str,
    *,
    store: str | PathLike[str] | None = None,
    metrics: str | PathLike[str] | None = None,
) -> ClaimsResult:
    """Hold written claims against the passes of two arms.

    Args:
        claims: As `moeprof.analyzers.claims.written.claim_of` reads them.
        base: An arm, a run or a path with outputs of a load client.
        candidate: Likewise.
        store: Where arms are looked up, as in `moeprof.open_trace`.
        metrics: A file that adds to the package's serving metrics.

    Raises:
        NothingToCompareError: Neither side has a timed pass.
        MoeprofError: A side cannot be read.
    """
    before, after = sides(base, candidate, store)
    if before.samples is None and after.samples is None:
        raise NothingToCompareError(
            "neither side has a timed pass",
            path=base,
            hint="moeprof ingest takes outputs of a load client into the store",
        )
    first, second = (side.samples or ArmSamples(side.arm, side.source, ()) for side in (before, after))
    found = check(claims, first, second, load_metrics(metrics))
    return ClaimsResult(base, candidate, found.rows, found.findings)


def _check_markers(marker: str | None, family: str | None) -> None:
    """Refuse options that make no sense, before anything is read."""
    if marker is not None or family is not None:
        from moeprof.analyzers.markers import MarkerChoice

        MarkerChoice(marker, family)


def _of_reports(base: Report, candidate: Report) -> Diff:
    from moeprof.analyzers.comparison.compare import compare

    return with_waterfall(with_structure_claims(compare(base, candidate)), base, candidate)


def _structure(before: Side, after: Side, base: Report | None, candidate: Report | None) -> Diff:
    """Return what the traces of both sides tell; nothing where a side has none."""
    if base is not None and candidate is not None:
        result = _of_reports(base, candidate)
        if not before.runs or not after.runs:
            result = with_devices(result, base, candidate)
    else:
        subjects = [_subject(side, found) for side, found in ((before, base), (after, candidate))]
        traced = [name for name, found in (("base", base), ("candidate", candidate)) if found is not None]
        result = without_structure(*subjects, traced=traced)
    return replace(
        result,
        base=replace(result.base, runs=max(1, len(before.runs))),
        candidate=replace(result.candidate, runs=max(1, len(after.runs))),
    )


def _subject(side: Side, found: Report | None) -> DiffSubject:
    if found is None:
        return DiffSubject(side.arm, side.source, 0, 1)
    return DiffSubject(found.subject.arm, found.subject.source, len(found.ranks), 1)


def explain(name: str, *, rules: str | PathLike[str] | None = None) -> Explanation:
    """Return which rule takes a kernel name, and why.

    Args:
        name: Name of a kernel or operator.
        rules: A rules file that comes before the package's kernel rules.

    Raises:
        MoeprofError: The rules file cannot be used.

    Example:
        >>> explain("fused_moe_kernel").class_
        'moe_gemm'
    """
    from moeprof.analyzers.classify import load_classifier

    return load_classifier(rules).explain(name)
