"""Run programs of several ranks against each other: when everything happens, and what it had to wait for."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tests.simulator.program import COPY, Collective, Depend, Host, Launch, Program, Replay, Step, Sync, Talk

CALL_NS = 4_000
GRAPH_CALL_NS = 30_000
LATENCY_NS = 6_000
GRAPH_LATENCY_NS = 45_000
DISPATCH_NS = 1_000
RETURN_NS = 2_000  # from the end of the work to that of the call that waits for it
EMPTY_SYNC_NS = 1_500

#: What a row began after: its launch call, the row before it on its stream, work of another stream, its graph's order.
Reason = Literal["call", "stream", "dependency", "graph"]
Arrival = Generator[int, int, None]


@dataclass(slots=True)
class Row:
    """A row of the device; `arrived_ns` is when the last rank had come, for a collective."""

    name: str
    stream: int
    start_ns: int
    end_ns: int
    correlation: int
    reason: Reason
    iteration: int
    called_ns: int
    is_graph: bool = False
    arrived_ns: int | None = None


@dataclass(slots=True)
class Call:
    """A call of the host; `wanted_ns` is when the work that it waits for ended (synchronisations)."""

    name: str
    start_ns: int
    end_ns: int
    correlation: int


@dataclass(slots=True)
class RankRun:
    """What happened on a rank, in true time."""

    rows: list[Row] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    markers: list[tuple[int, int]] = field(default_factory=list)
    talks: list[tuple[int, int]] = field(default_factory=list)

    @property
    def syncs(self) -> list[tuple[int, int]]:
        """Return the calls that waited for the device."""
        return [(call.start_ns, call.end_ns) for call in self.calls if "Synchronize" in call.name]


@dataclass(slots=True)
class _Clock:
    """The state of a rank: where its host is, and when its streams are free."""

    run: RankRun
    now: int
    free: dict[int, int] = field(default_factory=dict)
    bound: dict[int, int] = field(default_factory=dict)
    correlation: int = 0

    def call(self, name: str, ns: int) -> Call:
        self.correlation += 1
        made = Call(name, self.now, self.now + ns, self.correlation)
        self.run.calls.append(made)
        self.now += ns
        return made

    def begin(self, stream: int, called: int, latency: int, overlap: int = 0) -> tuple[int, Reason]:
        """Return when a launch begins on a stream, and what it waited for longest."""
        candidates: list[tuple[int, Reason]] = [(called + latency, "call")]
        if stream in self.free:
            candidates.append((self.free[stream] + (DISPATCH_NS if not overlap else -overlap), "stream"))
        if stream in self.bound:
            candidates.append((self.bound.pop(stream) + DISPATCH_NS, "dependency"))
        return max(candidates)


def run(programs: Mapping[str, Program], *, starts: Mapping[str, int] | None = None) -> dict[str, RankRun]:
    """Run the programs; all ranks must hold equally many collectives.

    Args:
        programs: By rank.
        starts: When each host begins; 1 ms where it is not given.
    """
    runs = {rank: RankRun() for rank in programs}
    ranks = {
        rank: _rank(_Clock(runs[rank], (starts or {}).get(rank, 1_000_000)), program)
        for rank, program in programs.items()
    }
    arrivals = {rank: next(process, None) for rank, process in ranks.items()}
    while any(arrival is not None for arrival in arrivals.values()):
        came = [arrival for arrival in arrivals.values() if arrival is not None]
        assert len(came) == len(ranks), "the ranks hold different numbers of collectives"
        last = max(came)
        for rank, process in ranks.items():
            try:
                arrivals[rank] = process.send(last)
            except StopIteration:
                arrivals[rank] = None
    return runs


def _rank(clock: _Clock, program: Program) -> Arrival:
    for number, steps in enumerate(program):
        begun = clock.now
        for step in steps:
            yield from _step(clock, step, number)
        clock.run.markers.append((begun, clock.now))
        clock.now += 100  # between markers


def _step(clock: _Clock, step: Step, iteration: int) -> Arrival:
    if isinstance(step, Host):
        clock.now += step.ns
    elif isinstance(step, Talk):
        clock.run.talks.append((clock.now, clock.now + step.ns))
        clock.now += step.ns
    elif isinstance(step, Depend):
        clock.bound[step.stream] = max(clock.bound.get(step.stream, 0), clock.free.get(step.on, 0))
    elif isinstance(step, Sync):
        busy = clock.free.get(step.stream, 0) - clock.now
        clock.call("cudaStreamSynchronize", busy + RETURN_NS if busy > 0 else EMPTY_SYNC_NS)
    elif isinstance(step, Replay):
        _replay(clock, step, iteration)
    else:
        name = "cudaMemcpyAsync" if step.name == COPY else "cudaLaunchKernel"
        call = clock.call(name, CALL_NS)
        overlap = step.overlap if isinstance(step, Launch) else 0
        start, reason = clock.begin(step.stream, call.start_ns, LATENCY_NS, overlap)
        row = Row(step.name, step.stream, start, start, call.correlation, reason, iteration, call.start_ns)
        if isinstance(step, Collective):
            row.arrived_ns = yield start
            row.end_ns = row.arrived_ns + step.ns
        else:
            row.end_ns = start + step.ns
        clock.run.rows.append(row)
        clock.free[step.stream] = max(clock.free.get(step.stream, 0), row.end_ns)


def _replay(clock: _Clock, step: Replay, iteration: int) -> None:
    call = clock.call("cudaGraphLaunch", GRAPH_CALL_NS)
    start, reason = clock.begin(step.stream, call.start_ns, GRAPH_LATENCY_NS)
    for level in step.levels:
        ends = []
        for branch, (name, ns) in enumerate(level):
            ends.append(start + ns)
            clock.run.rows.append(
                Row(
                    name,
                    100 + branch,
                    start,
                    start + ns,
                    call.correlation,
                    reason,
                    iteration,
                    call.start_ns,
                    is_graph=True,
                )
            )
            reason = "graph"
        clock.free[step.stream] = max(ends)
        start = max(ends) + DISPATCH_NS
