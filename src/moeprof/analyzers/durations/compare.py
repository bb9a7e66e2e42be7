"""Durations of iterations in two captures: how far apart, and whether more than their own unrest.

Iterations follow each other and resemble each other, so n of them are worth fewer independent ones. What is tested holds within the
two captures; a capture is one server start, and no number of iterations makes two of it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

from moeprof.analyzers.durations import student
from moeprof.analyzers.durations.results import DurationSample, DurationTest

CONFIDENCE = 0.95
_TRIMMED = 0.1
_LEAST_EFFECTIVE = 2.0
_MOST_PAIRS = 200_000  # of values that are set against each other one by one


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean and what is known about its error.

    Attributes:
        value: The mean.
        error: Standard error, corrected for autocorrelation; None for fewer than two values.
        effective: Number of independent values that are worth as much.
    """

    value: float
    error: float | None
    effective: float


def compare(base: Sequence[Sequence[int]], candidate: Sequence[Sequence[int]]) -> DurationTest | None:
    """Hold the durations of two captures against each other.

    Ranks run in step, so their iterations are not more observations: the error of a side is that of a rank, averaged.

    Args:
        base: Durations in ns, in order, one sequence per rank.
        candidate: Likewise.

    Returns:
        The comparison; None where a side has no value.

    >>> found = compare([[100, 104, 98, 101, 99, 103]], [[120, 118, 123, 119, 122, 121]])
    >>> round(found.ratio_of_means, 4), found.base.effective, found.p < 0.001
    (1.195, 6.0, True)
    """
    before, after = ([values for values in side if values] for side in (base, candidate))
    if not before or not after:
        return None
    left, right = sample(before), sample(after)
    means = combined([mean_of(values) for values in before]), combined([mean_of(values) for values in after])
    t, df, p = difference_test(*means)
    return DurationTest(
        base=left,
        candidate=right,
        ratio_of_means=ratio(left.mean, right.mean),
        ratio_of_trimmed_means=ratio(left.trimmed_mean, right.trimmed_mean),
        hodges_lehmann=hodges_lehmann(_flat(before), _flat(after)),
        t=t,
        df=df,
        p=p,
    )


def interval(base: Sequence[Sequence[int]], candidate: Sequence[Sequence[int]]) -> tuple[float, float] | None:
    """Return the 95 % interval of candidate / base for the means of two captures, as `ratio_interval` has it."""
    before, after = ([mean_of(values) for values in side if values] for side in (base, candidate))
    return ratio_interval(combined(before), combined(after)) if before and after else None


def sample(ranks: Sequence[Sequence[int]]) -> DurationSample:
    """Return what describes the durations of one side; each rank has at least one."""
    means = [mean_of(values) for values in ranks]
    return DurationSample(
        iterations=min(len(values) for values in ranks),
        mean=fmean(mean.value for mean in means),
        trimmed_mean=fmean(trimmed_mean(values) for values in ranks),
        mad=fmean(_mad(values) for values in ranks),
        lag1=max(lag1(values) for values in ranks),
        effective=min(mean.effective for mean in means),
    )


def mean_of(values: Sequence[int]) -> Mean:
    """Return the mean of durations that follow each other, with an error that allows for their likeness."""
    count = len(values)
    return mean_from(fmean(values), count, _deviation(values), lag1(values))


def mean_from(value: float, count: int, deviation: float, correlation: float) -> Mean:
    """Return a mean with its error from standard deviation (ddof 1) and lag-1 correlation of `count` values."""
    if count < 2:
        return Mean(value, None, float(count))
    positive = max(0.0, correlation)
    effective = max(_LEAST_EFFECTIVE, count * (1 - positive) / (1 + positive))
    return Mean(value, deviation / math.sqrt(effective), effective)


def combined(ranks: Sequence[Mean]) -> Mean:
    """Return the mean over ranks. Their errors are averaged, as for ranks that vary together; that is never too small."""
    errors = [mean.error for mean in ranks if mean.error is not None]
    return Mean(
        fmean(mean.value for mean in ranks),
        fmean(errors) if len(errors) == len(ranks) else None,
        min(mean.effective for mean in ranks),
    )


def difference_test(base: Mean, candidate: Mean) -> tuple[float | None, float | None, float | None]:
    """Return t, degrees of freedom and two-sided p of a difference of means; None each without an error on both sides.

    Without any spread t has no value; p is then 1 for equal means and 0 for others.
    """
    if base.error is None or candidate.error is None:
        return None, None, None
    df = base.effective + candidate.effective - 2
    error = math.hypot(base.error, candidate.error)
    difference = candidate.value - base.value
    if error == 0:
        return None, df, 0.0 if difference else 1.0
    t = difference / error
    return t, df, student.two_sided(t, df)


def ratio_interval(base: Mean, candidate: Mean) -> tuple[float, float] | None:
    """Return the 95 % interval of candidate / base by Fieller's theorem: it leaves out 1 where p is below 5 %.

    None where it has no two ends above 0, so that the interval of base / candidate has none either.
    """
    if base.error is None or candidate.error is None or base.value <= 0:
        return None
    t = student.critical(CONFIDENCE, base.effective + candidate.effective - 2)
    square = base.value**2 - (t * base.error) ** 2
    rest = candidate.value**2 - (t * candidate.error) ** 2
    if square <= 0 or rest <= 0:
        return None
    product = base.value * candidate.value
    root = math.sqrt(max(product**2 - square * rest, 0.0))
    return (product - root) / square, (product + root) / square


def ratio(base: float, candidate: float) -> float | None:
    """Return candidate / base; None where either is 0, as a ratio must have an inverse."""
    return candidate / base if base and candidate else None


def lag1(values: Sequence[int]) -> float:
    """Return the correlation of each value with the next one; 0 where nothing varies.

    >>> lag1([1, 2, 3, 4, 5]), lag1([7, 7, 7])
    (0.4, 0.0)
    """
    middle = fmean(values)
    deviations = [value - middle for value in values]
    total = math.fsum(deviation**2 for deviation in deviations)
    if not total:
        return 0.0
    return math.fsum(one * other for one, other in pairwise(deviations)) / total


def trimmed_mean(values: Sequence[int]) -> float:
    """Return the mean without a tenth of the values, rounded down, at either end.

    >>> trimmed_mean([0, *range(10, 19), 1000])
    14.0
    """
    cut = int(_TRIMMED * len(values))
    return fmean(sorted(values)[cut : len(values) - cut])


def hodges_lehmann(base: Sequence[int], candidate: Sequence[int]) -> float | None:
    """Return the median, on a log scale, of the ratios of every candidate value to every base value.

    None where a value is 0 or less.

    >>> hodges_lehmann([1, 2], [4, 8])
    4.0
    """
    if not base or not candidate or min(base) <= 0 or min(candidate) <= 0:
        return None
    before, after = (sorted(math.log(value) for value in values) for values in (base, candidate))
    if len(base) * len(candidate) > _MOST_PAIRS:
        return math.exp(_median_difference(before, after))
    ratios = sorted(one / other for one in candidate for other in base)
    low, high = ratios[(len(ratios) - 1) // 2], ratios[len(ratios) // 2]
    return low if low == high else math.sqrt(low * high)


def _median_difference(before: list[float], after: list[float]) -> float:
    """Return the median of all differences of two ascending lists, to within rounding, without listing them."""
    low, high = after[0] - before[-1], after[-1] - before[0]
    half = len(before) * len(after) / 2
    for _ in range(60):
        middle = (low + high) / 2
        # How many pairs differ by no more than `middle`: for each of `before`, those of `after` up to it plus `middle`.
        if sum(bisect_right(after, value + middle) for value in before) < half:
            low = middle
        else:
            high = middle
    return high


def _flat(ranks: Sequence[Sequence[int]]) -> list[int]:
    return [value for values in ranks for value in values]


def _mad(values: Sequence[int]) -> float:
    middle = median(values)
    return float(median(abs(value - middle) for value in values))


def _deviation(values: Sequence[int]) -> float:
    if len(values) < 2:
        return 0.0
    middle = fmean(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1))
