"""Idle gaps of a device, cut where their cause changes."""

from __future__ import annotations

import polars as pl

from moeprof.analyzers.timeline.tables import STATE

#: Host calls that return only after the device has done something.
_SYNCHRONISES = r"(?i)synchronize$|^(cuda|hip)Memcpy(2D|3D)?$"
_OUTSIDE = 2**62  # before every gap


def device_order(rows: pl.DataFrame, launches: pl.DataFrame) -> pl.DataFrame:
    """Return the device rows in order of start, with what is known of the call that launched each.

    Args:
        rows: Device rows of `moeprof.analyzers.tables.ATTRIBUTED`.
        launches: `moeprof.traces.schema.LAUNCHES` of the rank.

    Returns:
        The rows and ``reached_ns`` (how far the rows before it reach), ``call_end_ns``, ``is_graph``, ``track`` and
        ``is_first`` (of its launch).
    """
    calls = launches.select("launch", pl.col("end_ns").alias("call_end_ns"), "is_graph", "track")
    ordered = rows.sort("start_ns", "event").join(calls, on="launch", how="left", maintain_order="left")
    return ordered.with_columns(
        pl.col("end_ns").cum_max().shift(1).alias("reached_ns"),
        (pl.col("launch").is_first_distinct() | pl.col("launch").is_null()).alias("is_first"),
    )


def synchronisations(launches: pl.DataFrame) -> pl.DataFrame:
    """Return the calls among `moeprof.traces.schema.LAUNCHES` in which the host waits for the device, by start."""
    names = launches["name"].unique().cast(pl.String)
    waiting = names.filter(names.str.contains(_SYNCHRONISES)).to_list()
    return (
        launches.filter(pl.col("name").cast(pl.String).is_in(waiting), pl.col("end_ns").is_not_null())
        .select("track", "start_ns", "end_ns")
        .sort("start_ns", "end_ns")
    )


def gaps(ordered: pl.DataFrame, syncs: pl.DataFrame) -> pl.DataFrame:
    """Return the idle gaps before device rows and what held back the row that ends each.

    Args:
        ordered: What `device_order` returns.
        syncs: What `synchronisations` returns.

    Returns:
        ``start_ns``, ``end_ns`` (of the gap), ``called_ns`` and ``call_end_ns`` of the call that launched what ends it,
        ``phase`` of what ends it, ``sync_ns`` (when the last synchronisation of that thread before the call began, where it reaches into the gap)
        and ``rest``: the cause once the call has begun. By start.
    """
    idle = ordered.filter(pl.col("reached_ns").is_null() | (pl.col("start_ns") > pl.col("reached_ns")))
    idle = idle.join(_openers(ordered, idle), on="reached_ns", how="left", maintain_order="left").select(
        pl.col("reached_ns").fill_null(-_OUTSIDE).alias("gap_ns"),
        pl.col("start_ns").alias("end_ns"),
        pl.col("launch_start_ns").alias("called_ns"),
        "call_end_ns",
        pl.col("is_graph").fill_null(value=False),
        "is_first",
        "track",
        "phase",
        (_of_graphs() | pl.struct("device", "stream").is_in("openers")).fill_null(value=True).alias("same_stream"),
    )
    typical = _typical_latency(idle)
    idle = idle.join(typical, on="is_graph", how="left", maintain_order="left")
    idle = _with_sync(idle, syncs)
    in_launch = (pl.col("call_end_ns") > pl.col("gap_ns")) | (
        pl.col("end_ns") - pl.col("called_ns") <= pl.col("typical_ns")
    )
    rest = (
        pl.when(pl.col("called_ns").is_null())
        .then(pl.lit("unknown"))
        .when(~pl.col("is_first"))
        .then(pl.when("is_graph").then(pl.lit("graph_node")).otherwise(pl.lit("dispatch")))
        .when((pl.col("called_ns") > pl.col("gap_ns")) | in_launch)
        .then(pl.when("is_graph").then(pl.lit("graph_launch")).otherwise(pl.lit("launch")))
        .when(~pl.col("same_stream"))
        .then(pl.lit("stream_dependency"))
        .otherwise(pl.lit("dispatch"))
    )
    return idle.select(
        pl.col("gap_ns").alias("start_ns"),
        "end_ns",
        "called_ns",
        "call_end_ns",
        "sync_ns",
        rest.cast(STATE).alias("rest"),
        "phase",
    )


def causes(found: pl.DataFrame) -> pl.DataFrame:
    """Cut gaps where their cause changes: the host late, then waiting for the device, then what came after its call.

    Args:
        found: What `gaps` returns.

    Returns:
        ``start_ns``, ``end_ns``, ``state``, ``phase``: disjoint, of positive length, by start.

    Example:
        >>> gap = {"start_ns": [0], "end_ns": [10], "called_ns": [7], "call_end_ns": [9], "sync_ns": [4], "phase": ["draft"]}
        >>> causes(pl.DataFrame(gap).with_columns(pl.lit("launch", STATE).alias("rest"))).select("end_ns", "state").rows()
        [(4, 'host_late'), (7, 'host_sync'), (10, 'launch')]
    """
    called = pl.col("called_ns").fill_null(-_OUTSIDE).clip(pl.col("start_ns"), pl.col("end_ns"))
    cut = found.with_columns(called.alias("host_until")).with_columns(
        pl.col("sync_ns").fill_null(_OUTSIDE).clip(pl.col("start_ns"), pl.col("host_until")).alias("late_until")
    )
    parts = [
        cut.select(
            "start_ns", pl.col("late_until").alias("end_ns"), pl.lit("host_late", STATE).alias("state"), "phase"
        ),
        cut.select(
            pl.col("late_until").alias("start_ns"),
            pl.col("host_until").alias("end_ns"),
            pl.lit("host_sync", STATE).alias("state"),
            "phase",
        ),
        cut.select(pl.col("host_until").alias("start_ns"), "end_ns", pl.col("rest").alias("state"), "phase"),
    ]
    return pl.concat(parts).filter(pl.col("end_ns") > pl.col("start_ns")).sort("start_ns")


def _openers(ordered: pl.DataFrame, idle: pl.DataFrame) -> pl.DataFrame:
    """Return, for each instant at which a gap opens, the streams of rows that end then and whether one is of a graph."""
    ending = ordered.join(idle.select(pl.col("reached_ns").alias("end_ns")), on="end_ns", how="semi")
    return ending.group_by(pl.col("end_ns").alias("reached_ns")).agg(
        pl.struct("device", "stream").alias("openers"),
        pl.col("is_graph").fill_null(value=False).any().alias("of_graph"),
    )


def _of_graphs() -> pl.Expr:
    """Tell whether streams mean nothing: the branches of a graph have streams of their own."""
    return pl.col("is_graph") | pl.col("of_graph")


def _typical_latency(idle: pl.DataFrame) -> pl.DataFrame:
    """Return the median time from call to kernel where the device was waiting for the call, of graphs and of the rest."""
    return (
        idle.filter(pl.col("called_ns") > pl.col("gap_ns"), "is_first")
        .group_by("is_graph")
        .agg((pl.col("end_ns") - pl.col("called_ns")).median().alias("typical_ns"))
    )


def _with_sync(idle: pl.DataFrame, syncs: pl.DataFrame) -> pl.DataFrame:
    """Add ``sync_ns``: start of the last synchronisation of the launching thread before its call, if it reaches into the gap."""
    if syncs.is_empty() or idle.is_empty():
        return idle.with_columns(pl.lit(None, pl.Int64).alias("sync_ns"))
    last = (
        idle.select(pl.int_range(pl.len()).alias("gap"), "called_ns", "track")
        .filter(pl.col("called_ns").is_not_null(), pl.col("track").is_not_null())
        .sort("called_ns")
        .join_asof(
            syncs.select("track", pl.col("start_ns").alias("sync_ns"), pl.col("end_ns").alias("sync_end_ns")),
            left_on="called_ns",
            right_on="sync_ns",
            by="track",
            strategy="backward",
            check_sortedness=False,
        )
        .select("gap", "sync_ns", "sync_end_ns")
    )
    joined = idle.with_columns(pl.int_range(pl.len()).alias("gap")).join(
        last, on="gap", how="left", maintain_order="left"
    )
    reaches = pl.col("sync_end_ns") > pl.col("gap_ns")
    return joined.with_columns(pl.when(reaches).then("sync_ns").alias("sync_ns")).drop("gap", "sync_end_ns")
