"""Make the tables of a timeline from the tables of a rank."""

from __future__ import annotations

import polars as pl

from moeprof.analyzers.tables import Attribution
from moeprof.analyzers.timeline.bounds import host_paced, with_bound
from moeprof.analyzers.timeline.gaps import device_order, gaps, synchronisations
from moeprof.analyzers.timeline.host import host_calls
from moeprof.analyzers.timeline.pieces import overlapped, pieces
from moeprof.analyzers.timeline.regimes import loads
from moeprof.analyzers.timeline.results import Tables
from moeprof.analyzers.timeline.tables import BOUNDS, PARTS, PER_ITERATION, PIECES, STATES
from moeprof.analyzers.times import device_rows
from moeprof.traces.intervals import merge
from moeprof.traces.trace import RankTrace

#: Collectives that the host itself takes part in, as annotations on any thread.
_HOST_COLLECTIVE = "gloo:"
WAITS = {"event": pl.UInt32, "until_ns": pl.Int64}
_LENGTH = pl.col("end_ns") - pl.col("start_ns")


def tabulate(
    rank: RankTrace, attribution: Attribution, waits: pl.DataFrame | None = None
) -> tuple[Tables, pl.DataFrame]:
    """Return the tables of a rank's timeline, and its device rows in order.

    Args:
        rank: The rank.
        attribution: Its iterations and launches.
        waits: ``event`` and ``until_ns`` (in the rank's own time): when the last rank had come to a collective; None: not known.
    """
    rows = device_rows(attribution.launches)
    ordered = device_order(rows, rank.launches)
    windows = attribution.iterations.filter(pl.col("next_start_ns").is_not_null()).select(
        "iteration", "start_ns", pl.col("next_start_ns").alias("end_ns")
    )
    if rows.is_empty() or windows.is_empty():
        return Tables(*(pl.DataFrame(schema=schema) for schema in (PER_ITERATION, PARTS, PIECES))), ordered
    syncs = synchronisations(rank.launches)
    found = gaps(ordered, syncs)
    spans = merge(
        rank.markers.filter(pl.col("name").str.starts_with(_HOST_COLLECTIVE), pl.col("end_ns").is_not_null()).select(
            "start_ns", "end_ns"
        )
    )
    waits = pl.DataFrame(schema=WAITS) if waits is None else waits
    cut = with_bound(pieces(ordered, windows, found, spans, waits), host_paced(ordered, found, syncs))
    return Tables(_per_iteration(rank, attribution, ordered, cut), _parts(cut), cut), ordered


def _parts(cut: pl.DataFrame) -> pl.DataFrame:
    grouped = cut.group_by("iteration", "state", "class", "phase").agg(
        _LENGTH.sum().alias("length_ns"), pl.col("wait_ns").sum()
    )
    strings = grouped.with_columns(pl.col("state", "class", "phase").cast(pl.String))
    worked = strings.with_columns(pl.col("length_ns") - pl.col("wait_ns"))
    waited = strings.with_columns(pl.lit("wait").alias("state"), pl.col("wait_ns").alias("length_ns"))
    return (
        pl.concat([worked, waited.filter(pl.col("length_ns") > 0)])
        .select(list(PARTS))
        .sort("iteration", "state", "class", "phase", nulls_last=True)
    )


def _per_iteration(rank: RankTrace, attribution: Attribution, ordered: pl.DataFrame, cut: pl.DataFrame) -> pl.DataFrame:
    waiting = pl.col("wait_ns")
    bound = pl.col("bound")
    worked = pl.when(bound == "communication").then(_LENGTH - waiting).otherwise(_LENGTH)
    sums = [_LENGTH.filter(pl.col("state") == state).sum().alias(f"{state}_ns") for state in STATES]
    sums += [worked.filter(bound == name).sum().alias(f"bound_{name}_ns") for name in BOUNDS if name != "wait"]
    waited = pl.when(bound == "communication").then(waiting).when(bound == "wait").then(_LENGTH).otherwise(0)
    sums += [waiting.sum(), waited.sum().alias("bound_wait_ns")]
    base = attribution.iterations.filter(pl.col("next_start_ns").is_not_null()).select(
        "iteration",
        "kind",
        "counted",
        "transient",
        "start_ns",
        (pl.col("next_start_ns") - pl.col("start_ns")).alias("wall_ns"),
    )
    table = base
    for more in (
        loads(attribution.iterations, rank.markers),
        cut.group_by("iteration").agg(*sums),
        overlapped(ordered, cut),
        host_calls(attribution, rank.launches),
    ):
        table = table.join(more, on="iteration", how="left", maintain_order="left")
    known = [name for name in PER_ITERATION if name not in ("kind", "requests", "tokens", "generated")]
    return table.with_columns(pl.col(name).fill_null(0) for name in known).select(
        pl.col(name).cast(dtype) for name, dtype in PER_ITERATION.items()
    )
