"""Sections of a report that say where the wall time of iterations went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moeprof.analyzers.timeline.results import Chain, Part, PhaseTimeline, RankTimeline, Step
from moeprof.analyzers.timeline.tables import IDLE
from moeprof.reports.document import Block, Column, Lines, Section, Table
from moeprof.reports.structure import Labelled
from moeprof.reports.units import NO_DATA, between, count, microseconds, milliseconds
from moeprof.wording import duration, percent, plural

_RANKS_AS_COLUMNS = 4
_REGIMES_SHOWN = 6
_MEANING = {
    "compute": "a kernel runs that is no communication",
    "communication": "exposed: communication runs and no computation does",
    "copy": "only a memcpy or memset runs",
    "host_late": "idle: the launch call had not begun",
    "host_sync": "idle: the same, after the host had waited for the device",
    "host_collective": "idle: the host waits for other ranks in a collective of its own",
    "launch": "idle: from a launch call to its kernel",
    "graph_launch": "idle: from a graph launch to its first kernel",
    "graph_node": "idle: between kernels of one graph replay",
    "stream_dependency": "idle: queued behind work of another stream",
    "dispatch": "idle: queued behind work of the same stream",
    "unknown": "idle: no launch call on record",
}
_BOUND = {
    "host": "the host's own work",
    "launch": "launch latency",
    "compute": "computation",
    "communication": "communication, once all ranks had come",
    "wait": "waiting for other ranks",
    "copy": "copies",
    "device": "gaps between queued kernels",
    "unknown": "no launch call on record",
}


def timeline_sections(ranks: Sequence[Labelled], *, wide: bool) -> tuple[Section, ...]:
    """Return the sections on time; none where no timeline was asked for."""
    known = [(label, rank.timeline) for label, rank in ranks if rank.timeline is not None]
    if not known:
        return ()
    title = "Where the wall time of an iteration goes (ms)"
    if not any(timeline.iterations for _, timeline in known):
        return (Section(title, (Lines(("no data: no device work in an iteration that another one follows",)),)),)
    return (
        Section(title, (_parts(known, wide=wide),)),
        Section("What bounds it (ms)", (_bounds(known),)),
        *_launch_sections(known),
        *_chain_sections(known, wide=wide),
        Section("Batches", (_regimes(known, wide=wide),)),
        Section("Spread of iterations (ms)", tuple(_unrest(known))),
    )


def _parts(ranks: Sequence[tuple[str, RankTimeline]], *, wide: bool) -> Table:
    names = [part.state for part in ranks[0][1].states] or [part.state for _, one in ranks for part in one.states]
    shown = [name for name in names if wide or any(_part(one.states, name)[1] for _, one in ranks)]
    rows = [(name.replace("_", " "), *_cells(ranks, name, bounds=False), _MEANING[name]) for name in shown]
    walls = _each_or_range(ranks, [milliseconds(one.wall_ns.median if one.wall_ns else None) for _, one in ranks])
    rows.append(("wall", *walls, "marker start to the next marker's start"))
    waits = [one.wait_ns for _, one in ranks]
    over = [one.overlapped_ns for _, one in ranks]
    extra = []
    if any(wait is not None for wait in waits):
        texts = _each_or_range(ranks, [milliseconds(wait.median if wait else None) for wait in waits])
        extra.append(("of communication: wait", *texts, "before the last rank had come"))
    texts = _each_or_range(ranks, [milliseconds(one.median if one else None) for one in over])
    extra.append(("overlapped", *texts, "communication under computation: part of compute"))
    columns = (Column("part"), *_columns(ranks), Column("what it is"))
    steady = between(sorted({str(one.iterations) for _, one in ranks}, key=int))
    notes = (
        f"medians over {steady} steady iterations, share of the time in brackets; each instant is counted once, so the parts of"
        " an iteration add up to its wall time",
    )
    return Table(columns, (*rows, *extra), notes)


def _bounds(ranks: Sequence[tuple[str, RankTimeline]]) -> Table:
    shown = [name for name in _BOUND if any(_part(one.bounds, name)[1] for _, one in ranks)]
    rows = tuple((name, *_cells(ranks, name, bounds=True), _BOUND[name]) for name in shown)
    columns = (Column("bound by"), *_columns(ranks), Column("what it is"))
    return Table(columns, rows, ("work of the device that the host paces, kernel by kernel, counts as the host's",))


def _columns(ranks: Sequence[tuple[str, RankTimeline]]) -> tuple[Column, ...]:
    if len(ranks) > _RANKS_AS_COLUMNS:
        return (Column("least .. greatest rank", "number"),)
    return tuple(Column(label, "number") for label, _ in ranks)


def _cells(ranks: Sequence[tuple[str, RankTimeline]], name: str, *, bounds: bool) -> tuple[str, ...]:
    parts = [_part(one.bounds if bounds else one.states, name) for _, one in ranks]
    if len(ranks) > _RANKS_AS_COLUMNS:
        return (between([milliseconds(ns) for ns in sorted(ns for ns, _ in parts)]),)
    return tuple(f"{milliseconds(ns)} ({percent(share)})" for ns, share in parts)


def _each_or_range(ranks: Sequence[tuple[str, RankTimeline]], texts: Sequence[str]) -> tuple[str, ...]:
    """Return one cell per rank, or one cell with the range where ranks are too many for columns."""
    if len(ranks) <= _RANKS_AS_COLUMNS:
        return tuple(texts)
    known = sorted((text for text in texts if text != NO_DATA), key=_number)
    return (between(known),)


def _number(text: str) -> float:
    return float(text.lstrip("<>"))


def _part(parts: Sequence[Part], name: str) -> tuple[int, float]:
    return next(((part.ns.median, part.share) for part in parts if part.state == name), (0, 0.0))


def _launch_sections(ranks: Sequence[tuple[str, RankTimeline]]) -> Iterator[Section]:
    rows = tuple(
        (
            label,
            phase.phase,
            *(milliseconds(ns) for ns in _of_phase(phase)),
            count(phase.calls),
            count(phase.graph_launches),
            microseconds(phase.call_ns),
            microseconds(phase.latency_ns.median if phase.latency_ns else None),
            percent(phase.queued_share),
        )
        for label, one in ranks
        for phase in one.phases
    )
    if not rows:
        return
    titles = ("compute", "comm.", "idle", "calls", "graphs", "in calls, us", "latency, us", "queued")
    columns = (Column("rank"), Column("phase"), *(Column(title, "number") for title in titles))
    notes = (
        "compute, exposed communication and idle gaps before its launches in ms (medians); launch calls per iteration and the host time inside them; latency: call start to kernel start, of calls that found the"
        " device idle; queued: calls that found it at work",
    )
    yield Section("Phases", (Table(columns, rows, notes),))


def _of_phase(phase: PhaseTimeline) -> tuple[int, int, int]:
    communication = phase.states.get("communication", 0) + phase.states.get("wait", 0)
    idle = sum(ns for state, ns in phase.states.items() if state in IDLE)
    return phase.states.get("compute", 0), communication, idle


def _chain_sections(ranks: Sequence[tuple[str, RankTimeline]], *, wide: bool) -> Iterator[Section]:
    for label, one in ranks if wide else ranks[:1]:
        if one.chain is None:
            continue
        rank = "" if len(ranks) == 1 else f" of {label}"
        yield Section(f"Critical chain{rank}, iteration {one.chain.iteration} (the median one)", (_chain(one.chain),))


def _chain(chain: Chain) -> Table:
    rows = tuple((step.resource, step.phase or "", milliseconds(step.ns), _consists(step)) for step in chain.steps)
    columns = (Column("on"), Column("phase"), Column("ms", "number"), Column("consists of, ms"))
    return Table(columns, rows, (f"in order; the steps add up to {duration(chain.wall_ns)}",))


def _consists(step: Step) -> str:
    largest = sorted(step.bounds.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {milliseconds(ns)}" for name, ns in largest[:3])


def _regimes(ranks: Sequence[tuple[str, RankTimeline]], *, wide: bool) -> Table:
    rows = []
    left = 0
    for label, one in ranks:
        shown = one.regimes if wide else one.regimes[:_REGIMES_SHOWN]
        left += len(one.regimes) - len(shown)
        for regime in shown:
            per = (regime.per_scheduled_token_ns, regime.per_generated_token_ns)
            rows.append(
                (
                    label,
                    regime.kind or NO_DATA,
                    count(regime.requests),
                    count(regime.tokens),
                    count(regime.iterations),
                    milliseconds(regime.wall_ns.median),
                    *(microseconds(None if value is None else round(value)) for value in per),
                )
            )
    titles = ("requests", "tokens", "iterations", "wall, ms", "us/scheduled", "us/generated")
    columns = (Column("rank"), Column("kind"), *(Column(title, "number") for title in titles))
    notes = ["us per token: median wall time over tokens scheduled; generated tokens are known only without drafts"]
    if left:
        notes.append(f"{plural(left, 'more batch', 'more batches')} (--wide shows them)")
    return Table(columns, tuple(rows), tuple(notes))


def _unrest(ranks: Sequence[tuple[str, RankTimeline]]) -> Iterator[Block]:
    rows = []
    for label, one in ranks:
        spread, drift = one.distribution, one.drift
        if spread is None:
            continue
        values = (spread.min, spread.p10, spread.p50, spread.p90, spread.max)
        moves = NO_DATA if drift is None else f"{drift.change * 100:+.1f} %"
        rows.append((label, count(spread.iterations), *(milliseconds(value) for value in values), moves))
    titles = ("iterations", "least", "10 %", "50 %", "90 %", "most", "first to last third")
    columns = (Column("rank"), *(Column(title, "number") for title in titles))
    yield Table(columns, tuple(rows), ("over the iterations with the commonest batch",))
