"""Put together what collectives tell across ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from moeprof.analyzers.collectives.arrivals import arrivals, class_arrivals, offsets, rank_arrivals
from moeprof.analyzers.collectives.match import Matched, match
from moeprof.analyzers.collectives.results import Collectives, Unmatched
from moeprof.analyzers.collectives.work import rank_work
from moeprof.analyzers.tables import Attribution
from moeprof.traces.trace import RankTrace

_NAMED = 20  # places with unequal numbers


def compare_ranks(
    ranks: Mapping[str, tuple[RankTrace, Attribution]],
) -> tuple[Collectives | None, dict[str, pl.DataFrame]]:
    """Match the collectives of ranks and say who waits for whom.

    Args:
        ranks: Per label, the rank and its attribution.

    Returns:
        The comparison (None for a single rank), and by label ``event`` and ``until_ns`` in the rank's own time: when the last
        rank had come to a collective. Ranks have none where the match cannot be trusted.
    """
    if len(ranks) < 2:
        return None, {}
    labels = tuple(ranks)
    work = rank_work({label: found for label, (_, found) in ranks.items()})
    matched = match(ranks)
    unmatched = tuple(_unmatched(matched))
    known = all(rank.metadata.base_time_known for rank, _ in ranks.values())
    if matched.rows.is_empty() or not known:
        return Collectives(0, None, trusted=False, unmatched=unmatched, classes=(), ranks=(), work=work), {}
    clocks = offsets(matched.rows)
    found = arrivals(matched.rows, clocks)
    trusted = _trusted(found, clocks)
    result = Collectives(
        matched=found["collective"].n_unique(),
        matched_by=matched.by,
        trusted=trusted,
        unmatched=unmatched,
        classes=class_arrivals(found),
        ranks=rank_arrivals(found, clocks, matched, labels),
        work=work,
    )
    return result, _waits(found, ranks) if trusted else {}


def _trusted(found: pl.DataFrame, clocks: pl.DataFrame) -> bool:
    """Tell whether ends agree within what a collective lasts: other matches put them whole layers apart."""
    shortest = (
        found.group_by("collective").agg((pl.col("end_ns") - pl.col("start_ns")).min().alias("ns"))["ns"].median()
    )
    worst = clocks["residual_ns"].max()
    return isinstance(shortest, float) and isinstance(worst, int) and worst <= max(shortest, 1_000.0)


def _waits(found: pl.DataFrame, ranks: Mapping[str, tuple[RankTrace, Attribution]]) -> dict[str, pl.DataFrame]:
    return {
        label: found.filter(pl.col("rank") == label).select(
            "event", (pl.col("start_ns") - rank.metadata.base_time_ns + pl.col("wait_ns")).alias("until_ns")
        )
        for label, (rank, _) in ranks.items()
    }


def _unmatched(matched: Matched) -> Iterator[Unmatched]:
    places = (
        matched.unequal.sort("iteration", "class", "rank", nulls_last=True)
        .group_by("iteration", "class", maintain_order=True)
        .agg("rank", "count")
    )
    for iteration, class_, labels, counts in places.head(_NAMED).iter_rows():
        yield Unmatched(iteration, class_, {label: int(count) for label, count in zip(labels, counts, strict=True)})
