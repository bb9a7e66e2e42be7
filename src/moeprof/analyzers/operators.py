"""Launches of a CPU-only trace: outermost classified operators, or NVTX ranges where those are all that was recorded."""

from __future__ import annotations

import polars as pl

from moeprof.analyzers.markers import NVTX_CATEGORY, marker_labels
from moeprof.traces import schema
from moeprof.traces.trace import RankTrace

OPERATOR_CATEGORIES = ("cpu_op", "Operator")


def is_cpu_only(rank: RankTrace) -> bool:
    """Tell whether a rank has operators but neither device rows nor calls that could have made any."""
    if not (rank.kernels.is_empty() and rank.invalid.is_empty() and rank.launches.is_empty()):
        return False
    return not _operators(rank).is_empty()


def operator_names(rank: RankTrace) -> list[str]:
    """Return the distinct names of a rank's operators."""
    names: list[str] = _operators(rank)["name"].unique().cast(pl.String).to_list()
    return names


def operator_launches(rank: RankTrace, classes: pl.DataFrame) -> pl.DataFrame:
    """Return one row per launch: outermost classified operators, and operators that hold and lie in none.

    Nesting is told by time on one thread: recorded functions of a thread nest properly.

    Args:
        rank: The rank; its cpu_op events are used.
        classes: Columns ``name`` (String) and ``class``; names of class ``other`` count as unclassified.

    Returns:
        event, name, track, start_ns, end_ns, duration_ns; by track and start.
    """
    operators = (
        _operators(rank)
        .select(
            "event",
            pl.col("name").cast(pl.String),
            "track",
            "start_ns",
            (pl.col("start_ns") + pl.col("duration_ns")).alias("end_ns"),
            "duration_ns",
        )
        .join(classes.select("name", (pl.col("class") != "other").alias("known")), on="name", how="left")
        .sort("track", "start_ns", "duration_ns", "event", descending=[False, False, True, False])
    )
    known = _outermost(operators.filter("known"))
    loose = operators.filter(~pl.col("known"))
    loose = _outermost(_apart_from(loose, known))
    return pl.concat([known, loose]).drop("known").sort("track", "start_ns", "event")


def _operators(rank: RankTrace) -> pl.DataFrame:
    return rank.events.filter(
        _is_operator(rank.events),
        pl.col("ph").cast(pl.String) == "X",
        pl.col("start_ns").is_not_null(),
        pl.col("duration_ns") >= 0,
    )


def _is_operator(events: pl.DataFrame) -> pl.Series:
    """True for operators of torch; for NVTX ranges that mark neither an iteration nor a phase where there are none."""
    own = schema.where(events["category"], lambda names: names.is_in(OPERATOR_CATEGORIES))
    ranges = schema.where(events["category"], lambda names: names.str.contains(NVTX_CATEGORY))
    if own.any() or not ranges.any():
        return own
    return ranges & ~schema.where(events["name"], lambda names: names.is_in(marker_labels(names)))


def _outermost(spans: pl.DataFrame) -> pl.DataFrame:
    """Keep the spans that lie in no other span of their track; rows come sorted by track, start, longest first."""
    before = pl.col("end_ns").cum_max().shift(1).over("track")
    return spans.filter(before.is_null() | (pl.col("start_ns") >= before))


def _apart_from(spans: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Keep the spans that neither contain nor lie inside one of `others` (disjoint spans, sorted as in `_outermost`)."""
    first = others.select("track", pl.col("start_ns").alias("other_start"), pl.col("end_ns").alias("other_end"))
    order = [pl.col("track"), pl.col("start_ns")]
    spans = spans.sort(order)
    inside = spans.join_asof(
        first.sort("other_start"),
        left_on="start_ns", right_on="other_start", by="track", strategy="backward", check_sortedness=False,
    )  # fmt: skip
    apart = inside.filter((pl.col("other_end") <= pl.col("start_ns")).fill_null(value=True)).drop(
        "other_start", "other_end"
    )
    holding = apart.join_asof(
        first.sort("other_start"),
        left_on="start_ns", right_on="other_start", by="track", strategy="forward", check_sortedness=False,
    )  # fmt: skip
    kept = holding.filter((pl.col("other_start") >= pl.col("end_ns")).fill_null(value=True))
    return kept.drop("other_start", "other_end").sort(
        "track", "start_ns", "duration_ns", "event", descending=[False, False, True, False]
    )
