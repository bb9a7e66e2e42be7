"""Numbers as Nsight Compute prints them: thousands separators, and units that follow the size of the value."""

from __future__ import annotations

import math
import re

_SCALES: dict[str, dict[str, float]] = {
    "ns": {
        **dict.fromkeys(("ns", "nsecond", "nanosecond"), 1.0),
        **dict.fromkeys(("us", "usecond", "microsecond"), 1e3),
        **dict.fromkeys(("ms", "msecond", "millisecond"), 1e6),
        **dict.fromkeys(("s", "second"), 1e9),
    },
    "byte": {"byte": 1.0, "kbyte": 1e3, "mbyte": 1e6, "gbyte": 1e9, "tbyte": 1e12},
    "hz": {
        **dict.fromkeys(("hz", "cycle/second", "cycle/s"), 1.0),
        **dict.fromkeys(("khz", "cycle/msecond", "cycle/ms"), 1e3),
        **dict.fromkeys(("mhz", "cycle/usecond", "cycle/us"), 1e6),
        **dict.fromkeys(("ghz", "cycle/nsecond", "cycle/ns"), 1e9),
    },
    "%": {"%": 1.0},
}
_GROUPED = re.compile(r"[-+]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")
_ABSENT = frozenset(("", "n/a", "nan", "(!) nan", "-"))


def scale(unit: str, wanted: str) -> float | None:
    """Return what a value in `unit` is multiplied with to be in `wanted` (``ns``, ``byte``, ``hz``, ``%``); None: it cannot be.

    >>> scale("us", "ns"), scale("Mbyte", "byte"), scale("cycle/nsecond", "hz"), scale("byte", "ns")
    (1000.0, 1000000.0, 1000000000.0, None)
    """
    return _SCALES[wanted].get(unit.strip().lower())


def number(text: str) -> float | None:
    """Return a printed number; None where none was measured.

    Raises:
        ValueError: It is no number.

    A comma stands between thousands; where it may be a decimal one the text is no number.

    >>> number("1,024"), number("0.072849"), number("n/a")
    (1024.0, 0.072849, None)
    """
    stripped = text.strip()
    if stripped.lower() in _ABSENT:
        return None
    if "," in stripped and _GROUPED.fullmatch(stripped) is None:
        raise ValueError(f"{stripped!r} is no number")
    value = float(stripped.replace(",", ""))
    if value < 0 and math.isfinite(value):
        raise ValueError(f"{stripped!r} is below zero")
    return value if math.isfinite(value) else None
