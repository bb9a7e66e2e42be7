"""Ranges that printed digits stand for, and exact arithmetic on them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from moeprof.analyzers.serving.figures import exact

_NUMBER = re.compile(r"[-+]?\d+(?:\.(?P<decimals>\d+))?(?:[eE](?P<exponent>[-+]?\d+))?")


@dataclass(frozen=True, slots=True)
class Range:
    """A closed range of values, with the value that was written down; all exact."""

    low: Fraction
    high: Fraction
    point: Fraction

    def meets(self, other: Range) -> bool:
        """Tell whether two ranges have a value in common."""
        return self.low <= other.high and other.low <= self.high

    def within(self, other: Range) -> bool:
        """Tell whether the whole range lies in the other."""
        return other.low <= self.low and self.high <= other.high

    def scaled(self, factor: Fraction) -> Range:
        """Return the range times a factor above zero."""
        return Range(self.low * factor, self.high * factor, self.point * factor)

    def shifted(self, by: Fraction) -> Range:
        """Return the range plus a number."""
        return Range(self.low + by, self.high + by, self.point + by)


def printed(text: str) -> Range:
    """Return what digits stand for: every value that rounds to them, ties either way.

    Args:
        text: A decimal number as it was printed.

    Raises:
        ValueError: It is no such number.

    >>> found = printed("13.87")
    >>> float(found.low), float(found.high)
    (13.865, 13.875)
    """
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no decimal number")
    value = Fraction(text.strip())
    digits = len(match["decimals"] or "") - int(match["exponent"] or 0)
    half = Fraction(1, 2) * (Fraction(10) ** -digits)
    return Range(value - half, value + half, value)


def certain(value: float) -> Range:
    """Return the range of a value that is known at full precision, or of a count."""
    number = exact(value)
    return Range(number, number, number)


def median(ranges: Sequence[Range]) -> Range:
    """Return the range of the median: it rises with every value."""
    return Range(*(_middle([getattr(item, end) for item in ranges]) for end in ("low", "high", "point")))


def mean(ranges: Sequence[Range]) -> Range:
    """Return the range of the mean."""
    return Range(
        *(sum((getattr(item, end) for item in ranges), Fraction(0)) / len(ranges) for end in ("low", "high", "point"))
    )


def quotient(over: Range, under: Range) -> Range | None:
    """Return the range of a quotient of positive values; None where one may not be above zero."""
    if over.low <= 0 or under.low <= 0:
        return None
    return Range(over.low / under.high, over.high / under.low, over.point / under.point)


def _middle(values: Sequence[Fraction]) -> Fraction:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
