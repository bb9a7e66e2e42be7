"""Launches per iteration and pairs of a report, shown once for all ranks that agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from moeprof.analyzers.results import ClassCount, RankReport
from moeprof.analyzers.tables import PHASES
from moeprof.reports.document import Block, Column, Lines, Section, Table
from moeprof.reports.units import NO_DATA, between, count
from moeprof.wording import safe

Labelled: TypeAlias = tuple[str, RankReport]

CPU_ONLY = "no GPU activity recorded (CPU-only trace: operators are counted)"
NO_ACTIVITY = "no GPU activity recorded"
NO_COUNTS = "no data: whole graphs were recorded, not the kernels in them"
_VALUES_SHOWN = 6


def structure_sections(ranks: Sequence[Labelled]) -> tuple[Section, ...]:
    """Return one section for each group of ranks with the same launches and pairs per iteration."""
    groups: dict[object, list[Labelled]] = {}
    for label, rank in ranks:
        groups.setdefault(_shape(rank), []).append((label, rank))
    return tuple(_section(group, len(ranks)) for group in groups.values())


def _shape(rank: RankReport) -> object:
    if rank.counts_over is None:
        return rank.rank, rank.source
    counts = tuple((row.class_, row.phase, row.per_iteration, row.distinct) for row in rank.counts)
    ag_rs, gemm = rank.pairs.ag_rs, rank.pairs.moe_gemm
    pairs = (ag_rs.target, ag_rs.draft, ag_rs.sample, ag_rs.per_iteration, ag_rs.unmatched_ag, ag_rs.unmatched_rs)
    gemms = (gemm.target, gemm.draft, gemm.sample, gemm.per_iteration, gemm.unmatched)
    return rank.counts_over, rank.launch_unit, rank.time_ns.wall is None, counts, pairs, ag_rs.equivalents, gemms


def _section(group: Sequence[Labelled], all_ranks: int) -> Section:
    first = group[0][1]
    blocks: list[Block] = []
    if first.time_ns.wall is None:
        blocks.append(Lines((CPU_ONLY if first.launch_unit == "operator" else NO_ACTIVITY,)))
    if first.counts:
        blocks.append(_launches([rank for _, rank in group]))
    else:
        blocks.append(Lines((NO_COUNTS if first.coverage.graph_replays else "no launches counted",)))
    blocks.append(_pairs([rank for _, rank in group]))
    return Section(_title(group, all_ranks), tuple(blocks))


def _title(group: Sequence[Labelled], all_ranks: int) -> str:
    over = group[0][1].counts_over
    if over is None:
        title = "Launches in the whole trace"
    else:
        title = "Launches per iteration" if over == "all" else f"Launches per {safe(over)} iteration"
    if all_ranks == 1:
        return title
    if len(group) == all_ranks:
        return f"{title} ({all_ranks} ranks agree)"
    labels = ", ".join(label for label, _ in group)
    return f"{title} ({labels}{' agree' if len(group) > 1 else ''})"


def _launches(ranks: Sequence[RankReport]) -> Table:
    first = ranks[0]
    whole = first.counts_over is None
    phases = [phase for phase in PHASES if any(row.phase == phase for row in first.counts)]
    cells = {(row.class_, row.phase): row for row in first.counts}
    rows = []
    for class_ in dict.fromkeys(row.class_ for row in first.counts):
        found = [cells.get((class_, phase)) for phase in phases]
        totals = sorted(sum(row.total for row in rank.counts if row.class_ == class_) for rank in ranks)
        total = between([str(value) for value in totals])
        rows.append((class_, *(_cell(row, whole=whole) for row in found), total))
    columns = (Column("class"), *(Column(phase, "number") for phase in (*phases, "total")))
    notes = [_varies(row) for row in first.counts if row.constant is False]
    if len(ranks) > 1 and any(".." in row[-1] for row in rows):
        notes.append("total a .. b: ranks counted different numbers of iterations")
    return Table(columns, tuple(rows), tuple(notes))


def _cell(row: ClassCount | None, *, whole: bool) -> str:
    if row is None:
        return "0"
    if whole:
        return str(row.total)
    mark = "*" if row.constant is False else ""
    return f"{mark}{count(row.per_iteration)}"


def _varies(row: ClassCount) -> str:
    shown = " or ".join(str(value) for value in row.distinct[:_VALUES_SHOWN])
    more = len(row.distinct) - _VALUES_SHOWN
    others = f" or {more} other values" if more > 0 else ""
    return f"* not constant: {row.class_} in {row.phase} is {shown}{others}; the commonest is shown"


def _totals(totals: Sequence[int | None]) -> str:
    known = sorted(total for total in totals if total is not None)
    return between([str(total) for total in known]) if known else NO_DATA


def _pairs(ranks: Sequence[RankReport]) -> Table:
    ag_rs, gemm = ranks[0].pairs.ag_rs, ranks[0].pairs.moe_gemm
    columns = (
        Column("pairs"),
        *(Column(title, "number") for title in (*PHASES, "per iteration", "total", "unmatched")),
    )
    left = (
        NO_DATA
        if ag_rs.unmatched_ag is None and ag_rs.unmatched_rs is None
        else f"{count(ag_rs.unmatched_ag)} AG, {count(ag_rs.unmatched_rs)} RS"
    )
    rows = (
        (
            "AG/RS (dispatch, combine)",
            *(count(value) for value in (ag_rs.target, ag_rs.draft, ag_rs.sample)),
            _marked(ag_rs.per_iteration, ag_rs.constant),
            _totals([rank.pairs.ag_rs.total for rank in ranks]),
            left,
        ),
        (
            "MoE GEMM (w13, w2)",
            *(count(value) for value in (gemm.target, gemm.draft, gemm.sample)),
            _marked(gemm.per_iteration, gemm.constant),
            _totals([rank.pairs.moe_gemm.total for rank in ranks]),
            count(gemm.unmatched),
        ),
    )
    notes = []
    if ag_rs.equivalents:
        notes.append(f"AG/RS: {ag_rs.equivalents} of these are broadcast and reduce in place of AG and RS")
    if ag_rs.constant is False or gemm.constant is False:
        notes.append("* pairs are not constant; the commonest value is shown")
    return Table(columns, rows, tuple(notes))


def _marked(value: int | None, constant: bool | None) -> str:
    return f"{'*' if constant is False else ''}{count(value)}"
