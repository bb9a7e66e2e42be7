"""Quality of a capture: what is missing, odd or unsure in the tables of one rank, as findings.

Each rule is a function of the tables that returns the findings it makes. Rules about streams, launches and iterations
have modules of their own; what concerns the window as a whole is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl

from moeprof.analyzers.quality.iterations import (
    graph_replays_that_differ,
    iterations_that_deviate,
    outside_iterations,
    profiler_overhead,
)
from moeprof.analyzers.quality.launches import (
    causality,
    graph_launches_without_kernels,
    kernels_without_launch,
    launches_without_kernels,
)
from moeprof.analyzers.quality.names import first_names, told
from moeprof.analyzers.quality.streams import impossible_durations, same_stream_overlaps
from moeprof.analyzers.tables import Attribution
from moeprof.findings import Finding, JsonValue, Severity, order
from moeprof.traces import schema
from moeprof.traces.trace import RankTrace
from moeprof.wording import duration, percent, plural

_UNCLASSIFIED_LIMIT = 0.05
_Rule = Callable[[RankTrace, Attribution], Iterator[Finding]]


def quality_findings(rank_trace: RankTrace, attribution: Attribution) -> tuple[Finding, ...]:
    """Return what a reader of a rank's figures must know about its capture, worst first.

    Args:
        rank_trace: The tables of the rank.
        attribution: Its iterations and attributed launches.

    Returns:
        Findings in the order of `moeprof.findings.order`.
    """
    rules: tuple[_Rule, ...] = (
        derived_or_cut,
        without_times,
        without_gpu_activity,
        empty_window,
        invalid_rows,
        unclassified,
        kernels_without_launch,
        launches_without_kernels,
        graph_launches_without_kernels,
        causality,
        impossible_durations,
        same_stream_overlaps,
        iterations_that_deviate,
        graph_replays_that_differ,
        outside_iterations,
        profiler_overhead,
    )
    return tuple(sorted((found for rule in rules for found in rule(rank_trace, attribution)), key=order))


def derived_or_cut(rank_trace: RankTrace, attribution: Attribution) -> Iterator[Finding]:
    """Say that a file was computed from another one, or is an excerpt."""
    raw = rank_trace.metadata.raw
    if "moeprof_derived" in raw:
        message = f"{rank_trace.source} is derived from another trace, not measured: its times prove nothing"
        yield Finding("derived-trace", "warning", message, attribution.rank, {"derived": raw["moeprof_derived"]})
    if "moeprof_cut" in raw:
        message = f"{rank_trace.source} is an excerpt of a longer capture"
        yield Finding("cut-trace", "note", message, attribution.rank, {"cut": raw["moeprof_cut"]})


def without_times(rank_trace: RankTrace, attribution: Attribution) -> Iterator[Finding]:
    """Warn of a file in which no event lasts: metadata or instant events only."""
    if _timed_events(rank_trace):
        return
    phases = rank_trace.events["ph"].cast(pl.String)
    instant = int(phases.is_in(["i", "I"]).sum())
    message = f"no event of {rank_trace.events.height} has a time to measure ({plural(instant, 'instant event')})"
    evidence: dict[str, JsonValue] = {"events": rank_trace.events.height, "instant_events": instant}
    yield Finding("no-timed-event", "warning", message, attribution.rank, evidence)


def without_gpu_activity(rank_trace: RankTrace, attribution: Attribution) -> Iterator[Finding]:
    """Warn of a trace with host events or markers and no kernel."""
    kernels = int(rank_trace.kernels["activity"].is_in(["kernel", "graph"]).sum())
    timed = _timed_events(rank_trace)
    if kernels or not timed:
        return
    copies = rank_trace.kernels.height
    stands = "; operators stand for launches" if attribution.cpu_only else ""
    recorded = f"no kernel recorded, only {plural(copies, 'copy or memset', 'copies and memsets')}"
    message = recorded if copies else f"no GPU activity recorded: GPU times have no data{stands}"
    evidence: dict[str, JsonValue] = {
        "copies": copies,
        "timed_events": timed,
        "markers": rank_trace.markers.height,
        "host_calls": rank_trace.launches.height,
    }
    yield Finding("no-gpu-activity", "warning", message, attribution.rank, evidence)


def empty_window(rank_trace: RankTrace, attribution: Attribution) -> Iterator[Finding]:
    """Warn of iterations in a window in which nothing at all was launched."""
    iterations = attribution.iterations.height
    if not iterations or not attribution.launches.is_empty():
        return
    message = f"the window holds {plural(iterations, 'iteration')} and not one launch"
    evidence: dict[str, JsonValue] = {"iterations": iterations, "markers": rank_trace.markers.height}
    yield Finding("empty-window", "warning", message, attribution.rank, evidence)


def invalid_rows(rank_trace: RankTrace, attribution: Attribution) -> Iterator[Finding]:
    """Warn of GPU rows that were set aside, by reason."""
    invalid = rank_trace.invalid
    if invalid.is_empty():
        return
    by_reason = invalid.group_by("reason").len().sort("reason")
    reasons: dict[str, JsonValue] = dict(by_reason.iter_rows())
    names = first_names(invalid["name"])
    counts = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
    message = f"{plural(invalid.height, 'GPU row')} set aside as invalid ({counts}): {told(names)}"
    evidence: dict[str, JsonValue] = {"rows": invalid.height, "reasons": reasons, "names": [*names]}
    yield Finding("invalid-rows", "warning", message, attribution.rank, evidence)


def unclassified(rank_trace: RankTrace, attribution: Attribution) -> Iterator[Finding]:
    """Tell the share of launches that no rule classifies."""
    launches = attribution.launches.filter(pl.col("activity").is_in(["kernel", "operator"]))
    other = launches.filter(pl.col("class") == "other")
    if other.is_empty():
        return
    time, whole = int(other["duration_ns"].sum()), int(launches["duration_ns"].sum())
    share = time / whole if whole else 0.0
    top = other.group_by("name").agg(pl.len(), pl.col("duration_ns").sum())
    names: list[str] = top.sort("duration_ns", "name", descending=[True, False])["name"].head(5).to_list()
    message = (
        f"{plural(other.height, 'launch', 'launches')} of {launches.height} unclassified"
        f" ({percent(share)} of their time, {duration(time)}): {told(names)}"
    )
    severity: Severity = "warning" if share > _UNCLASSIFIED_LIMIT else "note"
    evidence: dict[str, JsonValue] = {
        "launches": other.height,
        "time_ns": time,
        "time_share": share,
        "distinct_names": top.height,
        "names": [*names],
    }
    yield Finding("unclassified", severity, message, attribution.rank, evidence)


def _timed_events(rank_trace: RankTrace) -> int:
    """Count the events that last: complete ones with start and duration, and those that begin or end."""
    events = rank_trace.events
    begins = schema.where(events["ph"], lambda phases: phases.is_in(["B", "E"]))
    return int((events["start_ns"].is_not_null() & (events["duration_ns"].is_not_null() | begins)).sum())
