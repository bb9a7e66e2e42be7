"""Quality of kernel times on one stream of a device: overlaps, and durations that cannot be."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from moeprof.analyzers.medians import twice_median
from moeprof.analyzers.tables import Attribution
from moeprof.findings import Finding, JsonValue
from moeprof.traces.trace import RankTrace
from moeprof.wording import duration, function, plural

_STREAM = ["device", "stream"]
_LONG = 100  # times the median kernel
_NEVER = 2**63 - 1


def impossible_durations(rank_trace: RankTrace, attribution: Attribution) -> Iterator[Finding]:
    """Warn of kernels that outlast two later kernels of their own stream and dwarf the median kernel."""
    kernels = _by_stream(rank_trace)
    middle = twice_median(kernels["duration_ns"].to_list())
    if middle is None:
        return
    # The least and the second least end among the later kernels of the stream, swept from the last to the first.
    least = pl.col("end_ns").cum_min(reverse=True).shift(-1).over(_STREAM).fill_null(_NEVER)
    second = pl.max_horizontal("end_ns", "least").cum_min(reverse=True).shift(-1).over(_STREAM).fill_null(_NEVER)
    suspicious = (
        kernels.with_columns(least.alias("least"))
        .with_columns(second.alias("second"))
        .filter((2 * pl.col("duration_ns") > _LONG * middle) & (pl.col("second") < pl.col("end_ns")))
        .sort("duration_ns", "event", descending=[True, False])
    )
    if suspicious.is_empty():
        return
    raw = int(kernels["duration_ns"].sum())
    next_start = pl.col("start_ns").shift(-1).over(_STREAM)
    clipped = int(kernels.select(pl.min_horizontal("end_ns", next_start) - pl.col("start_ns")).sum().item())
    shown = suspicious.head(5).select(pl.col("name").cast(pl.String), *_STREAM, "start_ns", "duration_ns").to_dicts()
    worst = shown[0]
    message = (
        f"{plural(suspicious.height, 'kernel')} with an impossible duration: {function(worst['name'])} on stream"
        f" {worst['stream']} of device {worst['device']} lasts {worst['duration_ns']} ns and outlasts later kernels of"
        f" its own stream; clipped to the next start the kernel sum is {clipped} ns instead of {raw} ns"
    )
    evidence: dict[str, JsonValue] = {
        "suspicious": suspicious.height,
        **worst,
        "kernel_sum_ns": raw,
        "kernel_sum_clipped_ns": clipped,
        "kernels": [*shown],
    }
    yield Finding("impossible-duration", "warning", message, attribution.rank, evidence)


def same_stream_overlaps(rank_trace: RankTrace, attribution: Attribution) -> Iterator[Finding]:
    """Tell how many kernels start before an earlier kernel of their stream has ended, and by how much."""
    kernels = _by_stream(rank_trace)
    reached = pl.col("end_ns").cum_max().shift(1).over(_STREAM)
    shared = pl.min_horizontal("end_ns", reached) - pl.col("start_ns")
    overlaps = kernels.select(reached.is_not_null().alias("follows"), shared.alias("shared_ns")).filter(
        pl.col("follows") & (pl.col("shared_ns") > 0)  # a kernel of no length overlaps nothing
    )
    if overlaps.is_empty():
        return
    time = int(overlaps["shared_ns"].sum())
    message = (
        f"{plural(overlaps.height, 'kernel')} of {kernels.height} start before an earlier kernel of the same stream"
        f" ended, {duration(time)} in all: programmatic dependent launch makes this normal, and busy times count"
        " it once"
    )
    evidence: dict[str, JsonValue] = {"overlaps": overlaps.height, "kernels": kernels.height, "overlap_ns": time}
    yield Finding("same-stream-overlap", "note", message, attribution.rank, evidence)


def _by_stream(rank_trace: RankTrace) -> pl.DataFrame:
    kernels = rank_trace.kernels.filter(pl.col("activity") == "kernel")
    return kernels.select("event", "name", *_STREAM, "start_ns", "end_ns", "duration_ns").sort(
        [*_STREAM, "start_ns", "event"]
    )
