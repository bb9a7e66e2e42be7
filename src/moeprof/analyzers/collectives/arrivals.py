"""Clocks, arrivals and waits of matched collectives."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from moeprof.analyzers.collectives.match import Matched, by_rank
from moeprof.analyzers.collectives.results import ClassArrivals, RankArrivals
from moeprof.analyzers.times import spread

#: Collectives that end at one time on all ranks; a broadcast's root may leave early.
_ENDS_TOGETHER = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all")


def offsets(rows: pl.DataFrame) -> pl.DataFrame:
    """Estimate the clocks of ranks from the ends of their collectives.

    Args:
        rows: ``rank``, ``collective``, ``class``, ``end_ns``.

    Returns:
        ``rank``, ``offset_ns`` (its clock minus the common one: the median distance of its ends from the median end of each
        collective) and ``residual_ns`` (the median distance that remains).

    Example:
        >>> ends = {"rank": ["a", "b", "a", "b"], "collective": [1, 1, 2, 2], "class": ["all_gather"] * 4, "end_ns": [10, 30, 50, 70]}
        >>> offsets(pl.DataFrame(ends)).rows()
        [('a', -10, 0), ('b', 10, 0)]
    """
    together = rows.filter(pl.col("class").is_in(_ENDS_TOGETHER))
    used = rows if together.is_empty() else together
    origin = used["end_ns"].min()
    origin = origin if isinstance(origin, int) else 0  # medians are floats: keep the digits small
    common = (pl.col("end_ns") - origin).median().over("collective")
    apart = used.with_columns((pl.col("end_ns") - origin - common).alias("apart"))
    residual = (pl.col("apart") - pl.col("apart").median()).abs().median()
    return (
        apart.group_by("rank")
        .agg(
            pl.col("apart").median().round().cast(pl.Int64).alias("offset_ns"),
            residual.round().cast(pl.Int64).alias("residual_ns"),
        )
        .sort("rank")
    )


def arrivals(rows: pl.DataFrame, clocks: pl.DataFrame) -> pl.DataFrame:
    """Say when each rank came to its collectives and how long it waited there.

    Args:
        rows: `moeprof.analyzers.collectives.match.Matched.rows`.
        clocks: What `offsets` returns.

    Returns:
        The rows with ``arrival_ns`` in common time, ``wait_ns`` (until the last rank came, at most to the own end), ``skew_ns``
        of the collective and ``last``, the rank that came last (null where several did).
    """
    arrival = pl.col("start_ns") - pl.col("offset_ns")
    latest, earliest = pl.col("arrival_ns").max().over("collective"), pl.col("arrival_ns").min().over("collective")
    is_last = pl.col("arrival_ns") == latest
    return (
        rows.join(clocks.select("rank", "offset_ns"), on="rank", maintain_order="left")
        .with_columns(arrival.alias("arrival_ns"))
        .with_columns(
            pl.min_horizontal(latest - pl.col("arrival_ns"), pl.col("end_ns") - pl.col("start_ns")).alias("wait_ns"),
            (latest - earliest).alias("skew_ns"),
            pl.when(is_last.sum().over("collective") == 1)
            .then(pl.col("rank").filter(is_last).first().over("collective"))
            .alias("last"),
        )
    )


def class_arrivals(found: pl.DataFrame) -> tuple[ClassArrivals, ...]:
    """Return the skew of arrivals by class, from what `arrivals` returns."""
    each = found.unique("collective", keep="first", maintain_order=True)
    result = []
    for name in each["class"].unique().sort().to_list():
        own = each.filter(pl.col("class") == name)["skew_ns"]
        skew = spread(own)
        if skew is not None:
            result.append(ClassArrivals(name, own.len(), skew))
    return tuple(result)


def rank_arrivals(
    found: pl.DataFrame, clocks: pl.DataFrame, matched: Matched, ranks: Sequence[str]
) -> tuple[RankArrivals, ...]:
    """Return how each rank comes to its collectives, from what `arrivals` and `offsets` return."""
    waits = found.filter(pl.col("last").is_not_null(), pl.col("last") != pl.col("rank"))
    pairs = waits.group_by("rank", "last").agg(pl.col("wait_ns").sum()).sort("rank", "last")
    waited_for: dict[str, dict[str, int]] = {rank: {} for rank in ranks}
    for rank, last, ns in pairs.iter_rows():
        if ns:
            waited_for[rank][last] = int(ns)
    caused = by_rank(waits.group_by(pl.col("last").alias("rank")).agg(pl.col("wait_ns").sum()), ranks, "wait_ns")
    waited = by_rank(found.group_by("rank").agg(pl.col("wait_ns").sum()), ranks, "wait_ns")
    last = by_rank(found.filter(pl.col("last") == pl.col("rank")).group_by("rank").agg(pl.len().alias("n")), ranks, "n")
    offset, residual = by_rank(clocks, ranks, "offset_ns"), by_rank(clocks, ranks, "residual_ns")
    return tuple(
        RankArrivals(
            rank=rank,
            shift=matched.shifts[rank],
            offset_ns=offset[rank],
            residual_ns=residual[rank],
            last=last[rank],
            waited_ns=waited[rank],
            waited_for_ns=waited_for[rank],
            caused_ns=caused[rank],
        )
        for rank in ranks
    )
