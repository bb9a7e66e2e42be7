"""Cut the windows of iterations into pieces that are spent on one thing each; together they are the windows, to the ns."""

from __future__ import annotations

import polars as pl

from moeprof.analyzers.tables import CLASS, COMMUNICATION, KERNEL_TIME, PHASE
from moeprof.analyzers.timeline.gaps import causes
from moeprof.analyzers.timeline.tables import STATE

_IS_COMMUNICATION = pl.col("class").is_in(COMMUNICATION)
_IS_KERNEL = pl.col("activity").is_in(KERNEL_TIME)


def own_time(rows: pl.DataFrame) -> pl.DataFrame:
    """Give each instant that rows cover to the row that has run the longest; what remains of each is one interval.

    Kernels of one stream that overlap (programmatic dependent launch) are thus never counted twice.

    Args:
        rows: Device rows with ``start_ns`` and ``end_ns``, by start.

    Returns:
        The rows that own time, with ``start_ns`` and ``end_ns`` of it: disjoint, by start.

    Example:
        >>> own_time(pl.DataFrame({"start_ns": [0, 3, 4], "end_ns": [10, 6, 12]})).rows()
        [(0, 10), (10, 12)]
    """
    reached = pl.col("end_ns").cum_max().shift(1)
    return rows.with_columns(pl.max_horizontal("start_ns", reached).alias("start_ns")).filter(
        pl.col("end_ns") > pl.col("start_ns")
    )


def pieces(
    ordered: pl.DataFrame, windows: pl.DataFrame, found: pl.DataFrame, host_ranges: pl.DataFrame, waits: pl.DataFrame
) -> pl.DataFrame:
    """Cut windows into pieces: `PIECES` without ``bound``.

    Args:
        ordered: What `moeprof.analyzers.timeline.gaps.device_order` returns.
        windows: ``iteration``, ``start_ns``, ``end_ns``: disjoint, by start.
        found: What `moeprof.analyzers.timeline.gaps.gaps` returns.
        host_ranges: ``start_ns``, ``end_ns`` of collectives of the host: disjoint, by start.
        waits: ``event`` and ``until_ns`` of communication: when the last rank had come.
    """
    idle = causes(found)
    levels = _levels(ordered, waits)
    cuts = [
        frame.select(pl.col(edge).alias("start_ns")) for frame in levels.values() for edge in ("start_ns", "end_ns")
    ]
    others = (windows, idle, host_ranges)
    cuts += [frame.select(pl.col(edge).alias("start_ns")) for frame in others for edge in ("start_ns", "end_ns")]
    cut = pl.concat(cuts).unique().sort("start_ns").with_columns(pl.col("start_ns").shift(-1).alias("end_ns"))
    cut = _within(cut, windows.select("iteration", "start_ns", "end_ns"), "window")
    cut = cut.filter(pl.col("window"), pl.col("end_ns").is_not_null())
    for name, frame in levels.items():
        wanted = ["start_ns", "end_ns", "class", "phase", *(["until_ns"] if name == "communication" else [])]
        renamed = frame.select(wanted).rename({column: f"{column}@{name}" for column in wanted[2:]})
        cut = _within(cut, renamed, name)
    cut = _within(
        cut,
        idle.select("start_ns", "end_ns", pl.col("state").alias("cause"), pl.col("phase").alias("phase@idle")),
        "idle",
    )
    cut = _within(cut, host_ranges.select("start_ns", "end_ns"), "host_range")
    return cut.select(
        "iteration",
        "start_ns",
        "end_ns",
        _state().alias("state"),
        _of_owner("class").cast(CLASS).alias("class"),
        _of_owner("phase", idle=True).cast(PHASE).alias("phase"),
        _waited().alias("wait_ns"),
    )


def overlapped(ordered: pl.DataFrame, cut: pl.DataFrame) -> pl.DataFrame:
    """Return ``iteration``, ``overlapped_ns``: communication that ran under compute, within the windows.

    Args:
        ordered: What `moeprof.analyzers.timeline.gaps.device_order` returns.
        cut: `PIECES`; a piece never begins or ends inside a communication's own time.
    """
    under = own_time(ordered.filter(_IS_KERNEL & _IS_COMMUNICATION)).select("start_ns", "end_ns")
    inside = _within(cut.filter(pl.col("state") == "compute"), under, "under").filter("under")
    length = pl.col("end_ns") - pl.col("start_ns")
    return inside.group_by("iteration").agg(length.sum().alias("overlapped_ns"))


def _levels(ordered: pl.DataFrame, waits: pl.DataFrame) -> dict[str, pl.DataFrame]:
    communication = own_time(ordered.filter(_IS_KERNEL & _IS_COMMUNICATION))
    return {
        "compute": own_time(ordered.filter(_IS_KERNEL & ~_IS_COMMUNICATION)),
        "communication": communication.join(waits, on="event", how="left", maintain_order="left"),
        "copy": own_time(ordered.filter(~_IS_KERNEL)),
    }


def _within(cut: pl.DataFrame, intervals: pl.DataFrame, name: str) -> pl.DataFrame:
    """Add ``name``: whether a piece lies in one of the disjoint intervals, by whose edges it was cut; and its columns."""
    if intervals.is_empty():
        rest = [
            pl.lit(None, dtype).alias(key) for key, dtype in intervals.schema.items() if "_ns" not in key or "@" in key
        ]
        return cut.with_columns(pl.lit(value=False).alias(name), *rest)
    joined = cut.join_asof(
        intervals.rename({"end_ns": "__end"}), on="start_ns", strategy="backward", check_sortedness=False
    )
    return joined.with_columns((pl.col("start_ns") < pl.col("__end")).fill_null(value=False).alias(name)).drop("__end")


def _state() -> pl.Expr:
    late = pl.col("cause").is_in(["host_late", "host_sync"])
    return (
        pl.when("compute")
        .then(pl.lit("compute", STATE))
        .when("communication")
        .then(pl.lit("communication", STATE))
        .when("copy")
        .then(pl.lit("copy", STATE))
        .when(~pl.col("idle"))
        .then(pl.lit("unknown", STATE))
        .when(late & pl.col("host_range"))
        .then(pl.lit("host_collective", STATE))
        .otherwise("cause")
    )


def _of_owner(column: str, *, idle: bool = False) -> pl.Expr:
    """Return a column of what owns the instant; with `idle`, while nothing does, of what ends the gap."""
    owner = (
        pl.when("compute")
        .then(f"{column}@compute")
        .when("communication")
        .then(f"{column}@communication")
        .when("copy")
        .then(f"{column}@copy")
    )
    return owner.when("idle").then(f"{column}@idle") if idle else owner


def _waited() -> pl.Expr:
    until = pl.min_horizontal("end_ns", "until_ns@communication")
    waiting = (until - pl.col("start_ns")).clip(lower_bound=0)
    exposed = ~pl.col("compute") & pl.col("communication") & pl.col("until_ns@communication").is_not_null()
    return pl.when(exposed).then(waiting).otherwise(0)
