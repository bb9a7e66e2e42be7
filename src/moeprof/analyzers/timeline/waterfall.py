"""From the median wall time of one arm to that of another: parts that add up to the difference, to the ns."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from moeprof.analyzers.medians import median
from moeprof.analyzers.timeline.results import Tables, Waterfall, WaterfallPart

_LOAD = ("kind", "requests", "tokens")
_PART = ("state", "class", "phase")


def waterfall(base: Sequence[Tables], candidate: Sequence[Tables]) -> Waterfall | None:
    """Explain the difference of the median wall times of two arms, over their steady iterations with equal batches.

    Of the batches that both arms ran, that with the most iterations on the side that has fewer of them is taken. The parts
    are means over the middle half of them by wall time, so they add up to a wall time close to the median; what is left over is
    the rest.

    Args:
        base: The tables of each rank of one arm.
        candidate: Those of the other.

    Returns:
        The waterfall; None where no batch was run by both.
    """
    before, after = _steady(base), _steady(candidate)
    load = _common_load(before, after)
    if load is None:
        return None
    before, after = (frame.join(load, on=list(_LOAD), how="semi", nulls_equal=True) for frame in (before, after))
    first, second = median(before["wall_ns"].to_list()), median(after["wall_ns"].to_list())
    assert first is not None
    assert second is not None
    parts = _parts(_means(base, _middle(before)), _means(candidate, _middle(after)))
    kind, requests, tokens = load.row(0)
    return Waterfall(
        kind=kind,
        requests=requests,
        tokens=tokens,
        base_iterations=before.height,
        candidate_iterations=after.height,
        base_ns=first,
        candidate_ns=second,
        difference_ns=second - first,
        parts=parts,
        rest_ns=second - first - sum(part.difference_ns for part in parts),
    )


def _steady(ranks: Sequence[Tables]) -> pl.DataFrame:
    frames = [
        tables.per_iteration.filter("counted", ~pl.col("transient")).select(
            pl.lit(rank).alias("rank"), "iteration", *(pl.col(name) for name in _LOAD), "wall_ns"
        )
        for rank, tables in enumerate(ranks)
    ]
    return pl.concat(frames).with_columns(pl.col("kind").cast(pl.String))


def _common_load(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame | None:
    counts = [frame.group_by(_LOAD).len(name=name) for frame, name in ((before, "first"), (after, "second"))]
    shared = counts[0].join(counts[1], on=list(_LOAD), how="inner", nulls_equal=True)
    if shared.is_empty():
        return None
    return (
        shared.with_columns(pl.min_horizontal("first", "second").alias("fewer"))
        .sort("fewer", "tokens", "requests", "kind", descending=[True, True, True, False], nulls_last=True)
        .head(1)
        .select(_LOAD)
    )


def _middle(chosen: pl.DataFrame) -> pl.DataFrame:
    """Return the middle half of iterations by wall time: what makes up the median, without what is rare."""
    quarter = chosen.height // 4
    return chosen.sort("wall_ns", "rank", "iteration").slice(quarter, chosen.height - 2 * quarter)


def _means(ranks: Sequence[Tables], chosen: pl.DataFrame) -> pl.DataFrame:
    """Return the mean of each part over the chosen iterations, those without it as 0; rounded down."""
    frames = [tables.parts.with_columns(pl.lit(rank).alias("rank")) for rank, tables in enumerate(ranks)]
    return (
        pl.concat(frames)
        .join(chosen.select("rank", "iteration"), on=["rank", "iteration"], how="semi")
        .group_by(_PART)
        .agg(pl.col("length_ns").sum() // chosen.height)
        .rename({"length_ns": "ns"})
    )


def _parts(before: pl.DataFrame, after: pl.DataFrame) -> tuple[WaterfallPart, ...]:
    both = before.join(
        after, on=list(_PART), how="full", coalesce=True, nulls_equal=True, suffix="_after"
    ).with_columns(pl.col("ns", "ns_after").fill_null(0))
    difference = pl.col("ns_after") - pl.col("ns")
    rows = (
        both.with_columns(difference.alias("difference"))
        .filter((pl.col("ns") != 0) | (pl.col("ns_after") != 0))
        .sort(pl.col("difference").abs(), *_PART, descending=[True, False, False, False], nulls_last=True)
        .select(*_PART, "ns", "ns_after", "difference")
    )
    return tuple(WaterfallPart(*row) for row in rows.iter_rows())
