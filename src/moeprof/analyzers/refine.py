"""Refine the class of launches whose name serves two purposes, by their neighbours in the same iteration and phase."""

from __future__ import annotations

import polars as pl

from moeprof.analyzers.tables import CLASS

_LAYER_ENDS = ("attention", "moe_combine", "moe_fused", "all_gather", "reduce_scatter")


def refine(launches: pl.DataFrame) -> pl.DataFrame:
    """Apply the ``only`` refinements of the rules (see docs/rules.md) to a rank's launches, sorted by start.

    Args:
        launches: with ``class``, ``role``, ``only``, ``otherwise``, ``iteration``, ``phase``, ``gemms``.

    Returns:
        The same rows with ``class`` and ``gemms`` refined.
    """
    return _between_gemms(_in_moe_block(_in_moe_trace(launches)))


def _names_any(launches: pl.DataFrame, refinement: str) -> bool:
    return bool((launches["only"] == refinement).any())


def _reject(launches: pl.DataFrame, rejected: pl.Expr) -> pl.DataFrame:
    return launches.with_columns(
        pl.when(rejected).then("otherwise").otherwise("class").cast(CLASS).alias("class"),
        pl.when(rejected).then(0).otherwise("gemms").cast(pl.Int32).alias("gemms"),
    )


def _in_moe_trace(launches: pl.DataFrame) -> pl.DataFrame:
    """Keep the class of a launch where anything in the rank routes tokens to experts."""
    rejected = (pl.col("only") == "moe-trace").fill_null(value=False) & ~(pl.col("class") == "moe_route").any()
    return _reject(launches, rejected)


def _in_moe_block(launches: pl.DataFrame) -> pl.DataFrame:
    """Keep the class of a launch after a block's alignment and before its combine.

    Where an iteration and phase holds no alignment kernel at all nothing is known, and the name decides.
    """
    if not _names_any(launches, "in-moe-block"):
        return launches
    groups = ["iteration", "phase"]
    opens = (pl.col("role") == "align").fill_null(value=False)
    closes = (pl.col("class") == "moe_combine").fill_null(value=False)
    state = pl.when(opens).then(1).when(closes).then(0).forward_fill().over(groups).fill_null(0)
    known = opens.any().over(groups)
    rejected = (pl.col("only") == "in-moe-block").fill_null(value=False) & known & (state == 0)
    return _reject(launches, rejected)


def _between_gemms(launches: pl.DataFrame) -> pl.DataFrame:
    """Keep the class of one launch per GEMM pair: the last candidate that starts between its two GEMMs."""
    if not _names_any(launches, "between-gemms"):
        return launches
    # A pair never reaches over what ends a layer, so that one lost GEMM does not shift the pairs after it.
    ends = pl.col("class").cast(pl.String).is_in(_LAYER_ENDS).cast(pl.Int32).cum_sum().over("iteration", "phase")
    launches = launches.with_columns(ends.alias("layer"))
    groups = ["iteration", "phase", "layer"]
    gemm = (pl.col("class") == "moe_gemm") & (pl.col("gemms") == 1)
    candidate = (pl.col("only") == "between-gemms").fill_null(value=False)
    marked = launches.with_columns(
        gemm.cast(pl.Int32).cum_sum().over(groups).alias("nth_gemm"),
        gemm.sum().over(groups).alias("gemm_total"),
        pl.int_range(pl.len()).alias("position"),
        candidate.alias("candidate"),
    )
    open_pair = (pl.col("nth_gemm") % 2 == 1) & (pl.col("nth_gemm") < pl.col("gemm_total"))
    last = pl.col("position").filter(pl.col("candidate")).max().over([*groups, "nth_gemm"])
    kept = open_pair & (pl.col("position") == last)
    return _reject(marked, pl.col("candidate") & ~kept.fill_null(value=False)).drop(
        "nth_gemm", "gemm_total", "position", "candidate", "layer"
    )
