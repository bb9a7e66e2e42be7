"""The host's side of an iteration: calls, the time inside them, and how long the device takes to follow."""

from __future__ import annotations

import polars as pl

from moeprof.analyzers.tables import Attribution
from moeprof.analyzers.timeline.gaps import synchronisations


def host_calls(attribution: Attribution, launches: pl.DataFrame) -> pl.DataFrame:
    """Return calls and synchronisations per iteration.

    Args:
        attribution: The iterations of the rank.
        launches: `moeprof.traces.schema.LAUNCHES` of the rank.

    Returns:
        ``iteration``, ``launch_calls``, ``graph_launches``, ``launch_time_ns``, ``sync_calls``, ``sync_time_ns``: calls of the
        threads that launch what iterations own, from the start of a marker to the start of the next.
    """
    tracks = _tracks(attribution, launches)
    length = pl.col("end_ns") - pl.col("start_ns")
    calls = _in_iterations(launches.filter(pl.col("device_rows") > 0), attribution.iterations, tracks)
    syncs = _in_iterations(synchronisations(launches), attribution.iterations, tracks)
    launched = calls.group_by("iteration").agg(
        pl.len().cast(pl.Int64).alias("launch_calls"),
        pl.col("is_graph").sum().cast(pl.Int64).alias("graph_launches"),
        length.sum().alias("launch_time_ns"),
    )
    waited = syncs.group_by("iteration").agg(
        pl.len().cast(pl.Int64).alias("sync_calls"), length.sum().alias("sync_time_ns")
    )
    columns = ("launch_calls", "graph_launches", "launch_time_ns", "sync_calls", "sync_time_ns")
    return (
        attribution.iterations.select("iteration")
        .join(launched, on="iteration", how="left", maintain_order="left")
        .join(waited, on="iteration", how="left", maintain_order="left")
        .with_columns(pl.col(columns).fill_null(0))
    )


def latencies(ordered: pl.DataFrame) -> pl.DataFrame:
    """Say how long the device takes to follow each launch call.

    Args:
        ordered: What `moeprof.analyzers.timeline.gaps.device_order` returns.

    Returns:
        One row per launch call: ``iteration``, ``phase``, ``is_graph``, ``call_ns`` (how long it lasted), ``latency_ns`` (from its
        start to that of the first device row) and ``queued`` (whether the device still worked on earlier rows then).
    """
    return ordered.filter("is_first", pl.col("launch_start_ns").is_not_null()).select(
        "iteration",
        "phase",
        pl.col("is_graph").fill_null(value=False),
        (pl.col("call_end_ns") - pl.col("launch_start_ns")).alias("call_ns"),
        (pl.col("start_ns") - pl.col("launch_start_ns")).alias("latency_ns"),
        (pl.col("reached_ns") > pl.col("launch_start_ns")).fill_null(value=False).alias("queued"),
    )


def _tracks(attribution: Attribution, launches: pl.DataFrame) -> pl.Series:
    owned = attribution.launches.filter(pl.col("iteration").is_not_null()).select("launch").unique()
    used = launches.join(owned, on="launch", how="semi")["track"]
    return pl.concat([used, attribution.iterations["track"]]).unique()


def _in_iterations(calls: pl.DataFrame, iterations: pl.DataFrame, tracks: pl.Series) -> pl.DataFrame:
    begun = iterations.select("iteration", pl.col("start_ns").alias("begin_ns")).sort("begin_ns")
    return (
        calls.filter(pl.col("track").is_in(tracks.to_list()), pl.col("start_ns").is_not_null())
        .sort("start_ns")
        .join_asof(begun, left_on="start_ns", right_on="begin_ns", strategy="backward")
        .filter(pl.col("iteration").is_not_null())
    )
