"""The exact two-sided rank test of Mann and Whitney, with the least p that so many values could give. Integers throughout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, sqrt
from statistics import NormalDist

EXACT = "exact: all labellings"
APPROXIMATE = "normal approximation"
_MOST_VALUES = 120  # beyond it counting all labellings takes seconds


@dataclass(frozen=True, slots=True)
class RankTest:
    """The test of two samples.

    Attributes:
        u: Number of pairs in which the second sample is greater, ties as one half.
        p: Two-sided: twice the smaller tail, at most 1.
        floor: The least p that these numbers of values allow.
        delta: Cliff's delta, from -1 to 1; at either end the ranges are disjoint.
        method: Exact or approximate.
    """

    u: float
    p: float
    floor: float
    delta: float
    method: str


def rank_test(a: Sequence[float], b: Sequence[float]) -> RankTest:
    """Return the rank test of two samples; ties count with their middle ranks.

    Args:
        a: One sample, at least one value.
        b: The other.

    >>> rank_test([3, 0, 0, 3, 0, 2], [2, 2, 2])
    RankTest(u=10.5, p=0.5476190476190477, floor=0.023809523809523808, delta=0.16666666666666666, method='exact: all labellings')
    """
    n, m = len(a), len(b)
    doubled = doubled_ranks([*a, *b])
    sum_b = sum(doubled[n:])
    doubled_u = sum_b - m * (m + 1)
    exact = n + m <= _MOST_VALUES
    p = _exact(tuple(doubled), m, sum_b) if exact else _approximate(doubled, n, m, doubled_u)
    delta = Fraction(doubled_u, n * m) - 1
    return RankTest(doubled_u / 2, float(p), float(floor(n, m)), float(delta), EXACT if exact else APPROXIMATE)


def floor(n: int, m: int) -> Fraction:
    """Return the least two-sided p of n against m values.

    >>> [str(floor(*sizes)) for sizes in ((1, 1), (3, 3), (6, 3))]
    ['1', '1/10', '1/42']
    """
    return min(Fraction(1), Fraction(2, comb(n + m, n)))


def doubled_ranks(values: Sequence[float]) -> list[int]:
    """Return twice the rank of each value, counted from 1, tied values with the middle of their ranks.

    >>> doubled_ranks([5, 1, 5, 2])
    [7, 2, 7, 4]
    """
    ordered = sorted(values)
    first: dict[float, int] = {}
    last: dict[float, int] = {}
    for place, value in enumerate(ordered, 1):
        first.setdefault(value, place)
        last[value] = place
    return [first[value] + last[value] for value in values]


@lru_cache(maxsize=256)
def _exact(doubled: tuple[int, ...], m: int, observed: int) -> Fraction:
    """Return p over all ways to choose m of the ranks.

    Ways are counted for every sum at once: a polynomial in the sum, its coefficients side by side in one integer.
    """
    total = comb(len(doubled), m)
    width = total.bit_length() + 1
    ways = [1] + [0] * m
    for taken, rank in enumerate(doubled, 1):
        for size in range(min(taken, m), 0, -1):
            ways[size] += ways[size - 1] << (rank * width)
    mask = (1 << width) - 1
    below = above = 0
    packed, value = ways[m], 0
    while packed:
        count = packed & mask
        below += count if value <= observed else 0
        above += count if value >= observed else 0
        packed >>= width
        value += 1
    return min(Fraction(1), Fraction(2 * min(below, above), total))


def _approximate(doubled: Sequence[int], n: int, m: int, doubled_u: int) -> float:
    """Return p of the normal approximation, corrected for ties and continuity."""
    size = n + m
    ties = {rank: doubled.count(rank) for rank in set(doubled)}
    correction = sum(count**3 - count for count in ties.values()) / (size * (size - 1))
    variance = n * m / 12 * (size + 1 - correction)
    if variance == 0:
        return 1.0
    distance = max(0.0, abs(doubled_u / 2 - n * m / 2) - 0.5)
    return min(1.0, 2 * NormalDist().cdf(-distance / sqrt(variance)))
