"""Compare two reports: what was launched differently per iteration, and how the times of the captures lie."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from moeprof.analyzers.comparison.differences import (
    backend_changes,
    differ,
    kernel_rows,
    pair_changes,
    pair_figures,
    structure_rows,
    time_rows,
)
from moeprof.analyzers.comparison.disagreements import arms_equal, backend_findings, disagreements, obstacle
from moeprof.analyzers.comparison.kernel_times import kernel_time_rows
from moeprof.analyzers.comparison.sentences import Material, summarise
from moeprof.analyzers.comparison.sides import Side, view
from moeprof.analyzers.comparison.steadiness import Unsteady, unsteady, varying, varying_finding
from moeprof.analyzers.layers.changes import layer_changes, representative, variant_changes
from moeprof.analyzers.results import (
    Diff,
    DiffSubject,
    KernelRow,
    PairChange,
    RankReport,
    Report,
    StructureRow,
    Verdict,
)
from moeprof.findings import in_order


def compare(base: Report, candidate: Report) -> Diff:
    """Compare two reports, per iteration; the values of a side hold for all its ranks.

    Where ranks disagree the most frequent value stands for the side, and a finding ``ranks-differ`` tells.
    """
    before, after = view("base", base), view("candidate", candidate)
    structure = structure_rows(before, after)
    kernels = kernel_rows(before, after)
    pairs = pair_figures(before, after)
    backends = backend_changes(before, after)
    noise = varying(before, after)
    shifted = tuple(row for row in structure if (row.class_, row.phase) in noise and row.base != row.candidate)
    settled = tuple(row for row in structure if row not in shifted)
    structure = tuple(replace(row, change="same") if row in shifted else row for row in structure)
    on_both = before.kernel_keys() & after.kernel_keys()
    told = tuple(
        row
        for row in kernels
        if row.base == row.candidate
        or (row.class_, row.phase) not in noise
        or (row.name, row.class_, row.phase) not in on_both
    )
    verdict, why = _verdict(before, after, settled, told, pairs.values())
    if _contents(before) == _contents(after):  # also where both hold nothing: a copy has not changed
        verdict, why = "unchanged", None
    minorities = unsteady(before, after) if why is None and before.ranks else ()
    if minorities and verdict == "unchanged":
        verdict = "changed"
    times = time_rows(before, after, comparable=why is None)
    findings = [*disagreements(before, after, why), *backend_findings(backends)]
    findings += [found.finding() for found in minorities if _hidden(found, structure)]
    findings += [varying_finding(shifted)] if shifted and why is None else []
    if why is None and not minorities and _equal_kernels(kernels, before) and base.subject != candidate.subject:
        findings.append(arms_equal(before, after, len(kernels)))
    material = Material(before, after, settled, told, kernels, pairs, backends, times, verdict, why)
    structures = [representative([rank.layers for rank in side.ranks]) for side in (base, candidate)]
    return Diff(
        base=_subject(base),
        candidate=_subject(candidate),
        summary=_with_minorities(summarise(material), minorities, structure),
        structure=structure,
        kernels=kernels,
        pairs=pair_changes(pairs),
        layers=layer_changes(*structures),
        layer_notes=variant_changes(*structures),
        time=times,
        serving=(),
        accuracy=(),
        environment=(),
        claims=(),
        verdict=verdict,
        findings=in_order(findings),
        kernel_times=kernel_time_rows(before, after) if why is None else (),
    )


def _hidden(found: Unsteady, structure: tuple[StructureRow, ...]) -> bool:
    """Tell whether the commonest values of both sides are equal, so that the table shows nothing of it."""
    return all(row.base == row.candidate for row in structure if (row.class_, row.phase) == (found.class_, found.phase))


def _with_minorities(
    summary: tuple[str, ...], minorities: tuple[Unsteady, ...], structure: tuple[StructureRow, ...]
) -> tuple[str, ...]:
    hidden = tuple(found.sentence for found in minorities if _hidden(found, structure))
    return (*hidden, *(text for text in summary if not (hidden and text.startswith("nothing changed"))))


def _contents(side: Side) -> tuple[str | None, tuple[RankReport, ...]]:
    """Return all that a report says of its ranks, but for what comes from the names of files."""
    return side.counts_over, tuple(replace(rank, rank=None, source="") for rank in side.report.ranks)


def _subject(report: Report) -> DiffSubject:
    units = {rank.launch_unit for rank in report.ranks}
    unit = units.pop() if len(units) == 1 else None
    return DiffSubject(report.subject.arm, report.subject.source, len(report.ranks), 1, unit)


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
