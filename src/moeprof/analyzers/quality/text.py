"""Words that the messages about quality share."""

from __future__ import annotations

import polars as pl

FIRST = 3  # names or iterations that a message spells out
_LENGTH = 80  # of a name in a message; demangled names reach thousands of characters


def plural(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun.

    Example:
        >>> plural(1, "kernel"), plural(2, "launch", "launches")
        ('1 kernel', '2 launches')
    """
    return f"{count} {one if count == 1 else many or one + 's'}"


def duration(time_ns: int) -> str:
    """Return ns as text in a unit that leaves something to read.

    Example:
        >>> duration(27), duration(1_370), duration(2_491_438)
        ('27 ns', '1.370 us', '2.491 ms')
    """
    if time_ns < 1_000:
        return f"{time_ns} ns"
    return f"{time_ns / 1_000:.3f} us" if time_ns < 1_000_000 else f"{time_ns / 1_000_000:.3f} ms"


def percent(share: float) -> str:
    """Return a share as text in percent.

    Example:
        >>> percent(0.0614)
        '6.1 %'
    """
    return f"{100 * share:.1f} %"


def short(name: str) -> str:
    """Return a name cut to what a message can hold.

    Example:
        >>> short("a" * 100)[-4:]
        'aaa…'
    """
    return name if len(name) <= _LENGTH else name[: _LENGTH - 1] + "…"


def listed(names: list[str]) -> str:
    """Return names as a list in a message.

    Example:
        >>> listed(["a", "b"])
        'a, b'
    """
    return ", ".join(short(name) for name in names)


def first_names(names: pl.Series) -> list[str]:
    """Return the first few distinct names, in order of appearance."""
    first: list[str] = names.unique(maintain_order=True).head(FIRST).cast(pl.String).to_list()
    return first
