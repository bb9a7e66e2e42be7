"""The part of a diff's page on serving metrics: what was measured, what it shows, and how far it carries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from moeprof.analyzers.serving.results import ArmValues, ServingRow
from moeprof.reports.document import Block, Column, Lines, Section, Table
from moeprof.reports.units import NO_DATA
from moeprof.wording import plural, rounded, safe, signed

_TITLE = "Serving metrics (median of per-pass values)"


def serving_sections(rows: Sequence[ServingRow], *, wide: bool, one_table: bool = False) -> tuple[Section, ...]:
    """Return the sections on serving metrics; none without any.

    Args:
        rows: Of the diff.
        wide: Show the metrics that do not gate as well.
        one_table: For formats without a limit of width.
    """
    if not rows:
        return ()
    shown = [row for row in rows if wide or row.gates] or list(rows)
    several = len({row.workload for row in rows}) > 1
    notes = _notes(shown, several=several, wide=wide)
    if len(shown) < len(rows):
        notes = (*notes, f"{plural(len(rows) - len(shown), 'more metric')} that do not gate (--wide shows them)")
    blocks: tuple[Block, ...]
    if one_table:
        blocks = (_table(shown, (*_measured(several), *_shown()[1:], _LABEL, _UNIT), notes),)
        return (Section(_TITLE, blocks),)
    first = _table(shown, _measured(several), ())
    second = _table(shown, (*_shown(), _UNIT), ())
    third = [_table(drifting, _DRIFT, ())] if wide and (drifting := [row for row in shown if row.drift]) else []
    labels = Lines(tuple(_label_lines(shown, several=several)))
    return (Section(_TITLE, (first, second, *third, labels, *([Lines(notes)] if notes else []))),)


def interval(row: ServingRow) -> str:
    """Return the interval of a row in percent, with the confidence that it attains."""
    if row.interval is None or row.confidence is None:
        return NO_DATA
    low, high = (f"{end * 100:+.2f}" for end in row.interval)
    return f"{low} .. {high} % ({row.confidence * 100:.1f} %)"


def probability(row: ServingRow) -> str:
    """Return p with its floor and the numbers of passes: never one without the others."""
    if row.p is None or row.p_floor is None:
        return NO_DATA
    return f"{_small(row.p)} (floor {_small(row.p_floor)}, {row.base.n} v {row.candidate.n})"


def _range(values: ArmValues) -> str:
    if values.n == 0:
        return "no data"
    return f"{rounded(values.median)} [{rounded(values.min)}, {rounded(values.max)}] n={values.n}"


def _name(row: ServingRow, *, several: bool) -> str:
    return f"{safe(row.metric)} ({safe(row.workload)})" if several else safe(row.metric)


def _table(rows: Sequence[ServingRow], columns: Sequence[Column], notes: tuple[str, ...]) -> Table:
    cells: dict[str, Callable[[ServingRow], str]] = {
        _METRIC.title: lambda row: safe(row.metric),
        _WORKLOAD.title: lambda row: safe(row.workload),
        _UNIT.title: lambda row: safe(row.unit),
        _BASE.title: lambda row: _range(row.base),
        _CANDIDATE.title: lambda row: _range(row.candidate),
        _CHANGE.title: lambda row: signed(row.change),
        _INTERVAL.title: interval,
        _P.title: probability,
        _VERDICT.title: lambda row: row.verdict.replace("_", " "),
        _LABEL.title: lambda row: row.label,
        **{column.title: partial(_drift_cell, index) for index, column in enumerate(_DRIFT) if index},
    }
    return Table(tuple(columns), tuple(tuple(cells[column.title](row) for column in columns) for row in rows), notes)


_METRIC, _WORKLOAD, _UNIT = Column("metric"), Column("workload"), Column("unit")
_BASE, _CANDIDATE, _CHANGE = (
    Column("base [range]", "number"),
    Column("candidate [range]", "number"),
    Column("change", "number"),
)
_INTERVAL, _P = Column("interval (confidence)", "number"), Column("p", "number")
_VERDICT, _LABEL = Column("verdict", "change"), Column("label")


_DRIFT = (
    _METRIC,
    Column("base before", "number"),
    Column("base after", "number"),
    Column("drift", "number"),
    Column("against before", "number"),
    Column("against after", "number"),
    Column("against midpoint", "number"),
)


def _drift_cell(index: int, row: ServingRow) -> str:
    drift = row.drift
    if drift is None:
        return NO_DATA
    changes = (drift.drift, drift.change_vs_a0, drift.change_vs_a2, drift.change_vs_midpoint)
    return (rounded(drift.a0), rounded(drift.a2), *(signed(change) for change in changes))[index - 1]


def _measured(several: bool) -> tuple[Column, ...]:
    return (_METRIC, *([_WORKLOAD] if several else []), _BASE, _CANDIDATE, _CHANGE)


def _shown() -> tuple[Column, ...]:
    return (_METRIC, _INTERVAL, _P, _VERDICT)


def _label_lines(rows: Sequence[ServingRow], *, several: bool) -> list[str]:
    """Return one line per label and reason, with the metrics it holds for."""
    said: dict[str, list[str]] = {}
    for row in rows:
        because = f" ({row.label_because})" if row.label_because else ""
        said.setdefault(safe(f"{row.label}{because}"), []).append(_name(row, several=several))
    return [f"label {text}: {', '.join(names)}" for text, names in said.items()]


def _notes(rows: Sequence[ServingRow], *, several: bool, wide: bool) -> tuple[str, ...]:
    said: dict[str, list[str]] = {}
    for row in rows:
        name = _name(row, several=several)
        for note in row.notes:
            said.setdefault(note, []).append(name)
        if row.reason != "shown":
            said.setdefault(_reason(row), []).append(name)
        if row.drift is not None and not wide and row.label != "A/B/A complete":
            said.setdefault(_drift(row), []).append(name)
    return tuple(
        safe(note if len(names) == len(rows) else f"{', '.join(names)}: {note}") for note, names in said.items()
    )


def _reason(row: ServingRow) -> str:
    if row.reason == "below_threshold_interval_wide":
        return f"a change for the worse of {signed(row.worst_not_excluded)} is not excluded"
    return row.reason.replace("_", " ")


def _drift(row: ServingRow) -> str:
    drift = row.drift
    assert drift is not None
    return (
        f"base before {rounded(drift.a0)}, after {rounded(drift.a2)} (drift {signed(drift.drift)}): change against the first"
        f" {signed(drift.change_vs_a0)}, the second {signed(drift.change_vs_a2)}, the midpoint {signed(drift.change_vs_midpoint)}"
    )


def _small(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"
