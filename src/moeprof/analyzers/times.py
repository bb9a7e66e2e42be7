"""Times of a rank: kernel sum, kernel busy, GPU busy, wall, communication; of the whole trace and per iteration.

Only rows of a device count (kernel, memcpy, memset). Operators of a CPU-only trace are host times: they give None.
Unions are taken per device, never per stream, and added over devices.
"""

from __future__ import annotations

import polars as pl

from moeprof.analyzers.medians import median
from moeprof.analyzers.results import PerIterationTimes, PhaseTimes, Spread, TimeTotals
from moeprof.analyzers.tables import COMMUNICATION, KERNEL_TIME, PHASES
from moeprof.traces.intervals import difference_length, union_length

_IS_KERNEL = pl.col("activity").is_in(KERNEL_TIME)
_IS_COMMUNICATION = pl.col("class").is_in(COMMUNICATION)


def time_totals(launches: pl.DataFrame) -> TimeTotals:
    """Return the times of a whole trace.

    Args:
        launches: `moeprof.analyzers.tables.ATTRIBUTED` of one rank.

    Returns:
        Integer ns; None throughout where there is no device row, and for communication where whole graphs were recorded.
    """
    rows = device_rows(launches)
    if rows.is_empty():
        return TimeTotals(None, None, None, None, None, None, None, None)
    kernels = rows.filter(_IS_KERNEL)
    compute, communication = kernels.filter(~_IS_COMMUNICATION), kernels.filter(_IS_COMMUNICATION)
    gpu_busy = _busy(rows)
    wall = _total(rows.select(pl.col("end_ns").max() - pl.col("start_ns").min()).to_series())
    split = not (kernels["activity"] == "graph").any()  # a whole graph may hold both
    return TimeTotals(
        kernel_sum=_total(kernels["duration_ns"]),
        kernel_busy=_busy(kernels),
        gpu_busy=gpu_busy,
        wall=wall,
        compute_busy=_busy(compute) if split else None,
        comm_busy=_busy(communication) if split else None,
        comm_exposed=_total(difference_length(communication, compute, ["device"])["length_ns"]) if split else None,
        idle=rows["device"].n_unique() * wall - gpu_busy,
    )


def per_iteration_times(table: pl.DataFrame) -> PerIterationTimes:
    """Return the times of the steady iterations: those counted, without the start transient.

    Args:
        table: `moeprof.analyzers.series.TIMES` of one rank.

    Returns:
        Spreads in ns; None where there is nothing to measure.
    """
    steady = table.filter(~pl.col("transient"))
    if steady.is_empty():
        return PerIterationTimes(0, None, None, None, None, PhaseTimes(None, None, None), wall_iterations=0)
    return PerIterationTimes(
        iterations=steady.height,
        wall=spread(steady["wall_ns"]),
        gpu_busy=spread(steady["gpu_busy_ns"]),
        kernel_sum=spread(steady["kernel_sum_ns"]),
        comm_exposed=spread(steady["comm_exposed_ns"]),
        phases=PhaseTimes(*(spread(steady[f"{phase}_ns"]) for phase in PHASES)),
        wall_iterations=steady["wall_ns"].count(),
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
