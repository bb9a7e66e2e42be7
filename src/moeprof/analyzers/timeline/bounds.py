"""What bounds each piece of a window: the host, the device, or other ranks."""

from __future__ import annotations

import polars as pl

from moeprof.analyzers.timeline.tables import BOUND, PIECES

_BOUND_OF = {
    "compute": "compute",
    "communication": "communication",
    "copy": "copy",
    "host_late": "host",
    "host_sync": "host",
    "host_collective": "wait",
    "launch": "launch",
    "graph_launch": "launch",
    "graph_node": "device",
    "stream_dependency": "device",
    "dispatch": "device",
    "unknown": "unknown",
}


def host_paced(ordered: pl.DataFrame, found: pl.DataFrame, syncs: pl.DataFrame) -> pl.DataFrame:
    """Return the stretches of device work that the host paces: shorter kernels there would have saved nothing.

    In such a stretch every row is a launch of its own that began as soon as it was launched, the device then ran dry
    until the host's next call, and the host did not wait for the device in between.

    Args:
        ordered: What `moeprof.analyzers.timeline.gaps.device_order` returns.
        found: What `moeprof.analyzers.timeline.gaps.gaps` returns: a gap opens each stretch.
        syncs: What `moeprof.analyzers.timeline.gaps.synchronisations` returns.

    Returns:
        ``start_ns``, ``end_ns``: disjoint, by start.
    """
    opens = pl.col("reached_ns").is_null() | (pl.col("start_ns") > pl.col("reached_ns"))
    latency = pl.col("start_ns") - pl.col("launch_start_ns")
    alone = pl.col("is_first") & ~pl.col("is_graph").fill_null(value=True)
    typical = (
        ordered.filter(opens, alone, pl.col("launch_start_ns") > pl.col("reached_ns")).select(latency.median()).item()
    )
    if typical is None:
        return pl.DataFrame(schema={"start_ns": pl.Int64, "end_ns": pl.Int64})
    stretches = (
        ordered.with_columns(opens.cum_sum().alias("stretch"))
        .group_by("stretch", maintain_order=True)
        .agg(
            pl.col("start_ns").first(),
            pl.col("end_ns").max(),
            (alone & (latency <= 2 * typical)).fill_null(value=False).all().alias("limited"),
        )
        .with_columns(found["called_ns"].shift(-1).alias("next_call_ns"))
    )
    paced = stretches.filter("limited", pl.col("next_call_ns") > pl.col("end_ns"))
    if not syncs.is_empty() and not paced.is_empty():
        waits = _waiting(syncs, ordered)
        paced = paced.join_asof(waits, left_on="start_ns", right_on="waited_ns", strategy="forward").filter(
            pl.col("waited_ns").is_null() | (pl.col("waited_ns") > pl.col("next_call_ns"))
        )
    return paced.select("start_ns", "end_ns")


def with_bound(cut: pl.DataFrame, paced: pl.DataFrame) -> pl.DataFrame:
    """Add ``bound`` to pieces: `PIECES`.

    Args:
        cut: What `moeprof.analyzers.timeline.pieces.pieces` returns.
        paced: What `host_paced` returns.
    """
    plain = pl.col("state").cast(pl.String).replace_strict(_BOUND_OF, return_dtype=pl.String).cast(BOUND)
    if paced.is_empty():
        return cut.with_columns(plain.alias("bound")).select(list(PIECES))
    busy = pl.col("bound").is_in(["compute", "copy"])
    inside = (pl.col("start_ns") < pl.col("paced_until")).fill_null(value=False)
    return (
        cut.with_columns(plain.alias("bound"))
        .join_asof(paced.rename({"end_ns": "paced_until"}), on="start_ns", strategy="backward", check_sortedness=False)
        .with_columns(pl.when(busy & inside).then(pl.lit("host", BOUND)).otherwise("bound").alias("bound"))
        .select(list(PIECES))
    )


def _waiting(syncs: pl.DataFrame, ordered: pl.DataFrame) -> pl.DataFrame:
    """Return ``waited_ns``, the ends of synchronisations during which something ended on the device."""
    ends = ordered.select(pl.col("end_ns").alias("done_ns")).sort("done_ns")
    return (
        syncs.sort("end_ns")
        .join_asof(ends, left_on="end_ns", right_on="done_ns", strategy="backward")
        .filter(pl.col("done_ns") >= pl.col("start_ns"))
        .select(pl.col("end_ns").alias("waited_ns"))
    )
