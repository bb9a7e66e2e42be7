"""How long timelines and the comparison of ranks take on tables made in memory: 1 million kernels, and 32 ranks of 50,000 each.

.venv/bin/python -m benchmarks.timeline --runs 5
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import polars as pl

from moeprof.analyzers.collectives.compare import compare_ranks
from moeprof.analyzers.tables import ACTIVITY, ATTRIBUTED, CLASS, ITERATIONS, KIND, PHASE, Attribution
from moeprof.analyzers.timeline.summary import rank_timeline
from moeprof.traces import schema
from moeprof.traces.trace import RankTrace, TraceMetadata

_PER_ITERATION = 1_000
_EVERY_NS = 5_000


def rank(key: str, kernels: int, late_ns: int = 0) -> tuple[RankTrace, Attribution]:
    """Return a rank of eager kernels on two streams, every twentieth of them a collective, and its attribution."""
    number = pl.int_range(kernels, eager=True).alias("event").to_frame()
    start = pl.col("event").cast(pl.Int64) * _EVERY_NS
    is_gather = pl.col("event") % 20 == 0
    name = pl.when(is_gather).then(pl.lit("all_gather")).otherwise(pl.lit("dense_gemm"))
    rows = number.with_columns(
        pl.col("event").cast(pl.UInt32).alias("launch"),
        name.alias("name"),
        name.cast(CLASS).alias("class"),
        pl.lit("kernel", ACTIVITY).alias("activity"),
        pl.lit("target", PHASE).alias("phase"),
        (start + pl.when(is_gather).then(late_ns).otherwise(0) + 8_000).alias("start_ns"),
        (start + 8_000 + 3_000 + (pl.col("event").cast(pl.Int64) * 7_919) % 4_000).alias("end_ns"),
        start.alias("launch_start_ns"),
        (pl.col("event") // _PER_ITERATION).cast(pl.Int32).alias("iteration"),
        pl.lit(0, pl.Int64).alias("device"),
        (7 + pl.col("event").cast(pl.Int64) % 2).alias("stream"),
        pl.lit(1, pl.Int32).alias("gemms"),
        pl.lit(None, pl.String).alias("backend"),
    )
    rows = rows.with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"))
    launches = rows.select(
        pl.col("launch"),
        pl.col("event").cast(pl.UInt32),
        pl.lit("cudaLaunchKernel", pl.Enum(["cudaLaunchKernel"])).alias("name"),
        pl.lit(0, pl.UInt32).alias("track"),
        pl.col("launch_start_ns").alias("start_ns"),
        pl.lit(3_000, pl.Int64).alias("duration_ns"),
        (pl.col("launch_start_ns") + 3_000).alias("end_ns"),
        pl.col("event").cast(pl.UInt64).alias("correlation"),
        pl.lit(None, pl.UInt64).alias("external_id"),
        pl.lit(1, pl.UInt32).alias("device_rows"),
        pl.lit(1, pl.UInt32).alias("kernel_rows"),
        pl.lit(value=False).alias("is_graph"),
        pl.lit(value=True).alias("is_kernel_launch"),
    )
    begun = pl.col("iteration").cast(pl.Int64) * _PER_ITERATION * _EVERY_NS
    iterations = (
        pl.int_range(kernels // _PER_ITERATION, dtype=pl.Int32, eager=True)
        .alias("iteration")
        .to_frame()
        .with_columns(
            pl.lit("execute_context_0(0)_generation_8(8)").alias("label"),
            pl.lit("decode", KIND).alias("kind"),
            begun.alias("start_ns"),
            (begun + 1_000_000).alias("marker_end_ns"),
            pl.lit(0, pl.UInt32).alias("track"),
            pl.lit(value=False).alias("partial"),
            pl.lit(None, pl.String).alias("partial_reason"),
            pl.lit(value=False).alias("transient"),
            pl.lit(value=True).alias("counted"),
        )
        .with_columns(pl.col("start_ns").shift(-1).alias("next_start_ns"))
        .select(list(ITERATIONS))
    )
    attributed = rows.with_columns(pl.col("event").cast(pl.UInt32)).select(list(ATTRIBUTED)).sort("start_ns", "event")
    trace = RankTrace(
        key=key,
        source=key,
        launches=launches,
        markers=schema.empty(schema.MARKERS),
        invalid=schema.empty(schema.INVALID),
        metadata=TraceMetadata(base_time_ns=0, base_time_known=True),
        event_counts={},
        events=schema.empty(schema.EVENTS),
        kernels=schema.empty(schema.KERNELS),
        collectives=schema.empty(schema.COLLECTIVES),
        tracks=schema.empty(schema.TRACKS),
    )
    return trace, Attribution(
        key, "vllm", cpu_only=False, counts_over="decode", iterations=iterations, launches=attributed
    )


def measured(name: str, work: Callable[[], object], runs: int) -> None:
    """Print the median and the range of some runs."""
    seconds = []
    for _ in range(runs):
        begun = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begun)
    print(f"{name}: {median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f}, n={runs})")


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    large = rank("rank0", 1_000_000)
    measured("timeline of 1,000,000 kernels", lambda: rank_timeline(*large), runs)
    many = {f"rank{index}": rank(f"rank{index}", 50_000, late_ns=50 * index) for index in range(32)}
    measured("32 ranks of 50,000 kernels: collectives", lambda: compare_ranks(many), runs)

    def together() -> None:
        _, waits = compare_ranks(many)
        for key, (one, found) in many.items():
            rank_timeline(one, found, waits.get(key))

    measured("32 ranks of 50,000 kernels: collectives and timelines", together, runs)


if __name__ == "__main__":
    main()
