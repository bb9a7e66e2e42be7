"""Project host ranges onto the GPU, by the rule of NVIDIA's own report (``nvtx_gpu_proj_trace``)."""

from __future__ import annotations

import polars as pl

from moeprof.traces.schema import Schema
from moeprof.traces.trace import RankTrace

#: One row per range that launched anything, by start, then event of the range.
PROJECTED: Schema = {
    "marker": pl.UInt32,  # key into the rank's markers
    "name": pl.String,
    "track": pl.UInt32,
    "range_start_ns": pl.Int64,
    "range_end_ns": pl.Int64,  # null: never closed; such a range reaches to the end of the capture
    "start_ns": pl.Int64,  # first start of the device rows launched inside
    "end_ns": pl.Int64,  # their last end
    "operations": pl.UInt32,  # launch calls with device rows: what NVIDIA's report counts
    "device_rows": pl.UInt32,
    "kernels": pl.UInt32,
}
_NEVER = 2**63 - 1


def project(rank: RankTrace) -> pl.DataFrame:
    """Return the span on the GPU of what each range launched: `PROJECTED`.

    A range launched a device row when the row's host call lies inside it, on the thread that opened it: from the start of
    the range on, and ended by its end. Spans of ranges overlap, on one device too, so they must not be added.

    Args:
        rank: One rank, of either profiler.

    Example:
        >>> from moeprof.traces.open import open_trace
        >>> (rank,) = open_trace("tests/data/nsys/node.sqlite.gz")
        >>> project(rank).select("name", "start_ns", "end_ns", "operations", "kernels").row(0)
        ('execute_context_0(0)_generation_32(128)', 14920243, 15696296, 4, 52)
    """
    calls = _calls(rank)
    first, last = _bounds(rank.markers, calls)
    ranges = (
        rank.markers.select("marker", "event", "track", "start_ns", pl.col("end_ns").fill_null(_NEVER).alias("until"))
        .with_columns(first, last)
        .filter(pl.col("first") < pl.col("last"))
    )
    inside = (
        ranges.select("marker", "until", pl.int_ranges("first", "last").alias("call"))
        .explode("call", empty_as_null=True, keep_nulls=True)
        .with_columns(pl.col("call").cast(pl.UInt32))
        .join(calls, on="call", maintain_order="left")
        .filter(pl.col("call_end_ns") <= pl.col("until"))
    )
    spans = inside.group_by("marker").agg(
        pl.col("first_ns").min().alias("start_ns"),
        pl.col("last_ns").max().alias("end_ns"),
        pl.len().cast(pl.UInt32).alias("operations"),
        pl.col("device_rows").sum().cast(pl.UInt32),
        pl.col("kernels").sum().cast(pl.UInt32),
    )
    marks = rank.markers.rename({"start_ns": "range_start_ns", "end_ns": "range_end_ns"})
    return (
        marks.join(spans, on="marker", how="inner", maintain_order="left")
        .sort("range_start_ns", "event")
        .select(*PROJECTED)
    )


def _calls(rank: RankTrace) -> pl.DataFrame:
    """Return the calls that left device rows, by thread and start, numbered, with the span of their rows."""
    spans = (
        rank.kernels.filter(pl.col("launch").is_not_null())
        .group_by("launch")
        .agg(
            pl.col("start_ns").min().alias("first_ns"),
            pl.col("end_ns").max().alias("last_ns"),
            pl.len().alias("device_rows"),
            pl.col("activity").is_in(["kernel"]).sum().alias("kernels"),
        )
    )
    return (
        rank.launches.select(
            "launch", "track", pl.col("start_ns").alias("call_start_ns"), pl.col("end_ns").alias("call_end_ns")
        )
        .join(spans, on="launch", how="inner")
        .filter(pl.col("call_start_ns").is_not_null() & pl.col("call_end_ns").is_not_null())
        .sort("track", "call_start_ns", "launch")
        .with_row_index("call")
    )


def _bounds(markers: pl.DataFrame, calls: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
    """Return, for each range, the first call that starts in it and the one after the last, by start alone."""
    starts = calls.select("track", "call_start_ns", "call")
    empty = pl.Series("first", [0], dtype=pl.Int64)
    if calls.is_empty():
        return empty.new_from_index(0, markers.height), empty.rename("last").new_from_index(0, markers.height)
    own = markers.with_row_index("row").select(
        "row", "track", "start_ns", pl.col("end_ns").fill_null(_NEVER).alias("until")
    )
    first = _position(own, starts, "start_ns", strategy="forward")
    last = _position(own, starts, "until", strategy="backward")
    return first.fill_null(calls.height).alias("first"), (last + 1).fill_null(0).alias("last")


def _position(ranges: pl.DataFrame, starts: pl.DataFrame, at: str, *, strategy: str) -> pl.Series:
    assert strategy in ("forward", "backward")
    found = ranges.sort(at).join_asof(
        starts.sort("call_start_ns", "call"),
        left_on=at,
        right_on="call_start_ns",
        by="track",
        strategy="forward" if strategy == "forward" else "backward",
        check_sortedness=False,
    )
    return found.sort("row")["call"].cast(pl.Int64)
