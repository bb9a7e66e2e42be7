"""What a timeline tells beside its figures."""

from __future__ import annotations

from collections.abc import Iterator

from moeprof.analyzers.timeline.results import Outlier, RankTimeline
from moeprof.findings import Finding, JsonValue
from moeprof.wording import duration, listed, percent

_HOST_BOUND = 0.5  # of the wall time
_SYNC = 0.02
_DRIFT = 0.05
_SURE = 0.01


def timeline_findings(rank: str | None, timeline: RankTimeline) -> list[Finding]:
    """Return the findings of a rank's timeline.

    Args:
        rank: Key of the rank.
        timeline: Its timeline.
    """
    return [
        *_host_bound(rank, timeline),
        *_synchronises(rank, timeline),
        *_drifts(rank, timeline),
        *_outliers(rank, timeline),
    ]


def share(timeline: RankTimeline, *names: str) -> float:
    """Return the share of the wall time that the named bounds or states take."""
    return sum(part.share for part in (*timeline.bounds, *timeline.states) if part.state in names)


def host_share(timeline: RankTimeline) -> float:
    """Return the share of the wall time that the host and its launches bound."""
    return sum(part.share for part in timeline.bounds if part.state in ("host", "launch"))


def _host_bound(rank: str | None, timeline: RankTimeline) -> Iterator[Finding]:
    bound = host_share(timeline)
    if bound <= _HOST_BOUND or timeline.host is None:
        return
    calls, graphs = timeline.host.launch_calls, timeline.host.graph_launches
    with_graphs = f"{graphs} of them graph launches" if graphs else "none of them a graph launch"
    message = (
        f"the host bounds {percent(bound)} of the wall time of iterations: {calls} launch calls per iteration,"
        f" {with_graphs}, {duration(timeline.host.launch_time_ns)} inside them"
    )
    evidence: dict[str, JsonValue] = {
        "host_share": round(bound, 6),
        "launch_calls": calls,
        "graph_launches": graphs,
        "launch_time_ns": timeline.host.launch_time_ns,
    }
    yield Finding("host-bound", "warning", message, rank, evidence)


def _synchronises(rank: str | None, timeline: RankTimeline) -> Iterator[Finding]:
    cost = next((part for part in timeline.states if part.state == "host_sync"), None)
    if timeline.host is None or cost is None or cost.share <= _SYNC:
        return
    message = (
        f"the device idles {duration(cost.ns.median)} per iteration ({percent(cost.share)} of the wall time) because the host"
        f" waits for it: {timeline.host.sync_calls} synchronising calls per iteration"
    )
    evidence: dict[str, JsonValue] = {
        "sync_calls": timeline.host.sync_calls,
        "host_sync_ns": cost.ns.median,
        "share": round(cost.share, 6),
    }
    yield Finding("host-synchronises", "note", message, rank, evidence)


def _drifts(rank: str | None, timeline: RankTimeline) -> Iterator[Finding]:
    drift = timeline.drift
    if drift is None or abs(drift.change) < _DRIFT or drift.p is None or drift.p > _SURE:
        return
    message = (
        f"iterations get {'longer' if drift.change > 0 else 'shorter'} inside the window: {duration(drift.first_ns)} in its"
        f" first third, {duration(drift.last_ns)} in its last ({drift.change * 100:+.1f} %)"
    )
    evidence: dict[str, JsonValue] = {
        "first_ns": drift.first_ns,
        "last_ns": drift.last_ns,
        "tau": drift.tau,
        "p": drift.p,
    }
    yield Finding("iterations-drift", "note", message, rank, evidence)


def _outliers(rank: str | None, timeline: RankTimeline) -> Iterator[Finding]:
    if not timeline.outliers:
        return
    first = timeline.outliers[0]
    named = listed([one.iteration for one in timeline.outliers])
    message = (
        f"{len(timeline.outliers)} of {timeline.iterations} steady iterations stand out ({named}): iteration {first.iteration}"
        f" lasts {duration(first.wall_ns)}, {duration(first.excess_ns)} above the median{_why(first)}"
    )
    evidence: dict[str, JsonValue] = {
        str(one.iteration): {"wall_ns": one.wall_ns, "excess_ns": one.excess_ns} for one in timeline.outliers
    }
    yield Finding("iterations-stand-out", "note", message, rank, {"iterations": evidence})


def _why(outlier: Outlier) -> str:
    parts = (
        f"{duration(part.ns)} more {part.state.replace('_', ' ')}{f' of {part.class_}' if part.class_ else ''}"
        for part in outlier.parts
    )
    said = ", ".join(parts)
    return f": {said}" if said else ""
