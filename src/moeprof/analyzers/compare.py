"""Compare two reports: what was launched differently per iteration, and how the times of the captures lie."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike, fspath
from typing import TypeAlias

from moeprof.analyzers.differences import (
    backend_changes,
    differ,
    kernel_rows,
    pair_changes,
    pair_figures,
    structure_rows,
    time_rows,
)
from moeprof.analyzers.disagreements import arms_equal, backend_findings, disagreements, in_order, obstacle
from moeprof.analyzers.results import Diff, DiffSubject, KernelRow, PairChange, Report, StructureRow, Verdict
from moeprof.analyzers.sentences import Material, summarise
from moeprof.analyzers.sides import Side, view
from moeprof.traces.trace import Trace

Comparable: TypeAlias = Report | Trace | str | PathLike[str]


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
        base: A report, a trace, the path of one (a file or a folder of ranks), or an arm of the store.
        candidate: What is held against it, likewise.
        rules: Kernel rules to use in place of the built-in ones, for sides that are no report yet.
        marker: Regular expression of a user's own iteration marker, likewise.
        marker_family: Marker family to use, likewise.
        recover: Read what is whole of a damaged file, for sides that are paths.

    Returns:
        The differences, from `base` to `candidate`.

    Raises:
        MoeprofError: A path cannot be read, or a rules file cannot be used.
    """

    def reported(side: Comparable) -> Report:
        if isinstance(side, Report):
            return side
        # Late, so that comparing finished reports needs neither the reader nor the rules.
        from moeprof.analyzers.report import report
        from moeprof.traces.open import open_trace

        trace = side if isinstance(side, Trace) else open_trace(fspath(side), recover=recover)
        return report(trace, rules=rules, marker=marker, marker_family=marker_family)

    return compare(reported(base), reported(candidate))


def compare(base: Report, candidate: Report) -> Diff:
    """Compare two reports, per iteration; the values of a side hold for all its ranks.

    Where ranks disagree the most frequent value stands for the side, and a finding ``ranks-differ`` tells.
    """
    before, after = view("base", base), view("candidate", candidate)
    structure = structure_rows(before, after)
    kernels = kernel_rows(before, after)
    pairs = pair_figures(before, after)
    backends = backend_changes(before, after)
    verdict, why = _verdict(before, after, structure, kernels, pairs.values())
    times = time_rows(before, after, comparable=why is None)
    findings = [*disagreements(before, after, why), *backend_findings(backends)]
    if why is None and _equal_kernels(kernels, before) and base.subject != candidate.subject:
        findings.append(arms_equal(before, after, len(kernels)))
    material = Material(before, after, structure, kernels, pairs, backends, times, verdict, why)
    return Diff(
        base=_subject(base),
        candidate=_subject(candidate),
        summary=summarise(material),
        structure=structure,
        kernels=kernels,
        pairs=pair_changes(pairs),
        layers=(),
        time=times,
        serving=(),
        accuracy=(),
        environment=(),
        claims=(),
        verdict=verdict,
        findings=in_order(findings),
    )


def _subject(report: Report) -> DiffSubject:
    return DiffSubject(report.subject.arm, report.subject.source, len(report.ranks), 1)


def _verdict(
    base: Side,
    candidate: Side,
    structure: tuple[StructureRow, ...],
    kernels: tuple[KernelRow, ...],
    pairs: Iterable[PairChange],
) -> tuple[Verdict, str | None]:
    """Return the verdict, and why the sides are not comparable where they are not."""
    why = obstacle(base, candidate)
    if why is not None:
        return "not_comparable", why
    if not base.ranks:  # obstacle() found equal totals of the windows
        return "unchanged", None
    rows: list[StructureRow | KernelRow | PairChange] = [*structure, *kernels, *pairs]
    figures = [(row.base, row.candidate) for row in rows]
    if any(differ(before, after) for before, after in figures):
        return "changed", None
    missing = sum(before is None or after is None for before, after in figures)
    if missing:
        return "not_comparable", f"{missing} of {len(figures)} figures have no data on a side, and the others are equal"
    return "unchanged", None


def _equal_kernels(kernels: tuple[KernelRow, ...], base: Side) -> bool:
    # Without iterations both counts are None; the verdict then rests on equal totals.
    known = all(row.base is not None for row in kernels) or not base.ranks
    return bool(kernels) and known and all(row.base == row.candidate for row in kernels)
