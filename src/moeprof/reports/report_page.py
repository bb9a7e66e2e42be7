"""The page of a report: what the trace is, then structure, times, kernels, ranks, coverage, findings."""

from __future__ import annotations

from collections.abc import Sequence

from moeprof.analyzers.results import RankReport, Report, Spread
from moeprof.analyzers.tables import KINDS
from moeprof.reports.collectives import collective_sections
from moeprof.reports.document import Block, Column, Lines, Page, Section, Table
from moeprof.reports.finding_lines import findings_section
from moeprof.reports.layers import layer_sections
from moeprof.reports.names import NO_RANK, short_ranks
from moeprof.reports.rank_times import per_iteration_section, totals_section
from moeprof.reports.structure import structure_sections
from moeprof.reports.timeline import timeline_sections
from moeprof.reports.units import between, count, milliseconds
from moeprof.wording import duration, percent, plural, safe

_RANKS_NAMED = 8
_KERNELS_SHOWN = 10
_LAST_SHOWN = 4


def report_page(report: Report, *, wide: bool = False, layers: bool = False) -> Page:
    """Return the page of a report.

    Args:
        report: What to show.
        wide: Fold nothing.
        layers: Show the folded structure.
    """
    alone = len(report.ranks) == 1
    labels = ["value"] if alone else short_ranks([rank.rank for rank in report.ranks])
    ranks = tuple(zip(labels, report.ranks, strict=True))
    by_key = {rank.rank: "" if alone else label for label, rank in ranks}
    sections = [
        Section("Iterations", (Lines(_iterations(ranks)),)),
        *(layer_sections(ranks, wide=wide) if layers else ()),
        *structure_sections(ranks),
        totals_section(ranks),
        per_iteration_section(ranks, wide=wide),
        *timeline_sections(ranks, wide=wide),
        _kernels(report.ranks, wide=wide),
        *_across(report, by_key),
        *collective_sections(report.across_ranks.collectives, _labels(by_key), wide=wide),
        _coverage(ranks),
        findings_section(report.findings, by_key, wide=wide),
    ]
    return Page("moeprof report", _facts(report, labels), tuple(sections))


def _labels(by_key: dict[str | None, str]) -> dict[str, str]:
    return {"unknown" if key is None else key: label for key, label in by_key.items()}


def _facts(report: Report, labels: Sequence[str]) -> tuple[tuple[str, str], ...]:
    facts = [("source", safe(report.subject.source))]
    if report.subject.arm is not None:
        facts.insert(0, ("arm", safe(report.subject.arm)))
    facts.append(("ranks", _ranks_named(report, labels)))
    devices = list(dict.fromkeys(safe(rank.device) for rank in report.ranks if rank.device is not None))
    facts.append(("device", ", ".join(devices) if devices else "no data"))
    return tuple(facts)


def _ranks_named(report: Report, labels: Sequence[str]) -> str:
    if not labels:
        return "none"
    if len(labels) == 1:
        rank = report.ranks[0]
        return f"1 {NO_RANK}" if rank.rank is None else f"1 ({safe(rank.rank)})"
    named = ", ".join(labels[:_RANKS_NAMED])
    more = len(labels) - _RANKS_NAMED
    return f"{len(labels)} ({named}{f' and {more} more' if more > 0 else ''})"


def _iterations(ranks: Sequence[tuple[str, RankReport]]) -> tuple[str, ...]:
    said: dict[str, list[str]] = {}
    for label, rank in ranks:
        said.setdefault(_iteration_line(rank), []).append(label)
    if len(said) == 1 and len(ranks) > 1:
        return tuple(f"{line} ({len(ranks)} ranks)" for line in said)
    if len(ranks) == 1:
        return tuple(said)
    return tuple(f"{', '.join(labels)}: {line}" for line, labels in said.items()) or ("no rank was read",)


def _iteration_line(rank: RankReport) -> str:
    iterations = rank.iterations
    if iterations.marker is None:
        return "no iteration markers: the trace is one window, nothing is known per iteration"
    known = [(kind, getattr(iterations, kind)) for kind in KINDS if getattr(iterations, kind) is not None]
    kinds = "".join(f"{number} {kind}, " for kind, number in known)
    over = "" if rank.counts_over is None else f"; counts over {safe(rank.counts_over)}"
    total = plural(iterations.total, "iteration")
    return f"{total} ({safe(iterations.marker)} markers): {kinds}{iterations.partial} partial{over}"


def _kernels(ranks: Sequence[RankReport], *, wide: bool) -> Section:
    merged: dict[tuple[str, str, str], list[tuple[int | None, int]]] = {}
    for rank in ranks:
        for kernel in rank.kernels:
            key = (kernel.name, kernel.class_, kernel.phase)
            merged.setdefault(key, []).append((kernel.per_iteration, kernel.kernel_sum))
    ordered = sorted(merged, key=lambda key: (-max(total for _, total in merged[key]), key))
    shown = ordered if wide else ordered[:_KERNELS_SHOWN]
    rows = []
    for key in shown:
        name, class_, phase = key
        launches = sorted({value for value, _ in merged[key] if value is not None})
        sums = sorted(total for _, total in merged[key])
        times = between([milliseconds(total) for total in sums])
        rows.append((between([str(value) for value in launches]), times, class_, phase, name))
    noun = _unit(ranks)
    title = f"Largest {noun}s"
    if not rows:
        return Section(title, (Lines(("no launches counted",)),))
    over = f"launches per iteration, {noun} sum over the iterations counted"
    notes = [f"{over}; a collective's sum holds its wait for the other ranks"]
    if len(ranks) > 1:
        notes.append("a .. b: least and greatest rank")
    if len(shown) < len(ordered):
        notes.append(f"{plural(len(ordered) - len(shown), f'more {noun}')} (--wide shows them)")
    columns = (
        Column("per iter.", "number"),
        Column("sum, ms", "number"),
        Column("class"),
        Column("phase"),
        Column(noun, "name"),
    )
    return Section(title, (Table(columns, tuple(rows), tuple(notes)),), long=True)


def _unit(ranks: Sequence[RankReport]) -> str:
    return "operator" if {rank.launch_unit for rank in ranks} == {"operator"} else "kernel"


def _across(report: Report, labels: dict[str | None, str]) -> tuple[Section, ...]:
    across = report.across_ranks
    if len(report.ranks) < 2:
        return ()
    agreement = {None: "agreement: no data", True: f"{len(report.ranks)} ranks agree", False: "ranks differ"}
    blocks: list[Block] = [Lines((agreement[across.agree],))]
    if across.differences:
        rows = tuple(
            (safe(item.what), ", ".join(f"{labels.get(key, safe(key))} {value}" for key, value in item.values.items()))
            for item in across.differences
        )
        blocks.append(Table((Column("figure"), Column("value by rank")), rows))
    if across.skew is None:
        blocks.append(Lines(("skew of collectives: no data",)))
    else:
        last = sorted(across.skew.last_arrivals.items(), key=lambda item: (-item[1], item[0]))
        late = ", ".join(f"{labels.get(key, safe(key))} {plural(times, 'time')}" for key, times in last[:_LAST_SHOWN])
        late += f" and {plural(len(last) - _LAST_SHOWN, 'other')}" if len(last) > _LAST_SHOWN else ""
        blocks.append(
            Lines(
                (
                    f"{plural(across.skew.matched, 'collective')} matched across ranks",
                    f"arrivals apart by {_spread(across.skew.arrival_ns)}",
                    f"ends apart by {_spread(across.skew.end_ns)}",
                    f"last to arrive: {late or 'no data'}",
                )
            )
        )
    return (Section("Across ranks", tuple(blocks)),)


def _spread(spread: Spread) -> str:
    return f"{duration(spread.median)} (median; {duration(spread.min)} .. {duration(spread.max)})"


def _coverage(ranks: Sequence[tuple[str, RankReport]]) -> Section:
    rows: list[tuple[str, ...]] = []
    for label, rank in ranks:
        coverage = rank.coverage
        figures = (
            coverage.kernels,
            coverage.linked,
            coverage.unlinked,
            coverage.outside_iterations,
            coverage.invalid,
            coverage.unclassified_launches,
        )
        rows.append((label, *(count(figure) for figure in figures), percent(coverage.unclassified_time_share)))
    titles = ("kernels", "linked", "unlinked", "outside iter.", "invalid", "unclassified", "share of time")
    columns: tuple[Column, ...] = (Column("rank"), *(Column(title, "number") for title in titles))
    if len(ranks) == 1:
        rows, columns = [row[1:] for row in rows], columns[1:]
    unit = _unit([rank for _, rank in ranks])
    notes = (f"unclassified: launches of class other, and their share of {unit} time",)
    return Section("Coverage", (Table(columns, tuple(rows), notes),))
