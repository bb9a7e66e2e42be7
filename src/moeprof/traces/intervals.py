"""Unions and differences of intervals [start_ns, end_ns) in whole ns, per group (a device, or one per iteration ...).

Frames need int64 columns ``start_ns`` and ``end_ns`` without nulls, and the group columns, where null is a group of its
own. Intervals of no or negative length cover nothing; intervals that touch make one. Order of rows is irrelevant.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

_ALL = "__all"
_REACHED = "__reached"


def merge(frame: pl.DataFrame, by: Sequence[str] = ()) -> pl.DataFrame:
    """Join overlapping and touching intervals into disjoint ones.

    Args:
        frame: Intervals with the group columns.
        by: Group columns.

    Returns:
        ``by``, ``start_ns``, ``end_ns``: disjoint intervals of positive length, sorted by group and start.

    Example:
        >>> merge(pl.DataFrame({"start_ns": [0, 5, 20], "end_ns": [5, 9, 30]})).rows()
        [(0, 9), (20, 30)]
    """
    keys = _keys(by)
    swept = _sweep(frame.filter(pl.col("end_ns") > pl.col("start_ns")), by)
    is_new = pl.col(_REACHED).is_null() | (pl.col("start_ns") > pl.col(_REACHED))
    runs = swept.with_columns(is_new.cum_sum().alias("__run"))
    return (
        runs.group_by("__run", maintain_order=True)
        .agg(*(pl.col(key).first() for key in keys), pl.col("start_ns").first(), pl.col("end_ns").max())
        .select(*by, "start_ns", "end_ns")
    )


def union_length(frame: pl.DataFrame, by: Sequence[str] = ()) -> pl.DataFrame:
    """Measure the union of the intervals of each group.

    Args:
        frame: Intervals with the group columns.
        by: Group columns.

    Returns:
        ``by``, ``length_ns``: one row per group of the frame, sorted by group; no row for an empty frame.

    Example:
        >>> union_length(pl.DataFrame({"start_ns": [0, 5], "end_ns": [10, 12]})).item()
        12
    """
    uncovered_from = pl.max_horizontal("start_ns", pl.col(_REACHED))  # ignores the null of a group's first row
    added = (pl.col("end_ns") - uncovered_from).clip(lower_bound=0)
    return (
        _sweep(frame, by)
        .group_by(_keys(by), maintain_order=True)
        .agg(added.sum().cast(pl.Int64).alias("length_ns"))
        .select(*by, "length_ns")
    )


def difference_length(frame: pl.DataFrame, other: pl.DataFrame, by: Sequence[str] = ()) -> pl.DataFrame:
    """Measure, per group, the part of the union of ``frame`` that the union of ``other`` does not cover.

    Args:
        frame: Intervals with the group columns.
        other: Intervals to take away, with the same group columns.
        by: Group columns.

    Returns:
        ``by``, ``length_ns``: one row per group of ``frame``, sorted by group.

    Example:
        >>> a = pl.DataFrame({"start_ns": [0], "end_ns": [10]})
        >>> difference_length(a, pl.DataFrame({"start_ns": [4], "end_ns": [6]})).item()
        8
    """
    keys = _keys(by)
    columns = [*keys, "start_ns", "end_ns"]
    wanted = _with_keys(frame, by).select(columns)
    taken = _with_keys(other, by).select(columns).join(wanted, on=keys, how="semi", nulls_equal=True)
    both = union_length(pl.concat([wanted, taken]), keys)
    away = union_length(taken, keys).rename({"length_ns": "__away"})
    return both.join(away, on=keys, how="left", nulls_equal=True, maintain_order="left").select(
        *by, pl.col("length_ns") - pl.col("__away").fill_null(0)
    )


def _keys(by: Sequence[str]) -> list[str]:
    return list(by) or [_ALL]


def _with_keys(frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    return frame if by else frame.with_columns(pl.lit(0, dtype=pl.Int8).alias(_ALL))


def _sweep(frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Sort by group and start, and say how far the earlier intervals of the group reach (null for its first)."""
    keys = _keys(by)
    swept = _with_keys(frame, by).select(*keys, "start_ns", "end_ns").sort([*keys, "start_ns", "end_ns"])
    return swept.with_columns(pl.col("end_ns").cum_max().shift(1).over(keys).alias(_REACHED))
