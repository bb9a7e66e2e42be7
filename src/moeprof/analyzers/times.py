"""Times of a rank: kernel sum, kernel busy, GPU busy, wall, communication; of the whole trace and per iteration.

Only rows of a device count (kernel, memcpy, memset). Operators of a CPU-only trace are host times: they give None.
Unions are taken per device, never per stream, and added over devices.
"""

from __future__ import annotations

import polars as pl

from moeprof.analyzers.medians import median
from moeprof.analyzers.results import PerIterationTimes, PhaseTimes, Spread, TimeTotals
from moeprof.analyzers.tables import COMMUNICATION, Attribution
from moeprof.traces.intervals import difference_length, union_length

_IS_KERNEL = pl.col("activity") == "kernel"
_IS_COMMUNICATION = pl.col("class").is_in(COMMUNICATION)


def time_totals(launches: pl.DataFrame) -> TimeTotals:
    """Return the times of a whole trace.

    Args:
        launches: `moeprof.analyzers.tables.ATTRIBUTED` of one rank.

    Returns:
        Integer ns; None throughout where there is no device row.
    """
    rows = device_rows(launches)
    if rows.is_empty():
        return TimeTotals(None, None, None, None, None, None, None, None)
    kernels = rows.filter(_IS_KERNEL)
    compute, communication = kernels.filter(~_IS_COMMUNICATION), kernels.filter(_IS_COMMUNICATION)
    gpu_busy = _busy(rows)
    wall = _total(rows.select(pl.col("end_ns").max() - pl.col("start_ns").min()).to_series())
    return TimeTotals(
        kernel_sum=_total(kernels["duration_ns"]),
        kernel_busy=_busy(kernels),
        gpu_busy=gpu_busy,
        wall=wall,
        compute_busy=_busy(compute),
        comm_busy=_busy(communication),
        comm_exposed=_total(difference_length(communication, compute, ["device"])["length_ns"]),
        idle=rows["device"].n_unique() * wall - gpu_busy,
    )


def per_iteration_times(attribution: Attribution) -> PerIterationTimes:
    """Return the times of the steady iterations: those counted, without the start transient.

    A launch belongs to the iteration that launched it, whenever it runs. Where the trace has device rows, an iteration
    without launches (in a phase) counts as 0.

    Args:
        attribution: The iterations and launches of one rank.

    Returns:
        Spreads in ns; None where there is nothing to measure.
    """
    steady = attribution.iterations.filter(pl.col("counted") & ~pl.col("transient")).sort("iteration")
    if attribution.family is None or steady.is_empty():
        return PerIterationTimes(0, None, None, None, None, PhaseTimes(None, None, None))
    wall = spread(steady.select(pl.col("next_start_ns") - pl.col("start_ns")).to_series())
    rows = device_rows(attribution.launches)
    if rows.is_empty():
        return PerIterationTimes(steady.height, wall, None, None, None, PhaseTimes(None, None, None))

    numbers = steady.select("iteration")
    owned = rows.join(numbers, on="iteration", how="semi")
    kernels = owned.filter(_IS_KERNEL)
    compute, communication = kernels.filter(~_IS_COMMUNICATION), kernels.filter(_IS_COMMUNICATION)
    keys = ["iteration", "device"]
    return PerIterationTimes(
        iterations=steady.height,
        wall=wall,
        gpu_busy=_spread_over(numbers, union_length(owned, keys)),
        kernel_sum=_spread_over(numbers, kernels.select("iteration", length_ns="duration_ns")),
        comm_exposed=_spread_over(numbers, difference_length(communication, compute, keys)),
        phases=PhaseTimes(*(_phase_busy(numbers, owned, phase) for phase in ("target", "draft", "sample"))),
    )


def spread(values: pl.Series) -> Spread | None:
    """Return median, least and greatest of integers, nulls left out; None where there are none.

    Example:
        >>> spread(pl.Series([4, 1, 2, None]))
        Spread(median=2, min=1, max=4)
    """
    known: list[int] = values.drop_nulls().to_list()
    middle = median(known)
    return None if middle is None else Spread(median=middle, min=min(known), max=max(known))


def device_rows(launches: pl.DataFrame) -> pl.DataFrame:
    """Return the launches that ran on a device: kernels, memcpys and memsets."""
    return launches.filter(pl.col("activity") != "operator")


def _busy(rows: pl.DataFrame) -> int:
    return _total(union_length(rows, ["device"])["length_ns"])


def _total(values: pl.Series) -> int:
    return int(values.sum())


def _phase_busy(numbers: pl.DataFrame, owned: pl.DataFrame, phase: str) -> Spread | None:
    return _spread_over(numbers, union_length(owned.filter(pl.col("phase") == phase), ["iteration", "device"]))


def _spread_over(numbers: pl.DataFrame, lengths: pl.DataFrame) -> Spread | None:
    """Add lengths up per iteration and spread them over all the iterations, 0 where one has none."""
    added = lengths.group_by("iteration").agg(pl.col("length_ns").sum())
    return spread(numbers.join(added, on="iteration", how="left")["length_ns"].fill_null(0))
