"""Many tests at once: p-values adjusted so that the share of false discoveries among those called changed is controlled."""

from __future__ import annotations

from collections.abc import Sequence


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Return adjusted p-values in the order given, for tests that are independent or depend positively.

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    return _adjusted(p, 1.0)


def benjamini_yekutieli(p: Sequence[float]) -> list[float]:
    """Return adjusted p-values in the order given, for tests that may depend in any way.

    >>> [round(value, 4) for value in benjamini_yekutieli([0.01, 0.04, 0.03])]
    [0.055, 0.0733, 0.0733]
    """
    return _adjusted(p, sum(1 / rank for rank in range(1, len(p) + 1)))


def _adjusted(p: Sequence[float], factor: float) -> list[float]:
    order = sorted(range(len(p)), key=lambda index: p[index], reverse=True)
    adjusted = [1.0] * len(p)
    least = 1.0
    for place, index in enumerate(order):
        least = min(least, p[index] * len(p) * factor / (len(p) - place))
        adjusted[index] = least
    return adjusted
