"""The Hodges-Lehmann estimate of a ratio or a difference, and its exact interval with the confidence that it attains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, sqrt
from statistics import NormalDist

WANTED = Fraction(95, 100)
_MOST_STEPS = 20_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and an interval around it.

    Attributes:
        estimate: Hodges-Lehmann: the middle of all pairwise comparisons.
        low, high: Ends of the interval.
        confidence: What it attains.
        order: Which of the ordered comparisons its ends are, counted from either side.
        exact: Whether the confidence is exact; not so for very many values.
    """

    estimate: float
    low: float
    high: float
    confidence: Fraction
    order: int
    exact: bool = True


def ratio_interval(a: Sequence[float], b: Sequence[float], wanted: Fraction = WANTED) -> Interval:
    """Return the ratio of b to a. All values must be above zero.

    The estimate is the median ratio on the log scale; the interval is the narrowest whose confidence reaches `wanted`, else the widest.

    >>> found = ratio_interval([100, 101, 102], [110, 112, 111])
    >>> round(found.estimate, 4), round(found.low, 4), round(found.high, 4), found.confidence
    (1.099, 1.0784, 1.12, Fraction(9, 10))
    """
    ratios = sorted(after / before for before in a for after in b)
    order, confidence, exact = interval_order(len(a), len(b), wanted)
    low, high = _middle(ratios)
    estimate = low if low == high else sqrt(low * high)
    return Interval(estimate, ratios[order - 1], ratios[-order], confidence, order, exact)


def difference_interval(a: Sequence[float], b: Sequence[float], wanted: Fraction = WANTED) -> Interval:
    """Return the difference b - a, likewise; values may have any sign.

    >>> difference_interval([0, 1, 2], [10, 12, 11]).estimate
    10.0
    """
    differences = sorted(after - before for before in a for after in b)
    order, confidence, exact = interval_order(len(a), len(b), wanted)
    low, high = _middle(differences)
    return Interval((low + high) / 2, differences[order - 1], differences[-order], confidence, order, exact)


def interval_order(n: int, m: int, wanted: Fraction = WANTED) -> tuple[int, Fraction, bool]:
    """Return which ordered comparison ends the interval, the confidence that it attains, and whether that is exact.

    >>> [(order, str(confidence)) for order, confidence, _ in (interval_order(6, 3), interval_order(3, 3), interval_order(1, 1))]
    [(2, '20/21'), (1, '9/10'), (1, '0')]
    """
    if n * m * min(n, m) > _MOST_STEPS:
        return (*_approximate_order(n, m, wanted), False)
    total = comb(n + m, n)
    outside, order, attained = 0, 1, Fraction(0)
    for place, count in enumerate(null_counts(n, m), 1):
        outside += count
        confidence = 1 - Fraction(2 * outside, total)
        if place == 1 or (confidence >= wanted and place <= (n * m + 1) // 2):
            order, attained = place, confidence
        else:
            break
    return order, max(Fraction(0), attained), True


@lru_cache(maxsize=64)
def null_counts(n: int, m: int) -> tuple[int, ...]:
    """Return, for u = 0 .. n*m, how many labellings of n + m distinct values have that U.

    >>> null_counts(3, 3)
    (1, 1, 2, 3, 3, 3, 3, 2, 1, 1)
    """
    least, most = sorted((n, m))
    counts = [1] + [0] * (n * m)
    for step in range(1, least + 1):
        for u in range(n * m, most + step - 1, -1):
            counts[u] -= counts[u - most - step]
        for u in range(step, n * m + 1):
            counts[u] += counts[u - step]
    return tuple(counts)


def _approximate_order(n: int, m: int, wanted: Fraction) -> tuple[int, Fraction]:
    z = NormalDist().inv_cdf(float(1 - (1 - wanted) / 2))
    order = int(n * m / 2 - z * sqrt(n * m * (n + m + 1) / 12))
    return max(1, order), wanted


def _middle(ordered: Sequence[float]) -> tuple[float, float]:
    return ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
