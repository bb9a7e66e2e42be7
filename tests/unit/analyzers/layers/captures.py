"""Captures of which the structure is known: launches of a few iterations, as attribution gives them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from moeprof.analyzers.layers.results import LayerRow
from moeprof.analyzers.layers.sequences import sequences
from moeprof.analyzers.layers.structure import layer_rows
from moeprof.analyzers.tables import ACTIVITY, ATTRIBUTED, CLASS, ITERATIONS, KIND, PHASE, Attribution

Launch = tuple[str, str]

HEAD: list[Launch] = [("memcpy", "copy_in"), ("sampling", "prepare"), ("elementwise", "embed")]
ATTENTION: list[Launch] = [
    ("norm", "rms_norm"), ("dense_gemm", "nvjet_tst_128x64_h"), ("kv_cache", "reshape_and_cache"), ("attention", "flash_fwd"),
    ("dense_gemm", "nvjet_tst_64x8_v"), ("norm", "add_rms_norm"),
]  # fmt: skip
DENSE: list[Launch] = [*ATTENTION, ("dense_gemm", "up"), ("elementwise", "silu"), ("dense_gemm", "down")]
EXPERTS: list[Launch] = [
    ("moe_route", "grouped_topk"), ("all_gather", "ncclDevKernel_AllGather"), ("moe_route", "align"), ("moe_gemm", "humming<1>"),
    ("moe_act", "act_and_mul"), ("moe_gemm", "humming<2>"), ("moe_combine", "mul_sum"),
    ("reduce_scatter", "ncclDevKernel_ReduceScatter"), ("elementwise", "add"),
]  # fmt: skip
FUSED: list[Launch] = [("moe_route", "grouped_topk"), ("moe_fused", "mega_moe"), ("elementwise", "add")]
MOE = [*ATTENTION, *EXPERTS]
MEGA = [*ATTENTION, *FUSED]
DRAFT: list[Launch] = [
    ("sampling", "update"),
    ("copy", "cat"),
    ("dense_gemm", "fc"),
    *ATTENTION,
    *EXPERTS,
    ("dense_gemm", "lm_head"),
]
TAIL: list[Launch] = [("norm", "final"), ("dense_gemm", "head")]


def target(layers: Sequence[Sequence[Launch]]) -> list[Launch]:
    """Return the launches of the target: head, a dense layer, these layers, tail."""
    return [*HEAD, *DENSE, *(launch for layer in layers for launch in layer), *TAIL]


def capture(iterations: Sequence[tuple[list[Launch], list[Launch]]]) -> Attribution:
    """Return a capture of iterations, each a target and a draft phase; every launch lasts 100 ns, with 50 ns between."""
    rows = [
        (name, class_, number, phase)
        for number, phases in enumerate(iterations)
        for phase, launches in zip(("target", "draft"), phases, strict=True)
        for class_, name in launches
    ]
    table = pl.DataFrame(
        rows, schema={"name": pl.String, "class": CLASS, "iteration": pl.Int32, "phase": PHASE}, orient="row"
    )
    start = pl.int_range(pl.len(), dtype=pl.Int64) * 150
    launches = table.with_columns(
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("event"),
        pl.lit(None, pl.String).alias("backend"),
        pl.lit(0, pl.Int32).alias("gemms"),
        pl.lit("kernel", ACTIVITY).alias("activity"),
        pl.lit(0, pl.Int64).alias("device"),
        pl.lit(7, pl.Int64).alias("stream"),
        start.alias("start_ns"),
        (start + 100).alias("end_ns"),
        pl.lit(100, pl.Int64).alias("duration_ns"),
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("launch"),
        start.alias("launch_start_ns"),
    ).select(list(ATTRIBUTED))
    begin = launches.group_by("iteration").agg(pl.col("start_ns").min()).sort("iteration")
    marks = begin.select(
        "iteration",
        pl.lit("step").alias("label"),
        pl.lit("decode", KIND).alias("kind"),
        "start_ns",
        (pl.col("start_ns") + 10).alias("marker_end_ns"),
        pl.col("start_ns").shift(-1).alias("next_start_ns"),
        pl.lit(0, pl.UInt32).alias("track"),
        pl.lit(value=False).alias("partial"),
        pl.lit(None, pl.String).alias("partial_reason"),
        pl.lit(value=False).alias("transient"),
        pl.lit(value=True).alias("counted"),
    ).select(list(ITERATIONS))
    return Attribution("rank0", "vllm", False, "decode", marks, launches)


def structure(layers: Sequence[Sequence[Launch]], drafts: int = 3) -> tuple[LayerRow, ...]:
    """Return the structure of three iterations of these layers and so many draft passes."""
    return layer_rows(sequences(capture([(target(layers), DRAFT * drafts)] * 3)))
