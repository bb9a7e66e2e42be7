"""Values iteration by iteration: the tables behind the medians of times, and what a comparison of two captures tests.

A launch belongs to the iteration that launched it, whenever it runs. Several devices of a rank are added.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import polars.selectors as cs

from moeprof.analyzers.tables import CLASS, COMMUNICATION, KERNEL_TIME, KIND, PHASE, PHASES, Attribution
from moeprof.analyzers.times import device_rows
from moeprof.traces.intervals import difference_length, union_length
from moeprof.traces.schema import Schema

#: One row per iteration counted, in order.
TIMES: Schema = {
    "iteration": pl.Int32,
    "kind": KIND,  # null for families without kinds
    "transient": pl.Boolean,  # start transient: in the table, and left out of medians and tests
    "start_ns": pl.Int64,
    "wall_ns": pl.Int64,  # to the next marker's start; null for the last iteration of the trace
    "gpu_busy_ns": pl.Int64,  # null, as all below, where the trace has no device row; else 0 where nothing was launched
    "kernel_sum_ns": pl.Int64,
    "comm_exposed_ns": pl.Int64,  # null too where whole graphs were recorded
    **{f"{phase}_ns": pl.Int64 for phase in PHASES},  # GPU busy of the phase
}
#: One row per kernel (operator on a CPU-only trace) and counted iteration in which it was launched.
KERNELS: Schema = {
    "name": pl.Categorical(),
    "class": CLASS,
    "phase": PHASE,
    "backend": pl.Categorical(),
    "iteration": pl.Int32,
    "launches": pl.Int64,
    "kernel_sum_ns": pl.Int64,
}


@dataclass(frozen=True, slots=True)
class Series:
    """The values of one rank, iteration by iteration.

    Attributes:
        times: `TIMES`; empty without iterations.
        kernels: `KERNELS`, in no particular order; an iteration without a row launched none of that kernel.
    """

    times: pl.DataFrame
    kernels: pl.DataFrame


def iteration_times(attribution: Attribution) -> pl.DataFrame:
    """Return the times of each counted iteration of a rank: `TIMES`.

    Args:
        attribution: The iterations and launches of the rank.
    """
    if attribution.family is None:
        return pl.DataFrame(schema=TIMES)
    table = (
        attribution.iterations.filter("counted")
        .sort("iteration")
        .select(
            "iteration",
            "kind",
            "transient",
            "start_ns",
            (pl.col("next_start_ns") - pl.col("start_ns")).alias("wall_ns"),
        )
    )
    rows = device_rows(attribution.launches)
    owned = rows.join(table.select("iteration"), on="iteration", how="semi")
    for name, lengths in _lengths(owned).items():
        if rows.is_empty() or (attribution.graph_level and name == "comm_exposed_ns"):
            table = table.with_columns(pl.lit(None, pl.Int64).alias(name))
            continue
        added = lengths.group_by("iteration").agg(pl.col("length_ns").sum().alias(name))
        table = table.join(added, on="iteration", how="left", maintain_order="left").with_columns(
            pl.col(name).fill_null(0)
        )
    return table.select(TIMES.keys())


def kernel_times(attribution: Attribution) -> pl.DataFrame:
    """Return launches and kernel sum of each kernel in each counted iteration: `KERNELS`.

    Without iterations there is one window: its rows have no iteration.

    Args:
        attribution: The iterations and launches of the rank.
    """
    launches = attribution.counted.filter(pl.col("activity").is_in(["kernel", "operator"]))
    # Kernel names are long and few: grouping their codes takes a third of the time of grouping the strings.
    return (
        launches.select("name", "class", "phase", "backend", "iteration", "duration_ns")
        .with_columns(cs.string().cast(pl.Categorical))
        .group_by("name", "class", "phase", "backend", "iteration")
        .agg(pl.len().cast(pl.Int64).alias("launches"), pl.col("duration_ns").sum().alias("kernel_sum_ns"))
    )


def _lengths(owned: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return, for each column of device times, lengths by iteration."""
    kernels = owned.filter(pl.col("activity").is_in(KERNEL_TIME))
    is_communication = pl.col("class").is_in(COMMUNICATION)
    keys = ["iteration", "device"]
    return {
        "gpu_busy_ns": union_length(owned, keys),
        "kernel_sum_ns": kernels.select("iteration", length_ns="duration_ns"),
        "comm_exposed_ns": difference_length(kernels.filter(is_communication), kernels.filter(~is_communication), keys),
        **{f"{phase}_ns": union_length(owned.filter(pl.col("phase") == phase), keys) for phase in PHASES},
    }
