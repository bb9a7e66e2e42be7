"""How steady a window is: the distribution of wall times, drift, and iterations that stand out, with where their time went."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import Counter

import polars as pl

from moeprof.analyzers.medians import median
from moeprof.analyzers.timeline.results import Distribution, Drift, Excess, Outlier

_LEAST_FOR_DRIFT = 9
_LEAST_FOR_OUTLIERS = 5
_MADS = 5.0
_SHARE = 0.10  # of the median wall time that an outlier is above it, at least
_PARTS = 3
_OUTLIERS = 8


def distribution(walls: list[int]) -> Distribution | None:
    """Return the distribution of wall times.

    >>> distribution([4, 1, 3, 2]).p50
    2
    """
    if not walls:
        return None
    ordered = sorted(walls)
    p10, p25, p50, p75, p90, p99 = (ordered[math.ceil(len(ordered) * q / 100) - 1] for q in (10, 25, 50, 75, 90, 99))
    return Distribution(len(ordered), ordered[0], p10, p25, p50, p75, p90, p99, ordered[-1])


def drift(walls: list[int]) -> Drift | None:
    """Return how wall times move, in order; None for fewer than nine.

    >>> found = drift([100, 101, 102, 103, 104, 105, 106, 107, 108])
    >>> found.first_ns, found.last_ns, found.tau
    (101, 107, 1.0)
    """
    third = len(walls) // 3
    if len(walls) < _LEAST_FOR_DRIFT:
        return None
    first, last = median(walls[:third]), median(walls[-third:])
    assert first is not None
    assert last is not None
    tau, p = kendall(walls)
    return Drift(first, last, last / first - 1 if first else 0.0, tau, p)


def kendall(values: list[int]) -> tuple[float | None, float | None]:
    """Return how far values and their order go together: Kendall's tau-b and its two-sided p (normal, corrected for ties).

    None each where all values are equal.

    >>> kendall([1, 2, 3, 4])
    (1.0, 0.041540067)
    """
    count = len(values)
    seen: list[int] = []
    score = 0
    for value in values:
        score += bisect_left(seen, value) - (len(seen) - bisect_right(seen, value))
        insort(seen, value)
    ties = Counter(values).values()
    pairs = count * (count - 1) // 2
    untied = pairs - sum(tie * (tie - 1) // 2 for tie in ties)
    if not untied:
        return None, None
    variance = (count * (count - 1) * (2 * count + 5) - sum(tie * (tie - 1) * (2 * tie + 5) for tie in ties)) / 18
    p = math.erfc(abs(score) / math.sqrt(2 * variance))
    return round(score / math.sqrt(pairs * untied), 6), float(f"{p:.8g}")


def outliers(steady: pl.DataFrame, parts: pl.DataFrame) -> tuple[Outlier, ...]:
    """Return the iterations whose wall time stands out above the others', the longest first.

    Args:
        steady: `moeprof.analyzers.timeline.tables.PER_ITERATION` of iterations that are alike.
        parts: `moeprof.analyzers.timeline.tables.PARTS`.
    """
    walls: list[int] = steady["wall_ns"].to_list()
    middle = median(walls)
    if middle is None or len(walls) < _LEAST_FOR_OUTLIERS:
        return ()
    spread = median(abs(wall - middle) for wall in walls) or 0
    threshold = middle + max(_MADS * 1.4826 * spread, _SHARE * middle)
    far = steady.filter(pl.col("wall_ns") > threshold).sort("wall_ns", "iteration", descending=[True, False])
    if far.is_empty():
        return ()
    wide = _wide(steady, parts)
    return tuple(
        Outlier(number, wall, wall - middle, _excesses(wide, number))
        for number, wall in far.select("iteration", "wall_ns").head(_OUTLIERS).iter_rows()
    )


def _wide(steady: pl.DataFrame, parts: pl.DataFrame) -> pl.DataFrame:
    """Return the time of each part in each steady iteration, 0 where it has none: ``iteration``, ``state``, ``class``, ``ns``."""
    grouped = (
        parts.join(steady.select("iteration"), on="iteration", how="semi")
        .group_by("iteration", "state", "class")
        .agg(pl.col("length_ns").sum().alias("ns"))
    )
    keys = grouped.select("state", "class").unique()
    return (
        steady.select("iteration")
        .join(keys, how="cross")
        .join(grouped, on=["iteration", "state", "class"], how="left", nulls_equal=True)
        .with_columns(pl.col("ns").fill_null(0))
    )


def _excesses(wide: pl.DataFrame, number: int) -> tuple[Excess, ...]:
    usual = wide.group_by("state", "class").agg(pl.col("ns").median().floor().cast(pl.Int64).alias("usual"))
    more = (
        wide.filter(pl.col("iteration") == number)
        .join(usual, on=["state", "class"], nulls_equal=True)
        .select("state", "class", (pl.col("ns") - pl.col("usual")).alias("ns"))
        .filter(pl.col("ns") > 0)
        .sort("ns", "state", "class", descending=[True, False, False], nulls_last=True)
    )
    return tuple(Excess(state, class_, ns) for state, class_, ns in more.head(_PARTS).iter_rows())
