"""How often: iterations by kind, launches by class and by kernel, in total and per iteration.

Counts are taken over the counted iterations of an attribution. An iteration in which a class or kernel does not occur
has the value 0 for it; "per iteration" follows `moeprof.analyzers.commonest`. Without a marker family there is one
window: totals stay, everything per iteration is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import polars as pl
import polars.selectors as cs

from moeprof.analyzers.commonest import by_iteration, commonest
from moeprof.analyzers.results import ClassCount, IterationCounts, KernelCount
from moeprof.analyzers.series import kernel_times
from moeprof.analyzers.tables import KINDS, Attribution
from moeprof.findings import Finding, JsonValue

_CLASS_KEY = ("phase", "class")
_KERNEL_KEY = ("name", "class", "phase", "backend")


def iteration_counts(attribution: Attribution) -> IterationCounts:
    """Count the iterations of a rank.

    Kinds add up to ``total``: both are over closed markers. ``partial`` also counts a marker that was never closed,
    because its missing end is what makes it partial.
    """
    if attribution.family is None:
        return IterationCounts(marker=None, total=0, decode=0, prefill=0, mixed=0, idle=0, partial=0, counted=0)
    iterations = attribution.iterations
    closed = iterations.filter(pl.col("marker_end_ns").is_not_null())
    has_kinds = iterations["kind"].is_not_null().any()
    of_kind = {kind: int((closed["kind"] == kind).sum()) if has_kinds else None for kind in KINDS}
    return IterationCounts(
        marker=attribution.family,
        total=closed.height,
        decode=of_kind["decode"],
        prefill=of_kind["prefill"],
        mixed=of_kind["mixed"],
        idle=of_kind["idle"],
        partial=int(iterations["partial"].sum()),
        counted=int(iterations["counted"].sum()),
    )


def class_counts(attribution: Attribution) -> tuple[ClassCount, ...]:
    """Count launches by class and phase, memcpy and memset included; by phase, then class, in the order of `tables`.

    There are none where whole graphs were recorded.
    """
    if attribution.graph_level:
        return ()
    values = _values(attribution.counted, _CLASS_KEY)
    counts = _counts(attribution, values, _CLASS_KEY).sort(_CLASS_KEY)
    return tuple(
        ClassCount(
            class_=row["class"],
            phase=row["phase"],
            total=row["total"],
            per_iteration=row["commonest"],
            constant=row["constant"],
            distinct=tuple(row["distinct"] or ()),
        )
        for row in counts.iter_rows(named=True)
    )


def kernel_counts(attribution: Attribution, kernels: pl.DataFrame | None = None) -> tuple[KernelCount, ...]:
    """Count kernels (operators on a CPU-only trace) by name, class, phase and backend; largest kernel sum first.

    Args:
        attribution: The iterations and launches of a rank.
        kernels: Its `moeprof.analyzers.series.KERNELS`, where they are made already.
    """
    if attribution.graph_level:
        return ()
    values = kernel_times(attribution) if kernels is None else kernels
    counts = _counts(attribution, values, _KERNEL_KEY).sort(
        "kernel_sum", *_KERNEL_KEY, descending=[True, False, False, False, False]
    )
    return tuple(
        KernelCount(
            name=row["name"],
            class_=row["class"],
            phase=row["phase"],
            backend=row["backend"],
            total=row["total"],
            per_iteration=row["commonest"],
            kernel_sum=row["kernel_sum"],
        )
        for row in counts.iter_rows(named=True)
    )


def counts_findings(attribution: Attribution) -> tuple[Finding, ...]:
    """Name, for each class and phase whose count is not constant, the iterations that deviate from the commonest."""
    iterations = _iterations(attribution)
    values = _values(attribution.counted, _CLASS_KEY)
    if iterations.is_empty() or values.is_empty() or attribution.graph_level:
        return ()
    values = values.rename({"launches": "value"})
    varying = commonest(values, _CLASS_KEY, iterations.height).filter(~pl.col("constant")).sort(_CLASS_KEY)
    deviating = (
        varying.join(iterations, how="cross")
        .join(values, on=[*_CLASS_KEY, "iteration"], how="left")
        .with_columns(pl.col("value").fill_null(0).cast(pl.Int64))
        .filter(pl.col("value") != pl.col("commonest"))
        .sort(*_CLASS_KEY, "iteration")
        .group_by(_CLASS_KEY, maintain_order=True)
        .agg("iteration", "value", pl.col("commonest").first())
    )
    return tuple(_not_constant(attribution.rank, iterations.height, row) for row in deviating.iter_rows(named=True))


def _not_constant(rank: str | None, iterations: int, row: dict[str, object]) -> Finding:
    numbers, values = cast("list[int]", row["iteration"]), cast("list[int]", row["value"])
    off: dict[str, JsonValue] = {str(number): value for number, value in zip(numbers, values, strict=True)}
    return Finding(
        slug="not-constant",
        severity="warning",
        message=(
            f"{row['class']} in phase {row['phase']}: {row['commonest']} launches per iteration as a rule; "
            f"{len(off)} of {iterations} iterations differ ({by_iteration(off)})"
        ),
        rank=rank,
        evidence={
            "class": cast(str, row["class"]),
            "phase": cast(str, row["phase"]),
            "commonest": cast(int, row["commonest"]),
            "iterations": off,
        },
    )


def _iterations(attribution: Attribution) -> pl.DataFrame:
    """Return the numbers of the counted iterations; none without a family."""
    if attribution.family is None:
        return attribution.iterations.clear().select("iteration")
    return attribution.iterations.filter("counted").select("iteration").sort("iteration")


def _values(launches: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return launches and their time by group and iteration: columns `by`, iteration, launches, kernel_sum_ns."""
    return launches.group_by(*by, "iteration").agg(
        pl.len().cast(pl.Int64).alias("launches"), pl.col("duration_ns").sum().alias("kernel_sum_ns")
    )


def _counts(attribution: Attribution, values: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return `by`, total, kernel_sum, commonest, constant, distinct; the last three null where nothing is counted."""
    values = values.rename({"launches": "value"})
    counts = values.group_by(by).agg(
        pl.col("value").sum().alias("total"), pl.col("kernel_sum_ns").sum().alias("kernel_sum")
    )
    iterations = _iterations(attribution).height
    if iterations:
        counts = counts.join(commonest(values, by, iterations), on=list(by), how="left", nulls_equal=True)
    else:
        counts = counts.with_columns(
            pl.lit(None, pl.Int64).alias("commonest"),
            pl.lit(None, pl.Boolean).alias("constant"),
            pl.lit(None, pl.List(pl.Int64)).alias("distinct"),
        )
    return counts.with_columns(cs.categorical().cast(pl.String))
