"""Ranks side by side: whether their figures agree, and how far apart they arrive at and leave their collectives.

Collectives are matched by iteration and order, never by an id of one file, and their times are made absolute with each
rank's base time first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TypeAlias

import polars as pl

from moeprof.analyzers.results import AcrossRanks, AgRsPairs, GemmPairs, RankDifference, RankReport, Skew
from moeprof.analyzers.tables import Attribution
from moeprof.analyzers.times import spread
from moeprof.findings import Finding, JsonValue
from moeprof.wording import duration, plural

#: Base time in Unix ns, whether the file states it, and the attribution of the rank.
RankTimes: TypeAlias = tuple[int, bool, Attribution]
_Figures: TypeAlias = dict[str, JsonValue]

_MATCHED = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast", "reduce")
_NAMED = 3  # figures that a message spells out
_APART_NS = 1_000_000_000


def across_ranks(
    reports: tuple[RankReport, ...], traces: Mapping[str | None, RankTimes]
) -> tuple[AcrossRanks, tuple[Finding, ...]]:
    """Compare the ranks of one capture.

    Args:
        reports: The ranks' reports, in order.
        traces: Per rank key: base time, whether it is known, attribution.

    Returns:
        The comparison (``agree`` and ``skew`` are None for a single rank), and what was found on the way.
    """
    ranks = tuple(report.rank for report in reports)
    if len(reports) < 2:
        return AcrossRanks(ranks, None, (), None), ()
    differences = _differences(reports)
    skew, findings = _skew({_label(rank): traces[rank] for rank in ranks if rank in traces})
    return AcrossRanks(ranks, not differences, differences, skew), (*_ranks_differ(differences), *findings)


def _differences(reports: tuple[RankReport, ...]) -> tuple[RankDifference, ...]:
    has_iterations = any(report.iterations.total for report in reports)
    by_rank = {_label(report.rank): _figures(report, has_iterations) for report in reports}
    names = dict.fromkeys(name for figures in by_rank.values() for name in figures)
    found = []
    for name in names:
        # A class that a rank does not list was not launched there; without iterations there is no count of it at all.
        values = {rank: figures.get(name, _absent(name, figures)) for rank, figures in by_rank.items()}
        first, *rest = values.values()
        if any(value != first for value in rest):
            found.append(RankDifference(name, values))
    return tuple(found)


def _figures(report: RankReport, has_iterations: bool) -> _Figures:
    """Return what must be the same on all ranks: per iteration where there are iterations, else over the window."""
    figures: _Figures = {"iterations.total": report.iterations.total, "counts_over": report.counts_over}
    for count in report.counts:
        value = count.per_iteration if has_iterations else count.total
        figures[f"counts.{count.class_}.{count.phase}"] = value
    pairs: tuple[tuple[str, AgRsPairs | GemmPairs], ...] = (
        ("ag_rs", report.pairs.ag_rs),
        ("moe_gemm", report.pairs.moe_gemm),
    )
    for kind, pair in pairs:
        for field in fields(pair):
            if field.name != "constant" and (field.name == "total") != has_iterations:
                figures[f"pairs.{kind}.{field.name}"] = getattr(pair, field.name)
    return figures


def _absent(name: str, figures: _Figures) -> JsonValue:
    return 0 if name.startswith("counts.") and figures["counts_over"] is not None else None


def _ranks_differ(differences: tuple[RankDifference, ...]) -> Iterator[Finding]:
    if not differences:
        return
    listed = "; ".join(
        f"{difference.what} " + ", ".join(f"{rank}: {_shown(value)}" for rank, value in difference.values.items())
        for difference in differences[:_NAMED]
    )
    more = f"; and {len(differences) - _NAMED} more" if len(differences) > _NAMED else ""
    message = f"the ranks differ in {plural(len(differences), 'figure')}: {listed}{more}"
    evidence: dict[str, JsonValue] = {difference.what: dict(difference.values) for difference in differences}
    yield Finding("ranks-differ", "warning", message, None, {"differences": evidence})


def _skew(traces: Mapping[str, RankTimes]) -> tuple[Skew | None, tuple[Finding, ...]]:
    collectives = _collectives(traces)
    if collectives.is_empty() or len(traces) < 2:
        return None, ()
    unknown: list[JsonValue] = [rank for rank, (_, known, _) in traces.items() if not known]
    if unknown:
        message = (
            f"{len(unknown)} of {len(traces)} ranks do not state their base time: arrivals at collectives cannot be"
            " compared"
        )
        return None, (Finding("base-time-unknown", "warning", message, None, {"ranks": unknown}),)
    matched = _matched(collectives, traces)
    starts, ends = pl.col("start_ns"), pl.col("end_ns")
    spans = matched.group_by("collective").agg(
        (starts.max() - starts.min()).alias("arrival_ns"), (ends.max() - ends.min()).alias("end_ns")
    )
    arrival, end = spread(spans["arrival_ns"]), spread(spans["end_ns"])
    if arrival is None or end is None:
        return None, ()
    skew = Skew(spans.height, arrival, end, _last_arrivals(matched, tuple(traces)))
    if end.median <= _APART_NS:
        return skew, ()
    message = (
        f"the ranks end the same collectives {duration(end.median)} apart (median of {spans.height}): their clocks,"
        " or what was matched, cannot be compared"
    )
    evidence: dict[str, JsonValue] = {"matched": spans.height, "median_end_spread_ns": end.median}
    return skew, (Finding("clocks-apart", "warning", message, None, evidence),)


def _collectives(traces: Mapping[str, RankTimes]) -> pl.DataFrame:
    """Return the device collectives of all ranks in absolute time, by rank and start."""
    frames = [
        attribution.launches.filter((pl.col("activity") == "kernel") & pl.col("class").is_in(_MATCHED))
        .sort("start_ns", "event")
        .select(
            pl.lit(rank).alias("rank"),
            "class",
            "phase",
            "iteration",
            pl.col("start_ns") + base_time_ns,
            pl.col("end_ns") + base_time_ns,
        )
        for rank, (base_time_ns, _, attribution) in traces.items()
    ]
    return pl.concat(frames)


def _matched(collectives: pl.DataFrame, traces: Mapping[str, RankTimes]) -> pl.DataFrame:
    """Give the collectives that all ranks have in equal number a common ``collective`` id; leave out the rest.

    Where the ranks have as many iterations, the number must agree within iteration, phase and class; else within the
    class over the whole window.
    """
    totals = {attribution.iterations.height for _, _, attribution in traces.values()}
    group = ["iteration", "phase", "class"] if len(totals) == 1 and totals != {0} else ["class"]
    counts = collectives.group_by(*group, "rank").len()
    agreeing = (
        counts.group_by(group)
        .agg((pl.len() == len(traces)).alias("everywhere"), (pl.col("len").n_unique() == 1).alias("equal"))
        .filter(pl.col("everywhere") & pl.col("equal"))
    )
    return (
        collectives.join(agreeing.select(group), on=group, how="semi", nulls_equal=True, maintain_order="left")
        .with_columns(pl.int_range(pl.len()).over(*group, "rank").alias("order"))
        .with_columns(pl.struct(*group, "order").rank("dense").alias("collective"))
    )


def _last_arrivals(matched: pl.DataFrame, ranks: tuple[str, ...]) -> dict[str, int]:
    """Count how often each rank came last; ranks that came last together each count, all at once nobody."""
    latest, earliest = pl.col("start_ns").max().over("collective"), pl.col("start_ns").min().over("collective")
    last = matched.filter((pl.col("start_ns") == latest) & (latest > earliest))
    counts = dict(last.group_by("rank").len().iter_rows())
    return {rank: int(counts.get(rank, 0)) for rank in ranks}


def _label(rank: str | None) -> str:
    return "unknown" if rank is None else rank


def _shown(value: JsonValue) -> str:
    return "no data" if value is None else str(value)
