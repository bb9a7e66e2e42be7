"""Mark iterations that the window cut (partial), the start transient, and those that counts are taken over."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import polars as pl

from moeprof.analyzers.commonest import commonest_kind
from moeprof.analyzers.medians import twice_median
from moeprof.analyzers.tables import KERNEL_TIME, KINDS

#: The first iteration is a start transient where its wall time or kernel sum is more than this many times the others' median.
TRANSIENT_FACTOR = Fraction(5, 4)
_TRANSIENT_NEEDS = 3


@dataclass(frozen=True, slots=True)
class StartTransient:
    """The figure by which the first iteration is a start transient: ``wall`` or ``kernel_sum``, and the others' median."""

    iteration: int
    figure: str
    value_ns: int
    median_of_others_ns: int


def mark(
    iterations: pl.DataFrame,
    launches: pl.DataFrame,
    calls: pl.DataFrame,
    *,
    cpu_only: bool,
    last_is_whole: bool = False,
) -> pl.DataFrame:
    """Add ``partial``, ``partial_reason``, ``transient`` and ``counted``.

    Evidence of cutting: a marker that was never closed; kernel launches (graph launches too) that left no kernel; for the
    last iteration, which has no successor, also fewer launches, or fewer kernels of a graph replay, than any
    other complete iteration of its kind has.

    Args:
        iterations: ITERATIONS without the four columns.
        launches: attributed rows with ``iteration``, ``duration_ns``, ``activity``.
        calls: host launch calls with ``iteration``, ``start_ns``, ``device_rows``, ``kernel_rows``, ``is_kernel_launch``,
            ``is_graph``; empty on a CPU-only trace.
        cpu_only: Operators stand for launches.
        last_is_whole: The markers prove that the last iteration ran to its end, so fewer launches are no sign of cutting.
    """
    if iterations.is_empty():
        empty = {"partial": pl.Boolean, "partial_reason": pl.String, "transient": pl.Boolean, "counted": pl.Boolean}
        return iterations.with_columns(*(pl.lit(None, dtype=dtype).alias(name) for name, dtype in empty.items()))
    marked = _with_reasons(iterations, launches, calls)
    marked = _last_falls_short(marked, launches, calls, cpu_only=cpu_only, whole=last_is_whole)
    marked = marked.with_columns(pl.col("partial_reason").is_not_null().alias("partial"))
    marked = _with_transient(marked, launches)
    kind = counts_over(marked)
    if kind in KINDS:
        counted = ~pl.col("partial") & (pl.col("kind") == kind).fill_null(value=False)
    else:
        counted = ~pl.col("partial")
    return (
        marked.with_columns(counted.alias("counted")) if kind else marked.with_columns(pl.lit(False).alias("counted"))
    )


def counts_over(iterations: pl.DataFrame) -> str | None:
    """Return the kind that counts are taken over: decode, else the commonest that is not idle; "all" without kinds.

    None where no iteration is complete, or all complete ones are idle.
    """
    complete = iterations.filter(~pl.col("partial"))
    if complete.is_empty():
        return None
    if iterations["kind"].is_null().all():
        return "all"
    kinds = complete["kind"].drop_nulls().cast(pl.String).to_list()
    if "decode" in kinds:
        return "decode"
    return commonest_kind(kind for kind in kinds if kind != "idle")


def _with_reasons(iterations: pl.DataFrame, launches: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """A decode, prefill or mixed step always launches: one without any, beside steps that do, lies where records are lost."""
    owned = [
        rows.filter(pl.col("iteration").is_not_null()).select("iteration", pl.lit(True).alias("launched"))
        for rows in (launches, calls)
    ]
    launched = pl.concat(owned).unique()
    lost = (
        calls.filter(pl.col("is_kernel_launch") & (pl.col("kernel_rows") == 0), pl.col("iteration").is_not_null())
        .group_by("iteration")
        .agg(pl.len().alias("lost"))
    )
    return (
        iterations.join(lost, on="iteration", how="left", maintain_order="left")
        .join(launched, on="iteration", how="left", maintain_order="left")
        .with_columns(
            pl.when(pl.col("marker_end_ns").is_null())
            .then(pl.lit("its marker was never closed"))
            .when(pl.col("lost") > 0)
            .then(pl.format("{} kernel launches left no kernel record", "lost"))
            .when(
                pl.col("launched").is_null()
                & pl.lit(not launched.is_empty())
                & (pl.col("kind") != "idle").fill_null(value=False)
            )
            .then(pl.lit("none of its launches is on record"))
            .alias("partial_reason")
        )
        .drop("lost", "launched")
    )


def _last_falls_short(
    iterations: pl.DataFrame, launches: pl.DataFrame, calls: pl.DataFrame, *, cpu_only: bool, whole: bool
) -> pl.DataFrame:
    last = iterations.row(len(iterations) - 1, named=True)
    if last["partial_reason"] is not None:
        return iterations
    peers = iterations.filter(
        pl.col("iteration") != last["iteration"],
        pl.col("partial_reason").is_null(),
        pl.col("kind").eq_missing(pl.lit(last["kind"], dtype=iterations.schema["kind"])),
    ).select("iteration")
    if peers.is_empty():
        return iterations
    reason = None
    if not whole:
        what, rows = ("launch calls", calls.filter(pl.col("device_rows") > 0))
        if cpu_only:  # how many small operators a step calls depends on what is sampled: only the others tell of a cut
            what, rows = "launches", launches.filter(~pl.col("class").is_in(["elementwise", "copy", "other"]))
        reason = _short(what, _per_iteration(rows), peers, last["iteration"])
    if not cpu_only:
        reason = reason or _short_replay(calls, peers, last["iteration"])
    if reason is None:
        return iterations
    return iterations.with_columns(
        pl.when(pl.col("iteration") == last["iteration"])
        .then(pl.lit(reason))
        .otherwise("partial_reason")
        .alias("partial_reason")
    )


def _per_iteration(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("iteration").is_not_null()).group_by("iteration").agg(pl.len().alias("count"))


def _short(what: str, counts: pl.DataFrame, peers: pl.DataFrame, last: int) -> str | None:
    least = peers.join(counts, on="iteration", how="left")["count"].fill_null(0).min()
    own = counts.filter(pl.col("iteration") == last)["count"].sum()
    if isinstance(least, int) and own < least:
        return f"the window ends inside it: {own} {what}, others have at least {least}"
    return None


def _short_replay(calls: pl.DataFrame, peers: pl.DataFrame, last: int) -> str | None:
    """Compare the kernels of each graph replay of the last iteration with the same replay (by order) of the others."""
    replays = (
        calls.filter("is_graph", pl.col("iteration").is_not_null())
        .sort("start_ns", "kernel_rows")
        .with_columns(pl.int_range(pl.len()).over("iteration").alias("nth"))
    )
    least = (
        replays.join(peers, on="iteration", how="semi").group_by("nth").agg(pl.col("kernel_rows").min().alias("least"))
    )
    short = (
        replays.filter(pl.col("iteration") == last)
        .join(least, on="nth", how="inner")
        .filter(pl.col("kernel_rows") < pl.col("least"))
        .sort("nth")
    )
    if short.is_empty():
        return None
    first = short.row(0, named=True)
    return (
        f"the window ends inside it: graph replay {first['nth'] + 1} left {first['kernel_rows']} kernels, "
        f"others at least {first['least']}"
    )


def start_transient(iterations: pl.DataFrame, launches: pl.DataFrame) -> StartTransient | None:
    """Return the figures by which the first iteration is a start transient, or None where it is none.

    Args:
        iterations: ITERATIONS with ``partial``.
        launches: attributed rows with ``iteration``, ``duration_ns``, ``activity``.
    """
    if len(iterations) < _TRANSIENT_NEEDS:
        return None
    sums = (
        launches.filter(pl.col("activity").is_in(KERNEL_TIME))
        .group_by("iteration")
        .agg(pl.col("duration_ns").sum().alias("kernel_sum"))
    )
    seen = iterations.join(sums, on="iteration", how="left", maintain_order="left").with_columns(
        (pl.col("next_start_ns") - pl.col("start_ns")).alias("wall")
    )
    first = seen.row(0, named=True)
    rest = seen.filter(~pl.col("partial"), pl.col("iteration") != first["iteration"])
    for figure in ("wall", "kernel_sum"):
        value, twice = first[figure], twice_median(rest[figure].drop_nulls().to_list())
        if value is not None and twice is not None and 2 * value > TRANSIENT_FACTOR * twice:
            return StartTransient(first["iteration"], figure, value, twice // 2)
    return None


def _with_transient(iterations: pl.DataFrame, launches: pl.DataFrame) -> pl.DataFrame:
    found = start_transient(iterations, launches)
    number = None if found is None else found.iteration
    return iterations.with_columns(pl.col("iteration").eq_missing(number).alias("transient"))
