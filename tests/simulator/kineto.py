"""Write what the simulator made as traces, and read them with the project's reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moeprof.traces.trace import Trace
from tests.builders import Event, kernel, launch, marker, trace
from tests.simulator.program import COPY
from tests.simulator.run import RankRun

BASE_NS = 1_700_000_000_000_000_000
_GLOO_THREAD = 4999


def simulated(
    runs: Mapping[str, RankRun],
    *,
    clocks: Mapping[str, int] | None = None,
    labels: Mapping[str, list[str]] | None = None,
    first: Mapping[str, int] | None = None,
    sequences: bool = False,
) -> Trace:
    """Return runs as the trace that a profiler would have written.

    Args:
        runs: By rank key.
        clocks: What each rank's clock shows more than the true time.
        labels: Names of the markers by rank; decode of 8 requests where they are not given.
        first: The iteration with which each rank's window begins.
        sequences: Give collectives sequence numbers and the name of a group.
    """
    ranks: dict[str | None, list[Event]] = {
        rank: _events(
            one, (clocks or {}).get(rank, 0), (labels or {}).get(rank), (first or {}).get(rank, 0), sequences=sequences
        )
        for rank, one in runs.items()
    }
    return trace(ranks, baseTimeNanoseconds=BASE_NS)


def _events(run: RankRun, clock: int, labels: list[str] | None, first: int, *, sequences: bool) -> list[Event]:
    begun = run.markers[first][0] if first else 0
    used = {call.correlation for call in run.calls if call.start_ns >= begun}
    events = []
    for number, (start, end) in enumerate(run.markers):
        if number >= first:
            label = labels[number] if labels else "execute_context_0(0)_generation_8(8)"
            events.append(marker(label, _us(start + clock), _us(end - start)))
    events += [marker("gloo:all_reduce", _us(a + clock), _us(b - a), tid=_GLOO_THREAD) for a, b in run.talks]
    events += [
        launch(_us(c.start_ns + clock), _us(c.end_ns - c.start_ns), correlation=c.correlation, name=c.name)
        for c in run.calls
        if c.correlation in used
    ]
    sequence = 0
    for row in run.rows:
        more: dict[str, Any] = {}
        if row.name.startswith("nccl"):
            sequence += 1
            if sequences:
                more = {"Seq": sequence, "Process Group Name": "ep", "Collective name": _collective(row.name)}
        if row.correlation in used:
            category = "gpu_memcpy" if row.name == COPY else "kernel"
            events.append(
                kernel(
                    row.name,
                    _us(row.start_ns + clock),
                    _us(row.end_ns - row.start_ns),
                    stream=row.stream,
                    correlation=row.correlation,
                    category=category,
                    **more,
                )
            )
    return events


def _collective(name: str) -> str:
    known = {"AllGather": "_allgather_base", "ReduceScatter": "_reduce_scatter_base", "AllReduce": "allreduce"}
    return next(value for key, value in known.items() if key in name)


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"
