"""Fold and compare two captures of a million launches each: the analysis alone, from tables that are there.

$ python benchmarks/layers.py [launches]
"""

from __future__ import annotations

import sys
import time

import polars as pl

from moeprof.analyzers.layers.changes import layer_changes
from moeprof.analyzers.layers.results import LayerRow
from moeprof.analyzers.layers.sequences import sequences
from moeprof.analyzers.layers.structure import layer_rows
from moeprof.analyzers.tables import ACTIVITY, ATTRIBUTED, CLASS, ITERATIONS, KIND, PHASE, Attribution

LAYERS = 42
BASE = [
    ("norm", "rms_norm"), ("dense_gemm", "nvjet_tst_128x64"), ("elementwise", "triton_poi_fused_1"),
    ("elementwise", "triton_red_fused_2"), ("kv_cache", "reshape_and_cache"), ("attention", "flash_fwd"),
    ("attention", "flash_combine"), ("quant", "per_token_quant"), ("dense_gemm", "nvjet_tst_64x8"), ("norm", "add_rms_norm"),
    ("dense_gemm", "router"), ("moe_route", "grouped_topk"), ("quant", "per_token_quant"), ("dense_gemm", "shared_up"),
    ("all_gather", "ncclDevKernel_AllGather"), ("elementwise", "silu_mul"), ("dense_gemm", "shared_down"),
    ("moe_route", "moe_align"), ("moe_route", "count_and_sort"), ("moe_gemm", "humming<1>"), ("moe_act", "act_and_mul"),
    ("moe_gemm", "humming<2>"), ("moe_combine", "fused_mul_sum"), ("reduce_scatter", "ncclDevKernel_ReduceScatter"),
]  # fmt: skip
FUSED = [*BASE[:14], ("moe_fused", "mega_moe"), *BASE[15:17]]


def capture(body: list[tuple[str, str]], launches: int) -> Attribution:
    """Return a capture of about so many launches: a prologue, a dense layer, 42 layers, a head; graph replays on two streams."""
    one = (
        [("memcpy", "copy_in")] * 10
        + BASE[:12]
        + [("dense_gemm", "dense_down")]
        + body * LAYERS
        + [("sampling", "argmax")]
    )
    count = max(1, launches // len(one))
    iteration = pl.DataFrame({"class": [c for c, _ in one], "name": [n for _, n in one]}).with_row_index("place")
    table = pl.DataFrame({"iteration": range(count)}, schema={"iteration": pl.Int32}).join(iteration, how="cross")
    shared = pl.col("name").is_in(["silu_mul", "shared_down", "moe_align"])
    start = pl.int_range(pl.len(), dtype=pl.Int64) * 1000
    jitter = pl.when(shared).then((pl.int_range(pl.len(), dtype=pl.Int64) * 7919 % 5 - 2) * 700).otherwise(0)
    launch = pl.col("iteration").cast(pl.Int64) * (len(one) * 1000)
    rows = table.select(
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("event"),
        "name",
        pl.col("class").cast(CLASS),
        pl.lit(None, pl.String).alias("backend"),
        pl.lit(0, pl.Int32).alias("gemms"),
        pl.lit("kernel", ACTIVITY).alias("activity"),
        pl.lit(0, pl.Int64).alias("device"),
        pl.when(shared).then(8).otherwise(7).cast(pl.Int64).alias("stream"),
        (start + jitter).alias("start_ns"),
        (start + jitter + 900).alias("end_ns"),
        pl.lit(900, pl.Int64).alias("duration_ns"),
        pl.col("iteration").cast(pl.UInt32).alias("launch"),
        launch.alias("launch_start_ns"),
        "iteration",
        pl.lit("target", PHASE).alias("phase"),
    ).select(list(ATTRIBUTED))
    begin = pl.int_range(count, dtype=pl.Int64, eager=True) * (len(one) * 1000)
    iterations = pl.DataFrame({"iteration": range(count)}, schema={"iteration": pl.Int32}).select(
        "iteration",
        pl.lit("execute").alias("label"),
        pl.lit("decode", KIND).alias("kind"),
        begin.alias("start_ns"),
        (begin + 10).alias("marker_end_ns"),
        begin.shift(-1).alias("next_start_ns"),
        pl.lit(0, pl.UInt32).alias("track"),
        pl.lit(value=False).alias("partial"),
        pl.lit(None, pl.String).alias("partial_reason"),
        pl.lit(value=False).alias("transient"),
        pl.lit(value=True).alias("counted"),
    )
    return Attribution(
        "rank0", "vllm", False, "decode", iterations.select(list(ITERATIONS)), rows.sort("start_ns", "event")
    )


def fold(attribution: Attribution) -> tuple[LayerRow, ...]:
    """Return the structure of a capture."""
    return layer_rows(sequences(attribution))


def main() -> None:
    """Print how long folding two captures and comparing them takes."""
    launches = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    base, candidate = capture(BASE, launches), capture(FUSED, launches)
    began = time.perf_counter()
    first = fold(base)
    folded = time.perf_counter()
    second = fold(candidate)
    both = time.perf_counter()
    changes = layer_changes(first, second)
    end = time.perf_counter()
    print(
        f"{len(base.launches)} launches folded in {folded - began:.2f} s: {[(row.repeat, len(row.sequence)) for row in first]}"
    )
    print(f"{len(candidate.launches)} launches folded in {both - folded:.2f} s")
    print(f"compared in {end - both:.3f} s; both folded and compared in {end - began:.2f} s")
    for change in changes:
        if change.sentence:
            print(change.sentence)


if __name__ == "__main__":
    main()
