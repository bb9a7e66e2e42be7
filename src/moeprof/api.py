"""What a caller asks for in one call: open what is a path, report, compare. The analyzers below see tables and reports only."""

from __future__ import annotations

from os import PathLike
from typing import TypeAlias

from moeprof.analyzers.classify import Explanation, load_classifier
from moeprof.analyzers.comparison.compare import compare
from moeprof.analyzers.markers import MarkerChoice
from moeprof.analyzers.report import report as report_trace
from moeprof.analyzers.results import Diff, Report
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
) -> Diff:
    """Compare two captures.

    Args:
        base: A report, a trace, or the path of one (a file or a folder of ranks).
        candidate: What is held against it, likewise.
        rules: A rules file that comes before the package's kernel rules, for sides that are no report yet.
        marker: A regular expression for your own iteration markers, likewise.
        marker_family: Marker family to use, likewise.
        recover: Read what is whole of a damaged file, for sides that are paths.

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

    def reported(side: Comparable) -> Report:
        if isinstance(side, Report):
            return side
        return report(side, rules=rules, marker=marker, marker_family=marker_family, recover=recover)

    return compare(reported(base), reported(candidate))


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
