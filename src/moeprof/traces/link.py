"""Link GPU rows to the host call that launched them, and set aside the rows that cannot be used."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from moeprof.findings import Finding
from moeprof.traces import schema
from moeprof.traces.kineto import KinetoTables

_ACTIVITY_OF = {
    "kernel": "kernel",
    "Kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "Memcpy": "memcpy",
    "gpu_memset": "memset",
    "Memset": "memset",
}
# Other backends name their rows after these: privateuse1_kernel, xpu_kernel, mtia_memcpy.
_FOREIGN = r"(?i)_(kernel|memcpy|memset)$"
# Rows that lie on the device's tracks, or are no calls, though they may carry a correlation id.
_NO_CALL = r"(?i)^(gpu_|cuda_sync$|cuda_event$|overhead$|ac2g$|async_|fwdbwd$|collective_comm$|trace$)"
_GRAPH = "GraphLaunch"
_MAKES_KERNEL = "LaunchKernel|LaunchCooperativeKernel|GraphLaunch|ModuleLaunch"


@dataclass(frozen=True, slots=True)
class Linked:
    """`schema.KERNELS`, `schema.LAUNCHES`, `schema.INVALID`, and what was found."""

    kernels: pl.DataFrame
    launches: pl.DataFrame
    invalid: pl.DataFrame
    findings: tuple[Finding, ...]


_LONGEST_NS = 2**53  # 104 days: sums of such rows stay far below what int64 holds
_FARTHEST_NS = 2**62  # and ends do not wrap


def activities(categories: list[str]) -> pl.DataFrame:
    """Return ``category`` and ``activity`` of the categories that hold GPU rows, and whether they are ``foreign``."""
    frame = pl.DataFrame({"category": categories}, schema={"category": pl.String})
    known = pl.col("category").replace_strict(_ACTIVITY_OF, default=None, return_dtype=pl.String)
    foreign = pl.col("category").str.extract(_FOREIGN).str.to_lowercase()
    return frame.select(
        "category", known.fill_null(foreign).alias("activity"), known.is_null().alias("foreign")
    ).filter(pl.col("activity").is_not_null())


def gpu_categories(events: pl.DataFrame) -> list[str]:
    """Return the categories of a rank's events that hold GPU rows or annotations on the GPU's tracks."""
    names = schema.strings(events, "category").to_list()
    return [*activities(names)["category"], *(name for name in names if name == "gpu_user_annotation")]


def link(file: KinetoTables) -> Linked:
    """Make the tables of one rank; ids of another rank must not be among the events."""
    rows = _gpu_rows(file)
    return resolve(rows, _calls(file.events, rows))


def resolve(rows: pl.DataFrame, calls: pl.DataFrame) -> Linked:
    """Link the GPU rows of one process or rank to its host calls.

    Args:
        rows: `schema.KERNELS` without ``launch``; rows that cannot be used are among them.
        calls: `schema.LAUNCHES` without the counts of rows, by start.
    """
    rows, findings = _join(rows, calls)
    launches = _counted(calls, rows)
    reasons = _reasons(rows, launches)
    ordered = rows.with_columns(reasons.alias("reason")).sort("start_ns", "event", nulls_last=True)
    invalid = ordered.filter(pl.col("reason").is_not_null()).select(*schema.INVALID)
    kernels = ordered.filter(pl.col("reason").is_null()).select(*schema.KERNELS)
    return Linked(kernels, launches, invalid, tuple(findings))


def _gpu_rows(file: KinetoTables) -> pl.DataFrame:
    events = file.events
    known = activities(schema.strings(events, "category").to_list())
    enum = events.schema["category"]
    rows = (
        events.filter(pl.col("ph").cast(pl.String) == "X")
        .join(known.with_columns(pl.col("category").cast(enum)), on="category", maintain_order="left")
        .join(file.device_args, on="event", how="left", maintain_order="left")
        .filter(~pl.col("foreign") | (pl.col("device").is_not_null() & pl.col("stream").is_not_null()))
        .join(file.tracks.select("track", "process", "thread"), on="track", how="left", maintain_order="left")
    )
    number = r"(-?\d+)\s*$"  # 0, "[TP00] 0", "stream 7"
    return rows.with_columns(
        pl.col("activity").cast(schema.ACTIVITY),
        pl.col("device").fill_null(pl.col("process").str.extract(number).cast(pl.Int64, strict=False)),
        pl.col("stream").fill_null(pl.col("thread").str.extract(number).cast(pl.Int64, strict=False)),
        (pl.col("start_ns") + pl.col("duration_ns")).alias("end_ns"),
    )


def _calls(events: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return `schema.LAUNCHES` without the counts of rows."""
    categories = schema.strings(events, "category")
    gpu = set(activities(categories.to_list())["category"])
    calls = [name for name in categories.filter(~categories.str.contains(_NO_CALL)) if name not in gpu]
    foreign = events.join(rows.select("event"), on="event", how="anti", maintain_order="left")
    return as_calls(
        foreign.filter(pl.col("correlation").is_not_null()).filter(
            pl.col("ph").cast(pl.String) == "X", pl.col("category").cast(pl.String).is_in(calls)
        )
    )


def as_calls(events: pl.DataFrame) -> pl.DataFrame:
    """Sort and number host calls, and tell by their names what they launch."""
    calls = events.sort("start_ns", "event", nulls_last=True)
    return calls.with_columns(
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("launch"),
        (pl.col("start_ns") + pl.col("duration_ns")).alias("end_ns"),
        schema.where(calls["name"], lambda names: names.str.contains(_GRAPH, literal=True)).alias("is_graph"),
        schema.where(calls["name"], lambda names: names.str.contains(_MAKES_KERNEL)).alias("is_kernel_launch"),
    )


def _join(rows: pl.DataFrame, calls: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
    """Give each GPU row the launch that shares its correlation id; of several, the first kernel launch by start."""
    used = calls.join(rows.select("correlation"), on="correlation", how="semi", maintain_order="left")
    shared = used.filter(pl.col("correlation").is_duplicated())["correlation"].unique().sort()
    winners = (
        used.sort(~pl.col("is_kernel_launch"), "launch")
        .unique("correlation", keep="first", maintain_order=True)
        .select("correlation", "launch")
    )
    findings = []
    if shared.len():
        findings.append(
            Finding(
                "ambiguous-correlation",
                "warning",
                f"{shared.len()} correlation ids of GPU rows belong to several host calls; "
                f"the first kernel launch was taken (for example id {shared[0]})",
                evidence={"ids": shared.len(), "first_id": str(shared[0])},
            )
        )
    return rows.join(winners, on="correlation", how="left", maintain_order="left"), findings


def _counted(calls: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Count the GPU rows of each call; rows set aside count, since their record is there."""
    counts = (
        rows.filter(pl.col("launch").is_not_null())
        .group_by("launch")
        .agg(
            pl.len().cast(pl.UInt32).alias("device_rows"),
            pl.col("activity").is_in(["kernel", "graph"]).sum().cast(pl.UInt32).alias("kernel_rows"),
        )
    )
    return (
        calls.join(counts, on="launch", how="left", maintain_order="left")
        .with_columns(pl.col("device_rows", "kernel_rows").fill_null(0))
        .select(*schema.LAUNCHES)
    )


def _reasons(rows: pl.DataFrame, launches: pl.DataFrame) -> pl.Series:
    """Tell for each GPU row why it is set aside, or null."""
    begun = launches.select("launch", pl.col("start_ns").alias("launched_ns"))
    later = (pl.col("launched_ns") > 0) | (pl.col("launched_ns").is_null() & (pl.col("start_ns").max() > 0))
    zero = (pl.col("start_ns") == 0) & (pl.col("duration_ns") == 0) & later
    return (
        rows.join(begun, on="launch", how="left", maintain_order="left")
        .select(
            pl.when(pl.col("start_ns").is_null() | pl.col("duration_ns").is_null())
            .then(pl.lit("no-time"))
            .when(pl.col("duration_ns") < 0)
            .then(pl.lit("negative-duration"))
            .when(zero)
            .then(pl.lit("zero-time"))
            .when((pl.col("duration_ns") > _LONGEST_NS) | (pl.col("start_ns").abs() > _FARTHEST_NS))
            .then(pl.lit("impossible-time"))
            .otherwise(None)
            .alias("reason")
        )
        .to_series()
    )
