"""Folded structure of a report, and what became of it in a diff."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from moeprof.analyzers.layers.results import LayerEdit, LayerRow, SequenceChange
from moeprof.analyzers.layers.sentences import noun, variant_words
from moeprof.analyzers.results import RankReport
from moeprof.analyzers.tables import PHASES
from moeprof.reports.document import Block, Column, Lines, Section, Table
from moeprof.reports.units import microseconds
from moeprof.wording import listed, percent, plural, safe

_NAMED = 6  # repetitions that a line names
_PARTS = 40  # parts of a phase that are listed
_LONG = 400  # launches of a body that are listed
_ALONE = ("removed", "added", "reordered", "overtaken")  # edits of a launch that has no partner in its place
_ROLES = {"moe_layer": "MoE layer", "dense_layer": "dense layer", "pass": "pass", "other": ""}
_EMPTY = "no structure: no launch belongs to a counted iteration, or whole graphs were recorded"


def layer_sections(ranks: Sequence[tuple[str, RankReport]], *, wide: bool) -> tuple[Section, ...]:
    """Return the structure of each phase, shown once for all ranks that have the same.

    Args:
        ranks: Labels and ranks.
        wide: List every part launch by launch, not only those that repeat.
    """
    groups: dict[object, list[tuple[str, RankReport]]] = {}
    for label, rank in ranks:
        groups.setdefault(_shape(rank), []).append((label, rank))
    sections: list[Section] = []
    for group in groups.values():
        who = "" if len(ranks) == 1 else f" ({_who([label for label, _ in group], len(ranks))})"
        rows = group[0][1].layers
        if not rows:
            sections.append(Section(f"Layers{who}", (Lines((_EMPTY,)),)))
        for phase in PHASES:
            own = [row for row in rows if row.phase == phase]
            if own:
                sections.append(_phase(phase, own, who, wide=wide))
                sections += [_launches(row, who) for row in own if wide or row.repeat > 1]
    return tuple(sections)


def _who(labels: Sequence[str], all_ranks: int) -> str:
    if len(labels) == all_ranks:
        return f"{all_ranks} ranks agree; times of {labels[0]}"
    return f"{', '.join(labels)}{f'; times of {labels[0]}' if len(labels) > 1 else ''}"


def _shape(rank: RankReport) -> object:
    return tuple((row.phase, row.repeat, row.alike, row.sequence, row.families, row.variants) for row in rank.layers)


def _phase(phase: str, rows: Sequence[LayerRow], who: str, *, wide: bool) -> Section:
    shown = rows if wide else rows[:_PARTS]
    cells = tuple(
        (
            f"{row.repeat} x",
            _ROLES[row.role],
            str(len(row.sequence)) if row.repeat > 1 else str(row.launches),
            microseconds(row.kernel_sum_ns),
            microseconds(row.kernel_busy_ns),
            percent(row.share),
            _steps(row),
        )
        for row in shown
    )
    columns = (
        Column("", "number"),
        Column("what"),
        Column("launches", "number"),
        Column("sum, us", "number"),
        Column("busy, us", "number"),
        Column("share", "number"),
        Column("sequence"),
    )
    first = rows[0]
    notes = [line for row in shown for line in _variants(row)]
    if len(shown) < len(rows):
        notes.append(f"{plural(len(rows) - len(shown), 'more part')} (--wide shows them)")
    if all(row.repeat == 1 for row in rows):
        notes.append(f"no structure repeats among the {sum(row.launches for row in rows)} launches of this phase")
    notes.append(
        f"launches, kernel sum and kernel busy of one repetition (median); share of the phase's kernel sum; "
        f"{first.iterations} of {plural(first.iterations_counted, 'iteration')} launch{'es' if first.iterations == 1 else ''} "
        "the same in this phase"
    )
    if not first.ordered:
        notes.append(
            "the trace does not tell the order of launches in a graph: of different streams, that of the starts is shown"
        )
    return Section(f"Layers: {phase}{who}", (Table(columns, cells, tuple(notes)),))


def _steps(row: LayerRow) -> str:
    """Return the classes of a sequence, runs of one class as one, parts that repeat in brackets."""
    if not row.nested:
        return f"[{_run(row.sequence)}]"
    parts = []
    for part in row.nested:
        inner = _run(row.sequence[part.start : part.start + part.length])
        parts.append(inner if part.repeat == 1 else f"{part.repeat} x [{inner}]")
    return f"[{' '.join(parts)}]"


def _run(classes: Sequence[str]) -> str:
    runs = [(class_, len(list(group))) for class_, group in groupby(classes)]
    return " ".join(class_ if count == 1 else f"{count} {class_}" for class_, count in runs)


def _variants(row: LayerRow) -> tuple[str, ...]:
    if not row.variants:
        return ()
    return (
        f"{noun(row, row.repeat)}: {row.alike} alike",
        *(
            f"{'number' if one.repeat == 1 else f'{one.repeat} of these, number'} "
            f"{listed((number + 1 for number in one.at), _NAMED)}: {variant_words(one)}"
            f"{', which joins two of them' if one.joint else ''}"
            for one in row.variants
        ),
    )


def _launches(row: LayerRow, who: str) -> Section:
    shown = min(len(row.sequence), _LONG)
    names = row.names or row.families
    rows = tuple(
        (
            str(place + 1),
            microseconds(row.duration_ns[place]),
            "-" if row.streams is None else str(row.streams[place]),
            row.sequence[place],
            names[place],
        )
        for place in range(shown)
    )
    columns = (
        Column("", "number"),
        Column("us", "number"),
        Column("stream", "number"),
        Column("class"),
        Column("kernel", "name"),
    )
    notes = ["median duration of each launch; streams are numbered by their first launch in the phase"]
    if row.streams is None:
        notes = ["median duration of each launch; streams: graphs spread over streams of their own, or none is known"]
    if shown < len(row.sequence):
        notes.append(f"{len(row.sequence) - shown} more launches")
    return Section(
        f"Launches of each of {noun(row, row.repeat)}{who}", (Table(columns, rows, tuple(notes)),), long=True
    )


def explanation_sections(changes: Sequence[SequenceChange], notes: Sequence[str], *, wide: bool) -> tuple[Section, ...]:
    """Return what became of the structure: a sentence for each change, then the bodies side by side."""
    said = [change.sentence for change in changes if change.sentence is not None] + list(notes)
    same = sum(change.change == "same" for change in changes)
    lines = [safe(line) for line in said]
    if not changes:
        lines = ["no structure is known on either side"]
    elif not said:
        lines = [f"the structure is the same on both sides ({plural(same, 'part')})"]
    elif same:
        lines.append(f"{plural(same, 'part')} of the structure unchanged")
    shown = [change for change in changes if change.change != "same" or wide]
    return (
        Section("What changed in the layers", (Lines(tuple(lines), bullets=True),)),
        *(_side_by_side(change, wide=wide) for change in shown),
    )


def _side_by_side(change: SequenceChange, *, wide: bool) -> Section:
    rows = _listing(change, wide=wide)
    columns = (
        Column("", "change"),
        Column("base us", "number"),
        Column("base", "name"),
        Column("cand. us", "number"),
        Column("candidate", "name"),
    )
    times = (
        f"{change.repeat} x per iteration"
        if change.change in ("same", "changed")
        else f"{change.repeat} x per iteration, {change.change}"
    )
    busy = f"kernel busy of one repetition: {microseconds(change.base_kernel_busy_ns)} us -> {microseconds(change.candidate_kernel_busy_ns)} us"
    notes = [f"{times}; {len(change.base)} -> {len(change.candidate)} launches; {busy}"]
    notes.append("median duration of each launch; a difference of kernel times is not a saving of time")
    if not wide and any(row[0] == "" for row in rows):
        notes.append("launches that are the same are shown around the changes only (--wide shows them)")
    what = _ROLES[change.role] or "part"
    blocks: tuple[Block, ...] = (Table(columns, rows, tuple(notes)),)
    return Section(f"Side by side: {change.phase} {what} ({change.repeat} x)", blocks, long=True)


def _listing(change: SequenceChange, *, wide: bool) -> tuple[tuple[str, ...], ...]:
    """Return the rows of both sides in order: what is the same in one row, what is not with its word."""
    steps = _steps_of(change)
    keep = range(len(steps)) if wide else _around([index for index, step in enumerate(steps) if step[0]], len(steps))
    rows: list[tuple[str, ...]] = []
    last = -1
    for index in keep:
        if index > last + 1:
            rows.append(("", "", "...", "", "..."))
        word, i, j = steps[index]
        rows.append(
            (
                word,
                *_cell(change.base_duration_ns, change.base_names, i),
                *_cell(change.candidate_duration_ns, change.candidate_names, j),
            )
        )
        last = index
    if steps and last < len(steps) - 1:
        rows.append(("", "", "...", "", "..."))
    return tuple(rows)


def _around(changed: Sequence[int], length: int) -> list[int]:
    return sorted({near for index in changed for near in range(max(0, index - 1), min(length, index + 2))})


def _cell(durations: Sequence[int], names: Sequence[str], place: int | None) -> tuple[str, str]:
    return ("", "") if place is None else (microseconds(durations[place]), names[place])


def _steps_of(change: SequenceChange) -> list[tuple[str, int | None, int | None]]:
    if change.change in ("added", "removed"):
        gone = change.change == "removed"
        count = len(change.base or change.candidate)
        return [(change.change, place if gone else None, None if gone else place) for place in range(count)]
    left: dict[int, LayerEdit] = {i: one for one in change.edits for i in one.base}
    right: dict[int, LayerEdit] = {j: one for one in change.edits for j in one.candidate}
    steps: list[tuple[str, int | None, int | None]] = []
    i = j = 0
    while i < len(change.base) or j < len(change.candidate):
        here, there = left.get(i), right.get(j)
        if here is not None and here.edit in _ALONE:
            # Overtaken launches stand in one row, at the place of the base.
            steps.append(("", i, here.candidate[0]) if here.edit == "overtaken" else (here.edit, i, None))
            i += 1
        elif there is not None and there.edit in _ALONE:
            if there.edit != "overtaken":
                steps.append((there.edit, None, j))
            j += 1
        else:
            steps.append((here.edit if here is not None else "", i, j))
            i, j = i + 1, j + 1
    return steps
