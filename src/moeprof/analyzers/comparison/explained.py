"""Explain the difference of wall times of two arms: the waterfall, and causes on the host's side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from moeprof.analyzers.medians import median
from moeprof.analyzers.results import Diff, Report
from moeprof.analyzers.timeline.results import RankTimeline, Tables, Waterfall
from moeprof.findings import Finding, JsonValue, in_order
from moeprof.wording import duration, percent, plural


def with_waterfall(diff: Diff, base: Report, candidate: Report) -> Diff:
    """Return the diff with the waterfall and what the timelines tell; as it is where a side has no timeline.

    Args:
        diff: The comparison of the two reports.
        base: One side, reported on with its timeline.
        candidate: The other.
    """
    from moeprof.analyzers.timeline.waterfall import waterfall

    before, after = _timelines(base), _timelines(candidate)
    if not before or not after:
        return diff
    found = waterfall(_tables(before), _tables(after))
    more = [*_batches(before, after, found), *_graphs(before, after), *_synchronisations(before, after)]
    return replace(diff, waterfall=found, findings=in_order([*diff.findings, *more]))


def _timelines(report: Report) -> list[RankTimeline]:
    return [rank.timeline for rank in report.ranks if rank.timeline is not None and rank.timeline.iterations]


def _tables(ranks: list[RankTimeline]) -> list[Tables]:
    return [rank.tables for rank in ranks if rank.tables is not None]


def _batches(before: list[RankTimeline], after: list[RankTimeline], found: Waterfall | None) -> Iterator[Finding]:
    """Tell of batches that only one arm ran: only equal ones are held against each other."""
    sides = [{_batch(regime) for rank in ranks for regime in rank.regimes} for ranks in (before, after)]
    alone = sorted(sides[0] ^ sides[1])
    if not alone:
        return
    tokens = [_per_token(ranks) for ranks in (before, after)]
    rest = (
        "no batch was run by both, so wall times are not explained" if found is None else "only equal ones are compared"
    )
    if found is None and tokens[0] is not None and tokens[1] is not None:
        rest += f"; per scheduled token {duration(tokens[0])} and {duration(tokens[1])}"
    message = f"{plural(len(alone), 'batch', 'batches')} of one arm only ({', '.join(alone[:3])}): {rest}"
    evidence: dict[str, JsonValue] = {
        "base": [*sorted(sides[0])],
        "candidate": [*sorted(sides[1])],
        "base_per_scheduled_token_ns": tokens[0],
        "candidate_per_scheduled_token_ns": tokens[1],
    }
    yield Finding("batches-differ", "warning" if found is None else "note", message, None, evidence)


def _batch(regime: object) -> str:
    kind, requests, tokens = (getattr(regime, name) for name in ("kind", "requests", "tokens"))
    size = "" if requests is None else f" of {requests} requests"
    return f"{kind or 'iterations'}{size}{'' if tokens is None else f' and {tokens} tokens'}"


def _per_token(ranks: list[RankTimeline]) -> int | None:
    values = [rank.regimes[0].per_scheduled_token_ns for rank in ranks if rank.regimes]
    return median([round(value) for value in values if value is not None])


def _graphs(before: list[RankTimeline], after: list[RankTimeline]) -> Iterator[Finding]:
    graphs, calls = _host(before, after, "graph_launches"), _host(before, after, "launch_calls")
    if not graphs[0] > graphs[1] or not calls[1] > calls[0]:
        return
    shares = [_host_share(ranks) for ranks in (before, after)]
    message = (
        f"CUDA graphs were lost: graph launches per iteration {graphs[0]} -> {graphs[1]}, launch calls {calls[0]} -> {calls[1]};"
        f" the host bounds {percent(shares[0])} -> {percent(shares[1])} of the wall time"
    )
    evidence: dict[str, JsonValue] = {
        "graph_launches": [*graphs],
        "launch_calls": [*calls],
        "host_share": [round(share, 6) for share in shares],
    }
    yield Finding("graphs-lost", "warning", message, None, evidence)


def _synchronisations(before: list[RankTimeline], after: list[RankTimeline]) -> Iterator[Finding]:
    calls = _host(before, after, "sync_calls")
    if calls[0] >= calls[1]:
        return
    idle = [_state(ranks, "host_sync") for ranks in (before, after)]
    message = (
        f"synchronisations were added: {calls[0]} -> {calls[1]} per iteration; the device idles after them for"
        f" {duration(idle[0])} -> {duration(idle[1])}"
    )
    evidence: dict[str, JsonValue] = {"sync_calls": [*calls], "host_sync_ns": [*idle]}
    yield Finding("synchronisation-added", "warning", message, None, evidence)


def _host(before: list[RankTimeline], after: list[RankTimeline], figure: str) -> tuple[int, int]:
    """Return a figure of the host's calls on both sides: the median over ranks."""
    first, second = (
        median([int(getattr(rank.host, figure)) for rank in ranks if rank.host is not None]) or 0
        for ranks in (before, after)
    )
    return first, second


def _host_share(ranks: list[RankTimeline]) -> float:
    shares = [sum(part.share for part in rank.bounds if part.state in ("host", "launch")) for rank in ranks]
    return sum(shares) / len(shares)


def _state(ranks: list[RankTimeline], state: str) -> int:
    return median([part.ns.median for rank in ranks for part in rank.states if part.state == state]) or 0
