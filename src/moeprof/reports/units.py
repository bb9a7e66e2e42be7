"""Turn integers of ns, counts and fractions into text. None is "-" in a cell: no data, never 0."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal

NO_DATA = "-"
_STEP = Decimal("0.001")


def milliseconds(ns: int | None) -> str:
    """Return ns as ms with three decimals and no unit, for a column whose header says ms.

    >>> milliseconds(12166501), milliseconds(0), milliseconds(400), milliseconds(None)
    ('12.167', '0.000', '<0.001', '-')
    """
    if ns is None:
        return NO_DATA
    text = str(Decimal(ns).scaleb(-6).quantize(_STEP, ROUND_HALF_EVEN))
    if ns and not text.strip("-0."):
        return "<0.001" if ns > 0 else ">-0.001"
    return text


def microseconds(ns: int | None) -> str:
    """Return ns as us with one decimal and no unit, for a column whose header says us.

    >>> microseconds(96317), microseconds(0), microseconds(40), microseconds(None)
    ('96.3', '0.0', '<0.1', '-')
    """
    if ns is None:
        return NO_DATA
    text = str(Decimal(ns).scaleb(-3).quantize(Decimal("0.1"), ROUND_HALF_EVEN))
    if ns and not text.strip("-0."):
        return "<0.1" if ns > 0 else ">-0.1"
    return text


def probability(value: float | None) -> str:
    """Return a p-value: three decimals, small ones as a bound.

    >>> probability(0.0238), probability(1.0), probability(1e-9), probability(None)
    ('0.024', '1.000', '<0.001', '-')
    """
    if value is None:
        return NO_DATA
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def change(ratio: float | None) -> str:
    """Return candidate / base as a signed change in percent.

    >>> change(0.975), change(1.0672), change(None)
    ('-2.50 %', '+6.72 %', '-')
    """
    return NO_DATA if ratio is None else f"{(ratio - 1) * 100:+.2f} %"


def count(value: int | None) -> str:
    """Return a count, or "-" where there is no data."""
    return NO_DATA if value is None else str(value)


def difference(base: int | None, candidate: int | None) -> str:
    """Return a signed difference of counts; "same" where there is none.

    >>> difference(45, 3), difference(0, 42), difference(3, 3), difference(None, 3)
    ('-42', '+42', 'same', '-')
    """
    if base is None or candidate is None:
        return NO_DATA
    return "same" if base == candidate else f"{candidate - base:+d}"


def between(texts: Sequence[str]) -> str:
    """Return one text, or the first and last of several different ones as a range.

    >>> between(["3", "3"]), between(["3", "4", "7"]), between([])
    ('3', '3 .. 7', '-')
    """
    if not texts:
        return NO_DATA
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]} .. {texts[-1]}"
