"""Put the analyzers together: a trace becomes a `Report`."""

from __future__ import annotations

import os
from dataclasses import replace

import polars as pl

from moeprof import findings as findings_module
from moeprof.analyzers import across_ranks, counts, pairs, quality, times
from moeprof.analyzers.classify import load_classifier
from moeprof.analyzers.iterations import attribute
from moeprof.analyzers.layers.findings import layer_findings
from moeprof.analyzers.layers.sequences import sequences
from moeprof.analyzers.layers.structure import layer_rows
from moeprof.analyzers.markers import MarkerChoice
from moeprof.analyzers.results import Coverage, RankReport, Report, Subject
from moeprof.analyzers.series import Series, iteration_times, kernel_times
from moeprof.analyzers.tables import Attribution
from moeprof.analyzers.timing import timing
from moeprof.findings import Finding
from moeprof.traces.trace import RankTrace, Trace


def report(
    trace: Trace,
    *,
    rules: str | os.PathLike[str] | None = None,
    marker: str | None = None,
    marker_family: str | None = None,
    timeline: bool = False,
    ranks: bool = False,
) -> Report:
    """Count and time one arm.

    Args:
        trace: A trace.
        rules: A rules file that comes before the package's kernel rules.
        marker: A regular expression for your own iteration markers.
        marker_family: Use this family of markers, whatever else the trace holds.
        timeline: Say also where the wall time of iterations went.
        ranks: Say also who waits for whom, and whose work takes longer.

    Raises:
        MoeprofError: An option makes no sense.
    """
    classifier = load_classifier(rules)
    choice = MarkerChoice(marker, marker_family)
    found: list[Finding] = list(trace.findings)
    reports: list[RankReport] = []
    attributions: dict[str | None, tuple[int, bool, Attribution]] = {}
    for rank in trace:
        attribution = attribute(rank, classifier=classifier, choice=choice)
        reports.append(_rank_report(rank, attribution))
        attributions[rank.key] = (rank.metadata.base_time_ns, rank.metadata.base_time_known, attribution)
        found += rank.findings
        found += attribution.findings
        found += counts.counts_findings(attribution)
        found += pairs.pair_findings(attribution)
        found += quality.quality_findings(rank, attribution)
        found += layer_findings(reports[-1].layers, rank.key)
    across, more = across_ranks.across_ranks(tuple(reports), attributions)
    found += more
    if timeline or ranks:
        pairs_of = [(rank, attributions[rank.key][2]) for rank in trace]
        timed = timing(pairs_of, timeline=timeline, ranks_too=ranks)
        reports = [replace(one, timeline=own) for one, own in zip(reports, timed.timelines, strict=True)]
        across = replace(across, collectives=timed.collectives)
        found += timed.findings
    return Report(
        subject=Subject(arm=trace.arm, source=trace.source),
        ranks=tuple(reports),
        across_ranks=across,
        findings=tuple(sorted(found, key=findings_module.order)),
    )


def _rank_report(rank: RankTrace, attribution: Attribution) -> RankReport:
    series = Series(iteration_times(attribution), kernel_times(attribution))
    return RankReport(
        rank=rank.key,
        source=rank.source,
        device=_device(rank),
        launch_unit="operator" if attribution.cpu_only else "kernel",
        iterations=counts.iteration_counts(attribution),
        counts_over=attribution.counts_over,
        counts=counts.class_counts(attribution),
        kernels=counts.kernel_counts(attribution, series.kernels),
        pairs=pairs.pairs(attribution),
        time_ns=times.time_totals(attribution.launches),
        per_iteration_ns=times.per_iteration_times(series.times),
        layers=layer_rows(sequences(attribution, rank.kernels.select("event", "graph_node_id"))),
        coverage=_coverage(rank, attribution),
        series=series,
    )


def _device(rank: RankTrace) -> str | None:
    """Return the name of the device that did the work, or of all of them where they differ."""
    used = rank.kernels["device"].drop_nulls().unique().sort().to_list()
    names = sorted({rank.metadata.devices[index] for index in used if rank.metadata.devices.get(index)})
    return ", ".join(names) or None


def _coverage(rank: RankTrace, attribution: Attribution) -> Coverage:
    launches = attribution.launches
    kernels = launches.filter(pl.col("activity") == "kernel")
    units = launches if attribution.cpu_only else kernels
    other = units.filter(pl.col("class") == "other")
    total_ns = int(units["duration_ns"].sum())
    return Coverage(
        kernels=len(kernels),
        linked=int(kernels["launch"].is_not_null().sum()),
        unlinked=int(kernels["launch"].is_null().sum()),
        outside_iterations=int(kernels["iteration"].is_null().sum()) if attribution.family else None,
        unclassified_launches=len(other),
        unclassified_time_share=int(other["duration_ns"].sum()) / total_ns if total_ns else None,
        invalid=len(rank.invalid),
        graph_replays=int((launches["activity"] == "graph").sum()),
    )
