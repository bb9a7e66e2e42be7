"""What each instant of an iteration went into, told from what the simulator knows, one instant after another."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from tests.simulator.program import COPY
from tests.simulator.run import RankRun, Row

_CAUSE = {"stream": "dispatch", "dependency": "stream_dependency", "graph": "graph_node"}


def windows(run: RankRun) -> list[tuple[int, int]]:
    """Return the windows of the iterations that another one follows."""
    return [(before[0], after[0]) for before, after in pairwise(run.markers)]


def states(run: RankRun) -> list[Counter[str]]:
    """Return, for each window, the time of each state, and of ``wait`` and ``overlapped`` beside them."""
    rows = sorted(run.rows, key=lambda row: row.start_ns)
    edges = {edge for row in rows for edge in (row.start_ns, row.end_ns, row.called_ns, row.arrived_ns or row.end_ns)}
    edges |= {edge for span in (*windows(run), *run.talks, *run.syncs) for edge in span}
    cuts = sorted(edges)
    found = []
    for begin, end in windows(run):
        told: Counter[str] = Counter()
        for left, right in pairwise(cut for cut in cuts if begin <= cut <= end):
            state, wait, both = _instant(run, rows, left)
            told[state] += right - left
            told["wait"] += (right - left) * wait
            told["overlapped"] += (right - left) * both
        found.append(told)
    return found


def _instant(run: RankRun, rows: list[Row], at: int) -> tuple[str, bool, bool]:
    running = [row for row in rows if row.start_ns <= at < row.end_ns]
    compute = [row for row in running if not _is_communication(row) and row.name != COPY]
    communication = [row for row in running if _is_communication(row)]
    if compute:
        return "compute", False, bool(communication)
    if communication:
        waits = [row.arrived_ns is not None and at < row.arrived_ns for row in communication]
        return "communication", waits[0], False
    if running:
        return "copy", False, False
    return _idle(run, rows, at), False, False


def _idle(run: RankRun, rows: list[Row], at: int) -> str:
    following = [row for row in rows if row.start_ns > at]
    if not following:
        return "unknown"
    row = following[0]
    opened = max((other.end_ns for other in rows if other.start_ns < row.start_ns), default=-1)
    if at < row.called_ns:
        if any(begin <= at < end for begin, end in run.talks):
            return "host_collective"
        synced = [span for span in run.syncs if span[0] <= row.called_ns]
        waited = bool(synced) and synced[-1][1] > opened and at >= synced[-1][0]
        return "host_sync" if waited else "host_late"
    if row.reason == "call":
        return "graph_launch" if row.is_graph else "launch"
    return _CAUSE[row.reason]


def _is_communication(row: Row) -> bool:
    return row.name.startswith("nccl")
