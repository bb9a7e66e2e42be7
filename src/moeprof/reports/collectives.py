"""Sections of a report on collectives across ranks: clocks, arrivals, waits, and whose GEMMs take longer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from moeprof.analyzers.collectives.results import Collectives, RankArrivals, RankWork
from moeprof.reports.document import Block, Column, Lines, Section, Table
from moeprof.reports.units import NO_DATA, change, count, microseconds, milliseconds
from moeprof.wording import duration, plural

_BY = {
    "sequence": "by sequence number",
    "iteration": "by iteration and order",
    "order": "by order in the window",
}
_ROWS = 16
_Row = TypeVar("_Row")


def collective_sections(found: Collectives | None, labels: Mapping[str, str], *, wide: bool) -> Iterator[Section]:
    """Yield the sections; none where they were not asked for.

    Args:
        found: What was compared.
        labels: The short name of each rank.
        wide: Fold nothing.
    """
    if found is None:
        return
    title = "Collectives across ranks"
    if not found.matched or found.matched_by is None:
        yield Section(title, (Lines(("no collective was matched: no data on arrivals",)),))
    else:
        yield Section(title, tuple(_arrivals(found, labels, wide=wide)))
    if found.work:
        yield Section("GEMM time of ranks per iteration", (_work(found.work, labels, wide=wide),))


def _arrivals(found: Collectives, labels: Mapping[str, str], *, wide: bool) -> Iterator[Block]:
    assert found.matched_by is not None
    lines = [f"{plural(found.matched, 'collective')} matched {_BY[found.matched_by]}"]
    if not found.trusted:
        lines.append("their ends lie further apart than they last: the figures below are not to be relied on")
    yield Lines(tuple(lines))
    rows = tuple(
        (
            one.class_,
            count(one.matched),
            *(microseconds(ns) for ns in (one.skew_ns.median, one.skew_ns.min, one.skew_ns.max)),
        )
        for one in found.classes
    )
    titles = ("matched", "skew, us", "least", "most")
    yield Table(
        (Column("class"), *(Column(title, "number") for title in titles)), rows, ("skew: first to last arrival",)
    )
    shown, note = _shown(found.ranks, wide=wide, key=lambda rank: -rank.caused_ns)
    figures = ("shift", "clock, us", "residual, us", "came last", "waited, ms", "made others wait, ms")
    columns = (Column("rank"), *(Column(title, "number") for title in figures), Column("waited most for"))
    ranks = tuple(_rank(rank, labels) for rank in shown)
    notes = (
        "shift: iterations by which the window begins later than the first rank's; clock: against the ranks' common one, taken"
        " from ends of collectives and away from arrivals",
        *note,
    )
    yield Table(columns, ranks, notes)


def _rank(rank: RankArrivals, labels: Mapping[str, str]) -> tuple[str, ...]:
    most = sorted(rank.waited_for_ns.items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"{labels.get(other, other)} {duration(ns)}" for other, ns in most[:2])
    return (
        labels.get(rank.rank, rank.rank),
        str(rank.shift),
        microseconds(rank.offset_ns),
        microseconds(rank.residual_ns),
        str(rank.last),
        milliseconds(rank.waited_ns),
        milliseconds(rank.caused_ns),
        named or NO_DATA,
    )


def _work(work: Sequence[RankWork], labels: Mapping[str, str], *, wide: bool) -> Table:
    shown, note = _shown(work, wide=wide, key=lambda one: -(one.against_others or 0))
    rows = tuple(
        (
            labels.get(one.rank, one.rank),
            count(one.launches),
            milliseconds(one.expert_ns),
            change(one.expert_against_others),
            milliseconds(one.dense_ns),
            change(one.dense_against_others),
        )
        for one in shown
    )
    titles = ("GEMMs", "experts, ms", "to others", "dense, ms", "to others")
    columns = (Column("rank"), *(Column(title, "number") for title in titles))
    notes = ("kernel sums, medians; to others: against the median of the other ranks with as many GEMMs", *note)
    return Table(columns, rows, notes)


def _shown(rows: Sequence[_Row], *, wide: bool, key: Callable[[_Row], float]) -> tuple[Sequence[_Row], tuple[str, ...]]:
    """Return all rows, or of many the first by key, in their order, with a note on the rest."""
    if wide or len(rows) <= _ROWS:
        return rows, ()
    kept = sorted(range(len(rows)), key=lambda index: (key(rows[index]), index))[:_ROWS]
    return [rows[index] for index in sorted(kept)], (f"{len(rows) - _ROWS} more ranks (--wide shows them)",)
