"""Collect the annotations of the host: what iterations may later be cut from."""

from __future__ import annotations

import polars as pl

from moeprof.traces import schema
from moeprof.traces.link import gpu_categories

_ANNOTATION = "user_annotation"
_STEP = r"^ProfilerStep#\d+$"


def markers(events: pl.DataFrame) -> pl.DataFrame:
    """Return `schema.MARKERS` by start, then event: annotations, closed B/E pairs, and steps of the torch profiler."""
    host = events.filter(
        ~pl.col("category").cast(pl.String).is_in(gpu_categories(events)), pl.col("start_ns").is_not_null()
    )
    steps = schema.strings(events, "name")
    steps = steps.filter(steps.str.contains(_STEP))
    spans = host.filter(
        pl.col("ph").cast(pl.String) == "X",
        (pl.col("category").cast(pl.String) == _ANNOTATION) | pl.col("name").is_in(steps.to_list()),
    ).select(
        "event",
        pl.col("name").cast(pl.String),
        "track",
        "start_ns",
        pl.when(pl.col("duration_ns") >= 0).then(pl.col("start_ns") + pl.col("duration_ns")).alias("end_ns"),
    )
    found = pl.concat([spans, _pairs(host)])
    return (
        found.sort("start_ns", "event")
        .unique(["track", "name", "start_ns", "end_ns"], keep="first", maintain_order=True)
        .with_columns(pl.int_range(pl.len(), dtype=pl.UInt32).alias("marker"))
        .select(*schema.MARKERS)
    )


def _pairs(host: pl.DataFrame) -> pl.DataFrame:
    """Match B and E events of each track as a stack; an E without B is ignored, a B without E has no end."""
    step = pl.when(pl.col("ph") == "B").then(1).otherwise(-1)
    marks = (
        host.select("event", pl.col("ph").cast(pl.String), pl.col("name").cast(pl.String), "track", "start_ns")
        .filter(pl.col("ph").is_in(["B", "E"]))
        .sort("track", "start_ns", "event")
        .with_columns(step.cum_sum().over("track").alias("level"))
        .with_columns(pl.col("level").cum_min().clip(upper_bound=0).over("track").alias("floor"))
    )
    # An E that pushes the running floor down closes nothing.
    stray = pl.col("floor") < pl.col("floor").shift(1, fill_value=0).over("track")
    paired = (
        marks.filter(~stray)
        .with_columns(step.cum_sum().over("track").alias("level"))
        .with_columns(pl.when(pl.col("ph") == "B").then("level").otherwise(pl.col("level") + 1).alias("level"))
        .with_columns(pl.col("start_ns").shift(-1).over("track", "level").alias("end_ns"))
    )
    return paired.filter(pl.col("ph") == "B").select("event", "name", "track", "start_ns", "end_ns")
