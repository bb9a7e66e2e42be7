"""A rank's timeline in figures: medians over its steady iterations, and what stands out."""

from __future__ import annotations

import polars as pl

from moeprof.analyzers.medians import median
from moeprof.analyzers.results import Spread
from moeprof.analyzers.tables import PHASES, Attribution
from moeprof.analyzers.timeline.chain import median_chain
from moeprof.analyzers.timeline.host import latencies
from moeprof.analyzers.timeline.results import HostCalls, Part, PhaseTimeline, RankTimeline, Regime
from moeprof.analyzers.timeline.tables import BOUNDS, STATES
from moeprof.analyzers.timeline.tabulate import tabulate
from moeprof.analyzers.timeline.unrest import distribution, drift, outliers
from moeprof.analyzers.times import spread
from moeprof.traces.trace import RankTrace


def rank_timeline(rank: RankTrace, attribution: Attribution, waits: pl.DataFrame | None = None) -> RankTimeline:
    """Return where the wall time of a rank's iterations went.

    Args:
        rank: The rank.
        attribution: Its iterations and launches.
        waits: When the last rank had come to a collective, as `moeprof.analyzers.timeline.tabulate.tabulate` takes it.
    """
    tables, ordered = tabulate(rank, attribution, waits)
    steady = tables.per_iteration.filter("counted", ~pl.col("transient"))
    regimes = _regimes(tables.per_iteration)
    alike = _largest(steady)
    walls: list[int] = alike["wall_ns"].to_list()
    return RankTimeline(
        iterations=steady.height,
        wall_ns=spread(steady["wall_ns"]),
        states=_shares(steady, STATES, "{}_ns"),
        wait_ns=spread(steady["wait_ns"]) if waits is not None else None,
        overlapped_ns=spread(steady["overlapped_ns"]),
        bounds=_shares(steady, BOUNDS, "bound_{}_ns"),
        phases=_phases(ordered, tables.parts, steady),
        host=_host(steady),
        chain=median_chain(tables.pieces, steady),
        regimes=regimes,
        distribution=distribution(walls),
        drift=drift(walls),
        outliers=outliers(alike, tables.parts),
        tables=tables,
    )


def _shares(steady: pl.DataFrame, names: tuple[str, ...], column: str) -> tuple[Part, ...]:
    total = int(steady["wall_ns"].sum())
    parts = []
    for name in names:
        values = steady[column.format(name)]
        found = spread(values)
        if found is not None and total:
            parts.append(Part(name, found, int(values.sum()) / total))
    return tuple(parts)


def _largest(steady: pl.DataFrame) -> pl.DataFrame:
    """Return the iterations with the commonest batch: only like is held against like."""
    keys = ["kind", "requests", "tokens"]
    counts = steady.group_by(keys).len().sort("len", *keys, descending=[True, False, False, False]).head(1)
    return steady.join(counts, on=keys, how="semi", nulls_equal=True, maintain_order="left")


def _regimes(table: pl.DataFrame) -> tuple[Regime, ...]:
    """Return the batches that were run, those of complete iterations, most frequent first."""
    keys = ["kind", "requests", "tokens"]
    groups = (
        table.filter(~pl.col("transient"))
        .group_by(keys)
        .agg(pl.len(), pl.col("wall_ns"), pl.col("generated").first())
        .sort("len", *keys, descending=[True, False, False, False], nulls_last=True)
    )
    found = []
    for kind, requests, tokens, count, walls, generated in groups.iter_rows():
        wall = Spread(median(walls) or 0, min(walls), max(walls))
        per = wall.median / tokens if tokens else None
        found.append(Regime(kind, requests, tokens, count, wall, per, wall.median / generated if generated else None))
    return tuple(found)


def _phases(ordered: pl.DataFrame, parts: pl.DataFrame, steady: pl.DataFrame) -> tuple[PhaseTimeline, ...]:
    """Return the time and the launches of each phase in steady iterations."""
    spent = _phase_states(parts, steady)
    calls = latencies(ordered).join(steady.select("iteration"), on="iteration", how="semi")
    found = []
    for phase in PHASES:
        own = calls.filter(pl.col("phase") == phase)
        if own.is_empty():
            continue
        each = own.group_by("iteration").agg(
            pl.len().alias("calls"), pl.col("is_graph").sum().alias("graphs"), pl.col("call_ns").sum()
        )
        found.append(
            PhaseTimeline(
                phase=phase,
                states=spent.get(phase, {}),
                calls=median(each["calls"].to_list()) or 0,
                graph_launches=median(each["graphs"].to_list()) or 0,
                call_ns=median(each["call_ns"].drop_nulls().to_list()) or 0,
                latency_ns=spread(own.filter(~pl.col("queued"))["latency_ns"]),
                queued_share=int(own["queued"].sum()) / own.height,
            )
        )
    return tuple(found)


def _phase_states(parts: pl.DataFrame, steady: pl.DataFrame) -> dict[str, dict[str, int]]:
    """Return the median time of each state by phase, an iteration without it as 0."""
    own = parts.join(steady.select("iteration"), on="iteration", how="semi")
    each = own.group_by("phase", "state", "iteration").agg(pl.col("length_ns").sum())
    found: dict[str, dict[str, int]] = {}
    for phase, state, lengths in each.group_by("phase", "state").agg("length_ns").sort("phase", "state").iter_rows():
        middle = median([*lengths, *[0] * (steady.height - len(lengths))])
        if phase is not None and middle:
            found.setdefault(phase, {})[state] = middle
    return found


def _host(steady: pl.DataFrame) -> HostCalls | None:
    if steady.is_empty():
        return None
    return HostCalls(
        launch_calls=median(steady["launch_calls"].to_list()) or 0,
        graph_launches=median(steady["graph_launches"].to_list()) or 0,
        launch_time_ns=median(steady["launch_time_ns"].to_list()) or 0,
        sync_calls=median(steady["sync_calls"].to_list()) or 0,
        sync_time_ns=median(steady["sync_time_ns"].to_list()) or 0,
    )
