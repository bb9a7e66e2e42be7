"""Times of the ranks of a report: over the whole trace and per iteration, each figure labelled with what it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moeprof.analyzers.results import RankReport, Spread, TimeTotals
from moeprof.reports.document import Column, Lines, Section, Table
from moeprof.reports.structure import NO_ACTIVITY, Labelled
from moeprof.reports.units import NO_DATA, between, milliseconds

_RANKS_AS_COLUMNS = 2

#: Field of `TimeTotals`, its label, and what it is.
_TOTALS = (
    ("kernel_sum", "kernel sum", "durations of all kernels added; overlaps count twice"),
    ("kernel_busy", "kernel busy", "at least one kernel runs"),
    ("gpu_busy", "GPU busy", "at least one kernel, memcpy or memset runs"),
    ("wall", "wall", "first start to last end on the GPU"),
    ("compute_busy", "compute", "at least one kernel runs that is no communication"),
    ("comm_busy", "comm.", "at least one communication kernel runs"),
    ("comm_exposed", "exposed", "communication runs and no computation does"),
    ("idle", "idle", "wall without GPU busy"),
)
#: Figures per iteration, in the order of `_spreads`.
_FIGURES = (
    "wall",
    "GPU busy",
    "kernel sum",
    "exposed comm.",
    "GPU busy, target",
    "GPU busy, draft",
    "GPU busy, sample",
)


def totals_section(ranks: Sequence[Labelled]) -> Section:
    """Return the times over the whole trace: figures as rows for up to two ranks, else ranks as rows."""
    title = "Times over the whole trace (ms)"
    if all(rank.time_ns.wall is None for _, rank in ranks):
        return Section(title, (Lines((NO_ACTIVITY,)),))
    labelled = [(label, rank.time_ns) for label, rank in ranks]
    if len(ranks) <= _RANKS_AS_COLUMNS:
        columns = (Column("figure"), *(Column(label, "number") for label, _ in labelled), Column("what it is"))
        rows = tuple(
            (name, *(_total(totals, field) for _, totals in labelled), meaning) for field, name, meaning in _TOTALS
        )
        return Section(title, (Table(columns, rows),))
    columns = (Column("rank"), *(Column(name, "number") for _, name, _ in _TOTALS))
    rows = tuple((label, *(_total(totals, field) for field, _, _ in _TOTALS)) for label, totals in labelled)
    notes = tuple(f"{name}: {meaning}" for _, name, meaning in _TOTALS)
    return Section(title, (Table(columns, rows, notes),))


def per_iteration_section(ranks: Sequence[Labelled], *, wide: bool) -> Section:
    """Return the medians per iteration, with ranges where the ranks are columns or the page is wide."""
    title = "Times per iteration (ms)"
    if not any(spread for _, rank in ranks for spread in _spreads(rank)):
        return Section(title, (Lines(("no data",)),))
    notes: tuple[str, ...] = (_steady([rank for _, rank in ranks]),)
    if len(ranks) <= _RANKS_AS_COLUMNS:
        columns = (Column("median [least .. greatest]"), *(Column(label, "number") for label, _ in ranks))
        rows = tuple(
            (name, *(_range(spreads[index]) for spreads in (_spreads(rank) for _, rank in ranks)))
            for index, name in enumerate(_FIGURES)
        )
        return Section(title, (Table(columns, rows, notes),))
    if wide:
        columns = (Column("rank"), Column("figure"), *(Column(word, "number") for word in ("median", "least", "most")))
        rows = tuple(
            (label, name, *_three(spread))
            for label, rank in ranks
            for name, spread in zip(_FIGURES, _spreads(rank), strict=True)
        )
        return Section(title, (Table(columns, rows, notes),))
    columns = (Column("rank"), *(Column(name.replace("GPU busy, ", ""), "number") for name in _FIGURES))
    rows = tuple((label, *(_three(spread)[0] for spread in _spreads(rank))) for label, rank in ranks)
    notes = ("medians; target, draft, sample: GPU busy of the phase (--wide shows ranges)", *notes)
    return Section(title, (Table(columns, rows, notes),))


def _spreads(rank: RankReport) -> tuple[Spread | None, ...]:
    times = rank.per_iteration_ns
    phases = times.phases
    return (
        times.wall,
        times.gpu_busy,
        times.kernel_sum,
        times.comm_exposed,
        phases.target,
        phases.draft,
        phases.sample,
    )


def _steady(ranks: Sequence[RankReport]) -> str:
    def told(values: Iterable[int]) -> str:
        return between([str(value) for value in sorted(values)])

    times = [rank.per_iteration_ns for rank in ranks]
    numbers = told(time.iterations for time in times)
    walls = told(time.iterations if time.wall_iterations is None else time.wall_iterations for time in times)
    over = "" if walls == numbers else f", over {walls} of them as the last one of a trace has no next marker"
    return (
        f"over {numbers} steady iterations (complete, of the kind counted, no start transient); "
        f"wall: marker start to the next one's{over}; kernel sum is not elapsed time"
    )


def _total(totals: TimeTotals, field: str) -> str:
    value: int | None = getattr(totals, field)
    return milliseconds(value)


def _range(spread: Spread | None) -> str:
    if spread is None:
        return NO_DATA
    median, least, most = _three(spread)
    return f"{median} [{least} .. {most}]"


def _three(spread: Spread | None) -> tuple[str, str, str]:
    if spread is None:
        return NO_DATA, NO_DATA, NO_DATA
    return milliseconds(spread.median), milliseconds(spread.min), milliseconds(spread.max)
