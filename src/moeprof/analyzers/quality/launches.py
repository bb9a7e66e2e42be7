"""Quality of the links between host calls and kernels: orphans, lost records, kernels before their launch."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from moeprof.analyzers.quality.names import first_names, told
from moeprof.analyzers.tables import Attribution
from moeprof.findings import Finding, JsonValue
from moeprof.traces.trace import RankTrace
from moeprof.wording import percent, plural


def kernels_without_launch(rank_trace: RankTrace, attribution: Attribution) -> Iterator[Finding]:
    """Warn of GPU rows whose launch call is not on record; they stay in totals and belong to no iteration."""
    rows = rank_trace.kernels
    orphans = rows.filter(pl.col("launch").is_null())
    if orphans.is_empty():
        return
    kernels = rows.filter(pl.col("activity") == "kernel")
    lonely = orphans.filter(pl.col("activity") == "kernel")
    whole = int(kernels["duration_ns"].sum())
    share = int(lonely["duration_ns"].sum()) / whole if whole else 0.0
    early = _before_first_launch(orphans, rank_trace.launches)
    copies = orphans.height - lonely.height
    names = first_names(lonely["name"] if lonely.height else orphans["name"])
    message = (
        f"{lonely.height} of {plural(kernels.height, 'kernel')} ({percent(share)} of kernel time)"
        + (f" and {plural(copies, 'copy', 'copies')}" if copies else "")
        + f" have no launch on record ({told(names)}); {_place(early, orphans.height)}"
    )
    evidence: dict[str, JsonValue] = {
        "kernels": lonely.height,
        "copies": copies,
        "of_kernels": kernels.height,
        "time_ns": int(lonely["duration_ns"].sum()),
        "time_share": share,
        "before_first_launch": early,
        "names": [*names],
    }
    yield Finding("kernels-without-launch", "warning", message, attribution.rank, evidence)


def launches_without_kernels(rank_trace: RankTrace, attribution: Attribution) -> Iterator[Finding]:
    """Warn of eager kernel launches that left no kernel record."""
    calls = rank_trace.launches.filter(pl.col("is_kernel_launch") & ~pl.col("is_graph"))
    # A launch whose kernel was set aside is told by `invalid-rows`.
    lost = calls.filter(pl.col("kernel_rows") == 0).join(rank_trace.invalid, on="launch", how="anti")
    if lost.is_empty():
        return
    names = first_names(lost["name"])
    at_end = _after_last_record(lost, rank_trace.launches)
    message = (
        f"{lost.height} of {plural(calls.height, 'kernel launch', 'kernel launches')} left no kernel record"
        f" ({told(names)}); {at_end} of them at the end of the window"
    )
    evidence: dict[str, JsonValue] = {
        "launches": calls.height,
        "without_kernels": lost.height,
        "at_end": at_end,
        "names": [*names],
    }
    yield Finding("launches-without-kernels", "warning", message, attribution.rank, evidence)


def graph_launches_without_kernels(rank_trace: RankTrace, attribution: Attribution) -> Iterator[Finding]:
    """Report graph launches that left no GPU row at all: no figure of such a trace can be relied on."""
    calls = rank_trace.launches.filter("is_graph")
    lost = calls.filter(pl.col("device_rows") == 0)  # a graph of copies alone has rows and no kernel: nothing lost
    if lost.is_empty():
        return
    message = (
        f"{lost.height} of {plural(calls.height, 'graph launch', 'graph launches')} left no kernel record:"
        " busy, idle and per-iteration counts are not reliable"
    )
    evidence: dict[str, JsonValue] = {
        "graph_launches": calls.height,
        "without_kernels": lost.height,
        "at_end": _after_last_record(lost, rank_trace.launches),
        "reliable": False,
    }
    yield Finding("graph-launches-without-kernels", "error", message, attribution.rank, evidence)


def causality(rank_trace: RankTrace, attribution: Attribution) -> Iterator[Finding]:
    """Warn of kernels that start before their launch call does."""
    kernels = attribution.launches.filter(pl.col("activity") == "kernel")
    early = kernels.filter(pl.col("start_ns") < pl.col("launch_start_ns"))
    if early.is_empty():
        return
    lead = early.select((pl.col("launch_start_ns") - pl.col("start_ns")).max()).item()
    names = first_names(early["name"])
    message = (
        f"{plural(early.height, 'kernel')} of {kernels.height} start before their launch call does, by up to {lead} ns"
        f" ({told(names)}): the clocks of host and device do not agree there"
    )
    evidence: dict[str, JsonValue] = {"kernels": early.height, "greatest_lead_ns": int(lead), "names": [*names]}
    yield Finding("causality", "warning", message, attribution.rank, evidence)


def _before_first_launch(rows: pl.DataFrame, launches: pl.DataFrame) -> int | None:
    first = launches["start_ns"].min()
    return None if first is None else rows.filter(pl.col("start_ns") < first).height


def _after_last_record(lost: pl.DataFrame, launches: pl.DataFrame) -> int:
    last = launches.filter(pl.col("device_rows") > 0)["start_ns"].max()
    return lost.height if last is None else lost.filter(pl.col("start_ns") > last).height


def _place(early: int | None, orphans: int) -> str:
    if early is None:
        return "no launch call is on record at all"
    if early == orphans:
        return "all of them start before the first launch on record"
    return f"{early} of them start before the first launch on record"
