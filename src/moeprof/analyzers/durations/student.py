"""Student's t distribution with any degrees of freedom, for the few values a comparison needs without loading scipy.

The tail is the regularised incomplete beta function by its continued fraction; tests hold it against scipy.
"""

from __future__ import annotations

import math
from statistics import NormalDist

_STEPS = 300
_PRECISION = 1e-15
_TINY = 1e-300


def two_sided(t: float, df: float) -> float:
    """Return the probability of a value at least as far from 0 as `t`.

    Args:
        t: The statistic; infinite where there is no spread at all.
        df: Degrees of freedom, above 0, not necessarily an integer.

    >>> round(two_sided(2.0, 10), 6), two_sided(0.0, 3), two_sided(float("inf"), 3)
    (0.073388, 1.0, 0.0)
    """
    if math.isinf(t):
        return 0.0
    total = df + t * t
    return _incomplete_beta(df / 2, 0.5, df / total, t * t / total)


def critical(confidence: float, df: float) -> float:
    """Return the t that a value stays below in size with a given probability.

    Args:
        confidence: Above 0 and below 1; 0.95 for a 95 % interval.
        df: Degrees of freedom, as in `two_sided`.

    >>> round(critical(0.95, 10), 6)
    2.228139
    """
    tail = 1 - confidence
    # The tail falls ever more slowly, and the normal distribution's value lies before the one sought: Newton's steps never pass it.
    t = NormalDist().inv_cdf(1 - tail / 2)
    for _ in range(_STEPS):
        step = (two_sided(t, df) - tail) / (2 * _density(t, df))
        t += step
        if abs(step) <= 1e-14 * t:
            break
    return t


def _density(t: float, df: float) -> float:
    log_front = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
    return math.exp(log_front - (df + 1) / 2 * math.log1p(t * t / df))


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """Return the regularised incomplete beta function at `x`; `rest` is 1 - x, given apart because a subtraction would lose it."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    # The fraction converges fast on this side only; the other side is the complement.
    if x < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _fraction(a, b, x) / a
    return 1 - math.exp(log_front) * _fraction(b, a, rest) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction of the incomplete beta function from the front (Lentz)."""
    c, d = 1.0, _inverse(1 - (a + b) * x / (a + 1))
    value = d
    for step in range(1, _STEPS):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        for term in (even, odd):
            d = _inverse(1 + term * d)
            c = _away_from_0(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < _PRECISION:
            break
    return value


def _inverse(value: float) -> float:
    return 1 / _away_from_0(value)


def _away_from_0(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
