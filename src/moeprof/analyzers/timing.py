"""Timelines of all ranks together: a rank's waits are known only beside the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moeprof.analyzers.collectives.compare import compare_ranks
from moeprof.analyzers.collectives.findings import collective_findings
from moeprof.analyzers.collectives.results import Collectives
from moeprof.analyzers.tables import Attribution
from moeprof.analyzers.timeline.findings import timeline_findings
from moeprof.analyzers.timeline.results import RankTimeline
from moeprof.analyzers.timeline.summary import rank_timeline
from moeprof.findings import Finding
from moeprof.traces.trace import RankTrace


@dataclass(frozen=True, slots=True)
class Timing:
    """The timelines in the order of the ranks, what their collectives tell, and what was found. None: not asked for."""

    timelines: tuple[RankTimeline | None, ...]
    collectives: Collectives | None
    findings: tuple[Finding, ...]


def timing(ranks: Sequence[tuple[RankTrace, Attribution]], *, timeline: bool, ranks_too: bool) -> Timing:
    """Return the timelines of ranks and the comparison of their collectives.

    Args:
        ranks: Each rank with its attribution.
        timeline: Whether timelines are wanted.
        ranks_too: Whether the comparison is wanted.
    """
    compared, waits = compare_ranks({label(rank.key): (rank, found) for rank, found in ranks})
    timelines = tuple(
        rank_timeline(rank, found, waits.get(label(rank.key))) if timeline else None for rank, found in ranks
    )
    findings: list[Finding] = []
    for (rank, _), own in zip(ranks, timelines, strict=True):
        findings += timeline_findings(rank.key, own) if own is not None else []
    if compared is not None and ranks_too:
        findings += collective_findings(compared, {label(rank.key): found for rank, found in ranks})
    return Timing(timelines, compared if ranks_too else None, tuple(findings))


def label(key: str | None) -> str:
    """Return how results name a rank."""
    return "unknown" if key is None else key
