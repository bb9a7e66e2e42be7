"""One rule for "per iteration": the value that all iterations share, else the most frequent one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

NAMED = 20  # iterations that a message names; the evidence holds all


def commonest(values: pl.DataFrame, by: Sequence[str], iterations: int) -> pl.DataFrame:
    """Say for each group what its value per iteration is.

    The most frequent value wins; among equally frequent ones that nearest to the median of all iterations, then the
    smaller. The rule depends on the values alone, so neither the order of rows nor that of iterations matters.

    Args:
        values: Columns `by` and ``value``, one row per group and iteration. Iterations without a row count as 0.
        by: The columns that make a group.
        iterations: Number of iterations, at least 1.

    Returns:
        Columns `by`, ``commonest``, ``constant`` and ``distinct`` (the values seen, ascending), one row per group.
    """
    by = list(by)
    value = pl.col("value").cast(pl.Int64)
    times = pl.len().cast(pl.Int64).alias("times")
    seen = values.group_by(*by, value).agg(times)
    absent = (
        seen.group_by(by)
        .agg(pl.lit(0, pl.Int64).alias("value"), (iterations - pl.col("times").sum()).alias("times"))
        .filter(pl.col("times") > 0)
    )
    histogram = (
        pl.concat([seen, absent.select(seen.columns)])
        .group_by(*by, "value")
        .agg(pl.col("times").sum())
        .sort(*by, "value")
        .with_columns(pl.col("times").cum_sum().over(by).alias("up_to"))
    )
    # Twice the median stays an integer where it lies between two values.
    below = pl.col("value").filter(pl.col("up_to") > (iterations - 1) // 2).min()
    above = pl.col("value").filter(pl.col("up_to") > iterations // 2).min()
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


def listed(iterations: Mapping[str, object]) -> str:
    """Name the first iterations of a mapping and say how many more there are.

    >>> listed({"3": 41, "7": 40})
    'iteration 3: 41, iteration 7: 40'
    """
    named = ", ".join(f"iteration {key}: {value}" for key, value in list(iterations.items())[:NAMED])
    more = len(iterations) - NAMED
    return f"{named} and {more} more" if more > 0 else named
