"""Times of two captures on a page: per iteration with their intervals, and the kernels whose time changed."""

from __future__ import annotations

from collections.abc import Sequence

from moeprof.analyzers.durations.results import DurationTest, KernelTimeRow
from moeprof.analyzers.results import TimeRow
from moeprof.reports.document import Column, Lines, Section, Table
from moeprof.reports.units import NO_DATA, change, microseconds, milliseconds, probability
from moeprof.wording import plural, safe

_KERNELS_SHOWN = 15
_NOTE_WIDTH = 90
_CHANGED = ("slower", "faster")


def times_section(times: Sequence[TimeRow], *, wide: bool) -> Section:
    """Return the times per iteration of both sides."""
    title = "Times per iteration (ms)"
    if not times:
        return Section(title, (Lines(("no data",)),))
    columns = [
        Column("metric"),
        Column("phase"),
        Column("base", "number"),
        Column("candidate", "number"),
        Column("change", "number"),
    ]
    with_interval = any(row.interval is not None for row in times)
    with_test = any(row.test is not None for row in times)
    columns += [Column("95 % interval", "number")] if with_interval else []
    columns += [Column("n", "number"), Column("worth", "number")] if with_test else []
    rows = []
    for row in times:
        cells = [row.metric, row.phase or "all", milliseconds(row.base), milliseconds(row.candidate), change(row.ratio)]
        if with_interval:
            cells.append(_interval(row.interval))
        rows.append((*cells, *(_numbers(row.test) if with_test else ())))
    notes = _time_notes(times, wide=wide)
    if with_test:
        notes = (*notes, *_sample_notes(times))
    return Section(title, (Table(tuple(columns), tuple(rows), notes),))


def kernel_times_section(rows: Sequence[KernelTimeRow], unit: str, *, wide: bool) -> tuple[Section, ...]:
    """Return the kernels of both sides whose time per iteration changed; nothing where none could be tested.

    Args:
        rows: Largest difference first.
        unit: What a launch is of, ``kernel`` or ``operator``.
        wide: Leave no row out.
    """
    title = f"{unit.capitalize()}s whose time changed (us per iteration)"
    tested = sum(row.p is not None for row in rows)
    if not tested:
        return ()
    changed = [row for row in rows if row.change in _CHANGED]
    basis = (
        f"{plural(tested, unit)} of both sides tested; listed: adjusted p below 0.05 (false discoveries controlled), "
        "beyond 3 % and 1 us"
    )
    if not changed:
        return (Section(title, (Lines((f"none; {basis}",)),)),)
    shown = changed if wide else changed[:_KERNELS_SHOWN]
    columns = (
        Column("base", "number"),
        Column("cand.", "number"),
        Column("change", "number"),
        *((Column("95 % interval", "number"),) if wide else ()),
        Column("adj. p", "number"),
        Column("class"),
        Column("phase"),
        Column(unit, "name"),
    )
    notes = [
        f"mean {unit} sum of steady iterations; within these two captures; a difference of {unit} sums is not a saving of time",
        basis,
    ]
    if any(row.holds_waiting for row in shown):
        notes.append("communication: its time holds the wait for other ranks")
    more_launches = [row for row in shown if row.base_launches != row.candidate_launches]
    if more_launches:
        notes.append(f"{len(more_launches)} of them launched another number of times")
    if len(shown) < len(changed):
        notes.append(f"{plural(len(changed) - len(shown), f'more {unit}')} (--wide shows them)")
    return (
        Section(title, (Table(columns, tuple(_kernel(row, wide=wide) for row in shown), tuple(notes)),), long=True),
    )


def _kernel(row: KernelTimeRow, *, wide: bool) -> tuple[str, ...]:
    return (
        microseconds(row.base),
        microseconds(row.candidate),
        change(row.ratio),
        *((_interval(row.interval),) if wide else ()),
        probability(row.p_adjusted),
        row.class_,
        row.phase,
        row.name,
    )


def _interval(bounds: tuple[float, float] | None) -> str:
    return NO_DATA if bounds is None else " .. ".join(change(bound) for bound in bounds)


def _numbers(test: DurationTest | None) -> tuple[str, str]:
    if test is None:
        return NO_DATA, NO_DATA
    base, candidate = test.base, test.candidate
    return f"{base.iterations} v {candidate.iterations}", f"{base.effective:.1f} v {candidate.effective:.1f}"


def _sample_notes(times: Sequence[TimeRow]) -> tuple[str, ...]:
    notes = ["n: iterations of a rank; worth: so many independent ones (neighbours resemble each other)"]
    walls = [row.test for row in times if row.metric == "wall" and row.test is not None]
    others = [row.test for row in times if row.metric != "wall" and row.test is not None]
    sides = [(wall.base, other.base, wall.candidate, other.candidate) for wall in walls for other in others[:1]]
    if any(
        wall.iterations < other.iterations or last.iterations < rest.iterations for wall, other, last, rest in sides
    ):
        notes.append("wall has fewer: the last iteration of a trace has no next marker to end at")
    return tuple(notes)


def _time_notes(times: Sequence[TimeRow], *, wide: bool) -> tuple[str, ...]:
    """Return what is said of all rows as one line, then what is said of some; long asides only when wide."""
    said: dict[str, list[str]] = {}
    for row in times:
        label = row.metric if row.phase is None else f"{row.metric} {row.phase}"
        for clause in (*row.method.split("; "), *row.note.split("; ")):
            if clause:
                said.setdefault(safe(clause), []).append(label)
    common = [clause for clause, labels in said.items() if len(labels) == len(times)]
    special = [f"{', '.join(labels)}: {clause}" for clause, labels in said.items() if len(labels) < len(times)]
    shown = [note for note in special if wide or len(note) <= _NOTE_WIDTH]
    notes = ["; ".join(common)] if common else []
    notes.extend(shown)
    if len(shown) < len(special):
        notes.append(f"{plural(len(special) - len(shown), 'more remark')} (--wide shows them)")
    return tuple(notes)
