"""The figures of one metric on both sides: medians, change, interval, rank test, drift. Exact where a threshold may be met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import fsum, sqrt

from moeprof.analyzers.serving.interval import Interval, difference_interval, ratio_interval
from moeprof.analyzers.serving.rank_test import RankTest, rank_test
from moeprof.analyzers.serving.results import ArmValues, Drift, Number, ServingSample


@dataclass(frozen=True, slots=True)
class Measured:
    """The passes of an arm that have a value of a metric, and the values."""

    samples: tuple[ServingSample, ...]
    values: tuple[Number, ...]

    def summary(self) -> ArmValues:
        """Return median, range and variation."""
        return arm_values(self.values, [sample.block for sample in self.samples])


@dataclass(frozen=True, slots=True)
class Figures:
    """What two samples of values say.

    Attributes:
        change: Ratio of the medians minus one; None where the base median is not above zero.
        difference: Of the medians.
        interval: Ends as fractions of base; None without a base median above zero.
        estimate: Hodges-Lehmann, likewise.
        confidence: Attained.
        test: The rank test.
        drift: Of the base; None without a second block.
        halves: Exact changes against each half of the base; empty without a second block.
        by_difference: Whether the interval comes from differences, since a value is not above zero.
        exact: Whether the confidence is exact.
    """

    change: Fraction | None
    difference: Fraction
    interval: tuple[float, float] | None
    estimate: float | None
    confidence: Fraction
    test: RankTest
    drift: Drift | None
    halves: tuple[Fraction | None, ...]
    by_difference: bool
    exact: bool


def arm_values(values: Sequence[Number], blocks: Sequence[int]) -> ArmValues:
    """Return the summary of an arm's values; a median of an even count is the mean of the middle two.

    Args:
        values: One per pass.
        blocks: Block of each.

    >>> arm_values([13.89, 14.29, 13.86, 13.56, 13.99, 13.62], [0, 0, 0, 2, 2, 2]).median
    13.875
    """
    if not values:
        return ArmValues(0, None, None, None, (), None, ())
    mean = fsum(values) / len(values)
    cv = None
    if len(values) > 1 and mean != 0:
        cv = sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1)) / abs(mean)
    return ArmValues(
        len(values), float(median(values)), float(min(values)), float(max(values)), tuple(values), cv, tuple(blocks)
    )


def exact(value: Number) -> Fraction:
    """Return a number as the fraction that its shortest digits stand for: 0.1 is one tenth."""
    return Fraction(Decimal(repr(value)))


def median(values: Sequence[Number]) -> Fraction:
    """Return the exact median of at least one value.

    >>> str(median([1354.78, 1525.43])), str(median([3]))
    ('288021/200', '3')
    """
    ordered = sorted(exact(value) for value in values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def relative(before: Fraction, after: Fraction) -> Fraction | None:
    """Return a change as a fraction of what was before; None where that is not above zero."""
    return after / before - 1 if before > 0 else None


def figures(
    base: Sequence[Number], candidate: Sequence[Number], cut: tuple[Sequence[int], Sequence[int]] | None
) -> Figures:
    """Compare the values of two arms, at least one each.

    Args:
        base: Of the base arm, in order of time.
        candidate: Of the other.
        cut: Places of the base values before and after the candidate; None where there is one block only.
    """
    before, after = median(base), median(candidate)
    ratios = min(*base, *candidate) > 0
    found = ratio_interval(base, candidate) if ratios else difference_interval(base, candidate)
    ends, estimate = _relative_ends(found, before, ratios=ratios)
    drift, halves = (None, ()) if cut is None else _drift(base, candidate, cut)
    return Figures(
        change=relative(before, after),
        difference=after - before,
        interval=ends,
        estimate=estimate,
        confidence=found.confidence,
        test=rank_test(base, candidate),
        drift=drift,
        halves=halves,
        by_difference=not ratios,
        exact=found.exact,
    )


def _relative_ends(
    found: Interval, before: Fraction, *, ratios: bool
) -> tuple[tuple[float, float] | None, float | None]:
    if ratios:
        return (found.low - 1, found.high - 1), found.estimate - 1
    if before <= 0:
        return None, None
    scale = float(before)
    return (found.low / scale, found.high / scale), found.estimate / scale


def _drift(
    base: Sequence[Number], candidate: Sequence[Number], cut: tuple[Sequence[int], Sequence[int]]
) -> tuple[Drift | None, tuple[Fraction | None, ...]]:
    first, second = ([base[place] for place in places] for places in cut)
    if not first or not second:
        return None, ()
    a0, a2, b = median(first), median(second), median(candidate)
    changes = (relative(a0, b), relative(a2, b))
    drift = Drift(
        a0=float(a0),
        a2=float(a2),
        drift=_float(relative(a0, a2)),
        change_vs_a0=_float(changes[0]),
        change_vs_a2=_float(changes[1]),
        change_vs_midpoint=_float(relative((a0 + a2) / 2, b)),
        a_ranges_overlap=max(min(first), min(second)) <= min(max(first), max(second)),
    )
    return drift, changes


def _float(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
