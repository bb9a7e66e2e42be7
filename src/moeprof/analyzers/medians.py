"""Medians of integers, which stay integers."""

from __future__ import annotations

from collections.abc import Iterable


def twice_median(values: Iterable[int]) -> int | None:
    """Return twice the median, exact also where it lies between two values; None of nothing.

    >>> twice_median([4, 1]), twice_median([3, 1, 2]), twice_median([])
    (5, 4, None)
    """
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]


def median(values: Iterable[int]) -> int | None:
    """Return the median, between two values rounded down; None of nothing.

    >>> median([4, 1]), median([])
    (2, None)
    """
    twice = twice_median(values)
    return None if twice is None else twice // 2
