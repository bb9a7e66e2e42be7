"""The part of a diff's page on the environment: the keys that differ, what they are, and whether they matter."""

from __future__ import annotations

from collections.abc import Sequence

from moeprof.analyzers.environment.results import EnvironmentRow
from moeprof.findings import JsonValue
from moeprof.reports.document import Column, Section, Table
from moeprof.reports.units import NO_DATA
from moeprof.wording import plural, safe, shorten

_SHOWN = 12
_WIDTH = 44


def environment_sections(rows: Sequence[EnvironmentRow], *, wide: bool) -> tuple[Section, ...]:
    """Return the section on the environment; none where nothing differs."""
    if not rows:
        return ()
    ordered = sorted(rows, key=lambda row: (not row.matters, row.between != "arms", row.key, row.blocks or (0, 0)))
    shown = ordered if wide else ordered[:_SHOWN]
    columns = (Column("key"), Column("base"), Column("candidate"), Column("between"), Column("matters"))
    cells = tuple(
        (safe(row.key), _value(row.base, wide=wide), _value(row.candidate, wide=wide), _between(row), _matters(row))
        for row in shown
    )
    notes = (f"{plural(len(rows) - len(shown), 'more key')} (--wide shows them)",) if len(shown) < len(rows) else ()
    return (Section("Environment: what differs", (Table(columns, cells, notes),)),)


def _value(value: JsonValue, *, wide: bool) -> str:
    if value is None:
        return NO_DATA
    text = safe(str(value))
    return text if wide else shorten(text, _WIDTH)


def _between(row: EnvironmentRow) -> str:
    if row.between in ("arms", "traces") or row.blocks is None:
        return row.between
    return f"{row.between} {row.blocks[0]} and {row.blocks[1]}"


def _matters(row: EnvironmentRow) -> str:
    if row.matters:
        return "yes, allowed" if row.allowed else "yes"
    return "no: the arm's own" if row.own else "no"
