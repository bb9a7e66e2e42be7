"""One rule for "the commonest": of values per iteration, of figures over ranks, of kinds of iterations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from moeprof.analyzers.medians import twice_median
from moeprof.analyzers.tables import KINDS
from moeprof.wording import listed

NAMED = 20  # iterations that a message names; the evidence holds all


def commonest(values: pl.DataFrame, by: Sequence[str], iterations: int | None) -> pl.DataFrame:
    """Say for each group what its value per iteration is.

    The most frequent value wins; among equally frequent ones that nearest to the median of all iterations, then the
    smaller. The rule depends on the values alone, so neither the order of rows nor that of iterations matters.

    Args:
        values: Columns `by` and ``value``, one row per group and iteration. Iterations without a row count as 0.
        by: The columns that make a group.
        iterations: Number of iterations, at least 1; None where every iteration of a group has its row.

    Returns:
        Columns `by`, ``commonest``, ``constant`` and ``distinct`` (the values seen, ascending), one row per group.
    """
    by = list(by)
    value = pl.col("value").cast(pl.Int64)
    times = pl.len().cast(pl.Int64).alias("times")
    seen = values.group_by(*by, value).agg(times)
    if iterations is not None:
        absent = (
            seen.group_by(by)
            .agg(pl.lit(0, pl.Int64).alias("value"), (iterations - pl.col("times").sum()).alias("times"))
            .filter(pl.col("times") > 0)
        )
        seen = pl.concat([seen, absent.select(seen.columns)])
    histogram = (
        seen.group_by(*by, "value")
        .agg(pl.col("times").sum())
        .sort(*by, "value")
        .with_columns(pl.col("times").cum_sum().over(by).alias("up_to"))
    )
    # Twice the median stays an integer where it lies between two values.
    total = pl.col("times").sum()
    below = pl.col("value").filter(pl.col("up_to") > (total - 1) // 2).min()
    above = pl.col("value").filter(pl.col("up_to") > total // 2).min()
    return (
        histogram.with_columns((2 * pl.col("value") - (below + above).over(by)).abs().alias("off_median"))
        .sort("times", "off_median", "value", descending=[True, False, False])
        .group_by(by, maintain_order=True)
        .agg(
            pl.col("value").first().alias("commonest"),
            (pl.len() == 1).alias("constant"),
            pl.col("value").sort().alias("distinct"),
        )
    )


def commonest_of(values: Iterable[int]) -> int | None:
    """Return the commonest of some values by the rule of `commonest`; None of nothing.

    >>> commonest_of([12, 12, 10, 10]), commonest_of([3, 7, 7]), commonest_of([])
    (10, 7, None)
    """
    times = Counter(values)
    middle = twice_median(times.elements())
    if middle is None:
        return None
    return min(times, key=lambda value: (-times[value], abs(2 * value - middle), value))


def commonest_kind(kinds: Iterable[str]) -> str | None:
    """Return the commonest kind of iteration, of equally common ones the first of `KINDS`; None of nothing.

    >>> commonest_kind(["mixed", "prefill"]), commonest_kind(["mixed", "prefill", "mixed"])
    ('prefill', 'mixed')
    """
    times = Counter(kinds)
    order = (*KINDS, *sorted(times.keys() - set(KINDS)))
    return min(times, key=lambda kind: (-times[kind], order.index(kind)), default=None)


def by_iteration(values: Mapping[str, object]) -> str:
    """Name the first iterations of a mapping and say how many more there are.

    >>> by_iteration({"3": 41, "7": 40})
    'iteration 3: 41, iteration 7: 40'
    """
    return listed((f"iteration {key}: {value}" for key, value in values.items()), NAMED)
