"""The table of profiled kernels, whatever page or version of Nsight Compute it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from moeprof.findings import Finding
from moeprof.traces.schema import Schema

#: One row per profiled kernel, in the order of the report. Times ns, sizes bytes, rates Hz, shares in percent; null: not measured.
KERNEL_METRICS: Final[Schema] = {
    "kernel": pl.UInt32,  # number in the report
    "name": pl.String,
    "range": pl.String,  # innermost NVTX range that was open at the launch
    "device": pl.String,  # name; null where the report holds its number only
    "grid": pl.String,
    "block": pl.String,
    "duration_ns": pl.Float64,
    "tensor_pct": pl.Float64,
    "dram_pct": pl.Float64,
    "occupancy_pct": pl.Float64,
    "dram_read_bytes": pl.Float64,
    "dram_write_bytes": pl.Float64,
    "sm_hz": pl.Float64,
}


@dataclass(frozen=True, slots=True)
class Metric:
    """A column, the metrics that fill it (the first one present counts) and its unit."""

    column: str
    unit: str
    names: tuple[str, ...]


#: Metric names of the raw page, then the labels of the details page.
METRICS: Final = (
    Metric("duration_ns", "ns", ("gpu__time_duration.sum", "gpu__time_duration.avg", "Duration")),
    Metric(
        "tensor_pct",
        "%",
        (
            "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
            "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
            "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
        ),
    ),
    Metric(
        "dram_pct",
        "%",
        (
            "dram__throughput.avg.pct_of_peak_sustained_elapsed",
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
            "DRAM Throughput",
        ),
    ),
    Metric("occupancy_pct", "%", ("sm__warps_active.avg.pct_of_peak_sustained_active", "Achieved Occupancy")),
    Metric("dram_read_bytes", "byte", ("dram__bytes_read.sum",)),
    Metric("dram_write_bytes", "byte", ("dram__bytes_write.sum",)),
    Metric("sm_hz", "hz", ("sm__cycles_elapsed.avg.per_second", "smsp__cycles_elapsed.avg.per_second", "SM Frequency")),
)

#: What to ask Nsight Compute for, so that every column is filled.
WANTED: Final = tuple(metric.names[0] for metric in METRICS)


@dataclass(frozen=True, slots=True)
class KernelMetrics:
    """A report of Nsight Compute.

    Attributes:
        source: The file.
        kernels: Rows of `KERNEL_METRICS`.
        findings: What was left aside or is not there.
    """

    source: str
    kernels: pl.DataFrame
    findings: tuple[Finding, ...] = ()
