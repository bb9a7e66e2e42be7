"""The part of a diff's page on accuracy: the counts of each arm, and what they allow one to say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moeprof.analyzers.accuracy.results import AccuracyRow, ArmAccuracy
from moeprof.reports.document import Column, Lines, Section, Table
from moeprof.reports.units import NO_DATA
from moeprof.wording import safe

_COLUMNS = (
    Column("task"),
    Column("arm"),
    Column("runs", "number"),
    Column("questions", "number"),
    Column("right answers", "number"),
    Column("accuracy", "number"),
    Column("95 % interval", "number"),
    Column("invalid", "number"),
)


def accuracy_sections(rows: Sequence[AccuracyRow]) -> tuple[Section, ...]:
    """Return the section on accuracy; none without evaluations."""
    if not rows:
        return ()
    cells = [
        (safe(row.task), name, *_cells(side))
        for row in rows
        for name, side in (("base", row.base), ("candidate", row.candidate))
    ]
    notes = ("accuracy: median of the runs; interval (Wilson): of the run in the middle",)
    said = Lines(tuple(line for row in rows for line in _said(row)), bullets=True)
    return (Section("Accuracy", (Table(_COLUMNS, tuple(cells), notes), said)),)


def _cells(side: ArmAccuracy | None) -> tuple[str, ...]:
    if side is None or side.median is None or side.interval is None:
        return ("0", *(NO_DATA,) * 5)
    low, high = side.interval
    return (
        str(side.runs),
        NO_DATA if side.questions is None else str(side.questions),
        _counts(side.correct),
        f"{side.median:.4f}",
        f"{low:.4f} .. {high:.4f}",
        NO_DATA if side.invalid is None else _counts(side.invalid),
    )


def _counts(counts: Sequence[tuple[int, int]]) -> str:
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in counts)


def _said(row: AccuracyRow) -> Iterator[str]:
    for pair in row.paired:
        yield (
            f"{safe(row.task)}: question by question: {pair.base_only} right in base only, {pair.candidate_only} in candidate only, "
            f"p = {pair.p:.3g} ({safe(pair.base_run)} and {safe(pair.candidate_run)})"
        )
    yield from (f"{safe(row.task)}: {safe(note)}" for note in row.notes)
