"""Kernels of two captures by how much their time per iteration changed.

Only steady iterations count. A kernel is called slower or faster when three things hold together: the change is more than the
unrest of the iterations (false discoveries controlled over all kernels), beyond a share, and beyond a length.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

from moeprof.analyzers.comparison.sides import KernelKey, Side
from moeprof.analyzers.durations import compare as durations
from moeprof.analyzers.durations.compare import Mean
from moeprof.analyzers.durations.discoveries import benjamini_hochberg, benjamini_yekutieli
from moeprof.analyzers.durations.results import KernelTimeRow, TimeChange
from moeprof.analyzers.tables import COMMUNICATION

if TYPE_CHECKING:
    import polars as pl

    from moeprof.analyzers.series import Series

FALSE_DISCOVERIES = 0.05
LEAST_SHARE = 0.03
LEAST_NS = 1000

_KEY = ("name", "class", "phase")
_Means: TypeAlias = Mapping[KernelKey, Mean]


def kernel_time_rows(base: Side, candidate: Side) -> tuple[KernelTimeRow, ...]:
    """Return a row for each kernel that either side launches in steady iterations, greatest difference of time first.

    Empty where a side carries no iteration by iteration values, or has no steady iteration.
    """
    before, after = _means(base), _means(candidate)
    if before is None or after is None:
        return ()
    tests = {key: durations.difference_test(before[key], after[key])[2] for key in sorted(before.keys() & after.keys())}
    tested = {key: p for key, p in tests.items() if p is not None}
    adjusted = dict(zip(tested, benjamini_hochberg(list(tested.values())), strict=True))
    strict = dict(zip(tested, benjamini_yekutieli(list(tested.values())), strict=True))
    rows = []
    for key in before.keys() | after.keys():
        left, right = before.get(key), after.get(key)
        name, class_, phase = key
        both = left is not None and right is not None
        base_ns, candidate_ns = (0 if mean is None else round(mean.value) for mean in (left, right))
        rows.append(
            KernelTimeRow(
                name=name,
                class_=class_,
                phase=phase,
                base_launches=base.kernel_launches(key),
                candidate_launches=candidate.kernel_launches(key),
                base=base_ns,
                candidate=candidate_ns,
                difference=candidate_ns - base_ns,
                ratio=durations.ratio(left.value, right.value) if left and right else None,
                interval=durations.ratio_interval(left, right) if left and right else None,
                p=tested.get(key),
                p_adjusted=adjusted.get(key),
                p_strict=strict.get(key),
                change=_change(left, right, adjusted.get(key)) if both else "added" if right else "removed",
                holds_waiting=class_ in COMMUNICATION,
            )
        )
    return tuple(sorted(rows, key=lambda row: (-abs(row.difference), row.name, row.class_, row.phase)))


def _change(base: Mean | None, candidate: Mean | None, adjusted: float | None) -> TimeChange | None:
    if base is None or candidate is None or adjusted is None:
        return None
    low, high = sorted((base.value, candidate.value))
    if adjusted >= FALSE_DISCOVERIES or high - low < LEAST_NS or high <= low * (1 + LEAST_SHARE):
        return "same"
    return "slower" if candidate.value > base.value else "faster"


def _means(side: Side) -> _Means | None:
    """Return the mean time per iteration of every kernel of a side; None where it is not known iteration by iteration."""
    series = [rank.series for rank in side.ranks if rank.series is not None]
    if not series or len(series) < len(side.ranks):
        return None
    keys = reduce(lambda one, other: one.vstack(other), (_keys(one) for one in series)).unique(maintain_order=True)
    ranks = [_rank_means(one, keys) for one in series]
    if any(rank is None for rank in ranks):
        return None
    by_rank = [rank for rank in ranks if rank is not None]
    return {key: durations.combined([rank[key] for rank in by_rank]) for key in by_rank[0]}


def _keys(series: Series) -> pl.DataFrame:
    import polars as pl

    steady = series.times.filter(~pl.col("transient")).select("iteration")
    return series.kernels.join(steady, on="iteration", how="semi").select(_KEY).unique()


def _rank_means(series: Series, keys: pl.DataFrame) -> dict[KernelKey, Mean] | None:
    """Return the means of one rank for all `keys`; 0 counts for an iteration that launched none of a kernel."""
    import polars as pl

    steady = series.times.filter(~pl.col("transient")).select("iteration").sort("iteration")
    if steady.is_empty():
        return None
    added = series.kernels.group_by(*_KEY, "iteration").agg(pl.col("kernel_sum_ns").sum())
    value = pl.col("kernel_sum_ns").cast(pl.Float64)
    off = value - value.mean()
    moments = (
        keys.join(steady, how="cross", maintain_order="left_right")
        .join(added, on=[*_KEY, "iteration"], how="left", maintain_order="left")
        .with_columns(pl.col("kernel_sum_ns").fill_null(0))
        .group_by(_KEY, maintain_order=True)
        .agg(
            value.mean().alias("mean"),
            value.std(ddof=1).fill_null(0.0).alias("deviation"),
            pl.when((off**2).sum() > 0).then((off * off.shift(-1)).sum() / (off**2).sum()).otherwise(0.0).alias("lag1"),
        )
        .with_columns(pl.col("name").cast(pl.String))
    )
    return {
        (name, class_, phase): durations.mean_from(mean, steady.height, deviation, correlation)
        for name, class_, phase, mean, deviation, correlation in moments.iter_rows()
    }
