"""What a caller asks for in one call: open what is a path, report, compare. The analyzers below see tables and reports only."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike, fspath
from typing import TypeAlias

from moeprof.analyzers.classify import Explanation, load_classifier
from moeprof.analyzers.comparison.combined import with_serving, without_structure
from moeprof.analyzers.comparison.compare import compare
from moeprof.analyzers.markers import MarkerChoice
from moeprof.analyzers.report import report as report_trace
from moeprof.analyzers.results import Diff, DiffSubject, Report
from moeprof.analyzers.serving.compare import compare_serving
from moeprof.analyzers.serving.metrics import load_metrics
from moeprof.analyzers.serving.results import ArmSamples
from moeprof.series.side import Side, sides
from moeprof.traces.open import open_trace
from moeprof.traces.trace import Trace

Source: TypeAlias = Trace | str | PathLike[str]
Comparable: TypeAlias = Report | Source


def report(
    trace: Source,
    *,
    rules: str | PathLike[str] | None = None,
    marker: str | None = None,
    marker_family: str | None = None,
    recover: bool = False,
    store: str | PathLike[str] | None = None,
) -> Report:
    """Count and time one arm.

    Args:
        trace: A trace, or a path or arm that `moeprof.open_trace` takes.
        rules: A rules file that comes before the package's kernel rules.
        marker: A regular expression for your own iteration markers.
        marker_family: Use this family of markers, whatever else the trace holds.
        recover: Read what is whole of a damaged file, where `trace` is a path.
        store: Where arms are looked up, as in `moeprof.open_trace`.

    Raises:
        MoeprofError: The trace cannot be read, or an option makes no sense.

    Example:
        >>> base = report("samples/h200/base")
        >>> [rank.pairs.ag_rs.per_iteration for rank in base.ranks]
        [45, 45]
        >>> base.across_ranks.agree
        True
    """
    MarkerChoice(marker, marker_family)  # nothing is read for options that make no sense
    opened = trace if isinstance(trace, Trace) else open_trace(trace, recover=recover, store=store)
    return report_trace(opened, rules=rules, marker=marker, marker_family=marker_family)


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
) -> Diff:
    """Compare two arms: the launches of their traces, and the metrics of their timed passes.

    Args:
        base: A report, a trace, a path (trace, folder of ranks, outputs of a load client, or a folder of them), an arm or a run.
        candidate: What is held against it, likewise.
        rules: A rules file that comes before the package's kernel rules, for sides that are no report yet.
        marker: A regular expression for your own iteration markers, likewise.
        marker_family: Marker family to use, likewise.
        recover: Read what is whole of a damaged file, for sides that are paths.
        store: Where arms are looked up, as in `moeprof.open_trace`.
        metrics: A file that adds to the package's serving metrics.

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
    MarkerChoice(marker, marker_family)  # nothing is read for options that make no sense
    registry = load_metrics(metrics)
    if not isinstance(base, str | PathLike) or not isinstance(candidate, str | PathLike):
        reports = [
            side
            if isinstance(side, Report)
            else report(side, rules=rules, marker=marker, marker_family=marker_family, recover=recover, store=store)
            for side in (base, candidate)
        ]
        return compare(*reports)
    before, after = sides(fspath(base), fspath(candidate), store)
    found = [
        None
        if side.trace is None
        else report(side.trace, rules=rules, marker=marker, marker_family=marker_family, recover=recover, store=store)
        for side in (before, after)
    ]
    result = _structure(before, after, *found)
    if before.samples is None and after.samples is None:
        return result
    first, second = (side.samples or ArmSamples(side.arm, side.source, ()) for side in (before, after))
    return with_serving(result, compare_serving(first, second, registry))


def _structure(before: Side, after: Side, base: Report | None, candidate: Report | None) -> Diff:
    """Return what the traces of both sides tell; nothing where a side has none."""
    if base is not None and candidate is not None:
        result = compare(base, candidate)
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
    return load_classifier(rules).explain(name)
