"""Attribute every launch to the iteration that launched it, with class and phase."""

from __future__ import annotations

import polars as pl

from moeprof.analyzers import completeness, operators
from moeprof.analyzers.classify import Classifier
from moeprof.analyzers.markers import (
    Family,
    FoundMarkers,
    MarkerChoice,
    find_markers,
    last_is_whole,
    marker_rules,
)
from moeprof.analyzers.phases import with_phases
from moeprof.analyzers.refine import refine
from moeprof.analyzers.tables import ACTIVITY, ATTRIBUTED, CLASS, ITERATIONS, KIND, Attribution
from moeprof.findings import Finding, JsonValue
from moeprof.traces.trace import RankTrace
from moeprof.wording import duration


def attribute(rank: RankTrace, *, classifier: Classifier, choice: MarkerChoice | None = None) -> Attribution:
    """Return the iterations of a rank and its launches with class, iteration and phase.

    A launch belongs to the iteration in which its launch call started: at or after the marker's start, before the
    next marker's start, on the thread that carries the markers (for training steps: on any thread of its process).

    Args:
        rank: One rank.
        classifier: Rules for names and NCCL metadata.
        choice: A user's own marker, or a family by name.
    """
    choice = choice or MarkerChoice()
    cpu_only = operators.is_cpu_only(rank)
    launches = _operator_rows(rank, classifier) if cpu_only else _device_rows(rank, classifier)
    found = find_markers(rank, choice)
    findings = list(found.findings)
    if found.family is None and choice.family in (None, "anchor"):
        found = _anchors(launches) or found
    iterations = _iterations(found.markers)
    tracks = _owned_tracks(found, rank)
    launches = _with_iteration(launches, iterations, tracks)
    calls = _with_iteration(rank.launches.with_columns(pl.col("start_ns").alias("launch_start_ns")), iterations, tracks)
    iterations = completeness.mark(
        iterations, launches, calls, cpu_only=cpu_only, last_is_whole=last_is_whole(found, rank)
    )
    launches = refine(with_phases(launches, iterations, rank, found.family))
    if found.family is not None:
        findings += _elsewhere(launches, tracks, rank)
    else:
        findings.append(_none_found(rank))
    findings += _partial(iterations, rank) + _transient(completeness.start_transient(iterations, launches), rank)
    return Attribution(
        rank=rank.key,
        family=found.family.name if found.family else None,
        cpu_only=cpu_only,
        counts_over=completeness.counts_over(iterations) if found.family else None,
        iterations=iterations.select(list(ITERATIONS)),
        launches=launches.select(list(ATTRIBUTED)).sort("start_ns", "event"),
        findings=tuple(findings),
    )


def _device_rows(rank: RankTrace, classifier: Classifier) -> pl.DataFrame:
    names = rank.kernels["name"].unique().cast(pl.String).to_list()
    rows = rank.kernels.select(
        "event",
        pl.col("name").cast(pl.String),
        pl.col("activity").cast(pl.String).cast(ACTIVITY),
        "device",
        "stream",
        "start_ns",
        "end_ns",
        "duration_ns",
        "launch",
    ).join(
        rank.launches.select("launch", "track", pl.col("start_ns").alias("launch_start_ns")),
        on="launch",
        how="left",
        maintain_order="left",
    )
    rows = rows.join(classifier.names(names), on="name", how="left", maintain_order="left")
    activity = pl.col("activity").cast(pl.String)
    rows = rows.with_columns(
        pl.when(activity == "kernel")
        .then("class")
        .when(activity == "graph")
        .then(pl.lit("other", dtype=CLASS))
        .otherwise(activity.cast(CLASS, strict=False))
        .alias("class"),
        pl.when(activity == "kernel").then("gemms").otherwise(0).cast(pl.Int32).alias("gemms"),
    )
    return _with_collective_class(rows, rank, classifier).sort("start_ns", "event")


def _operator_rows(rank: RankTrace, classifier: Classifier) -> pl.DataFrame:
    classes = classifier.names(operators.operator_names(rank))
    rows = operators.operator_launches(rank, classes).with_columns(
        pl.lit("operator", dtype=ACTIVITY).alias("activity"),
        pl.lit(None, dtype=pl.Int64).alias("device"),
        pl.lit(None, dtype=pl.Int64).alias("stream"),
        pl.lit(None, dtype=pl.UInt32).alias("launch"),
        pl.col("start_ns").alias("launch_start_ns"),
    )
    rows = rows.join(classes, on="name", how="left", maintain_order="left")
    return _with_collective_class(rows, rank, classifier).sort("start_ns", "event")


def _with_collective_class(rows: pl.DataFrame, rank: RankTrace, classifier: Classifier) -> pl.DataFrame:
    """NCCL metadata beats a name."""
    if rank.collectives.is_empty():
        return rows
    names = rank.collectives["collective"].drop_nulls().unique().to_list()
    told = pl.DataFrame(
        [(name, classifier.collective(name)) for name in names],
        schema={"collective": pl.String, "told": CLASS},
        orient="row",
    )
    by_event = rank.collectives.join(told, on="collective", how="inner").select("event", "told")
    joined = rows.join(by_event, on="event", how="left", maintain_order="left")
    return joined.with_columns(
        pl.coalesce("told", "class").alias("class"),
        pl.when(pl.col("told").is_null()).then("gemms").otherwise(0).cast(pl.Int32).alias("gemms"),
    ).drop("told")


def _anchors(launches: pl.DataFrame) -> FoundMarkers | None:
    """Mark iterations by the launch calls of a kernel that each has once, where nothing else marks them; None below two."""
    names = launches["name"].unique().to_list()
    for pattern in marker_rules().anchors:
        matching = [name for name in names if pattern.search(name)]
        # A graph may hold the anchor several times; its replay is one launch.
        rows = (
            launches.filter(pl.col("name").is_in(matching), pl.col("launch_start_ns").is_not_null())
            .sort("launch_start_ns", "track", "name")
            .unique(["track", "launch_start_ns"], keep="first", maintain_order=True)
        )
        if matching and len(rows) > 1:
            markers = rows.select(
                pl.col("name").alias("label"),
                pl.lit(None, dtype=pl.String).alias("number"),
                pl.lit(None, dtype=KIND).alias("kind"),
                "track",
                pl.col("launch_start_ns").alias("start_ns"),
                pl.col("launch_start_ns").alias("end_ns"),
            )
            return FoundMarkers(Family("anchor", pattern, forward=False, threads="process"), markers.sort("start_ns"))
    return None


def _iterations(markers: pl.DataFrame) -> pl.DataFrame:
    return markers.sort("start_ns", "end_ns", "label", nulls_last=True).select(
        pl.int_range(pl.len(), dtype=pl.Int32).alias("iteration"),
        "label",
        "kind",
        "start_ns",
        pl.col("end_ns").alias("marker_end_ns"),
        pl.col("start_ns").shift(-1).alias("next_start_ns"),
        "track",
    )


def _owned_tracks(found: FoundMarkers, rank: RankTrace) -> list[int]:
    """Return the threads whose launches an iteration owns."""
    if found.family is None:
        return []
    own: list[int] = found.markers["track"].unique().to_list()
    if found.family.threads == "own":
        return own
    processes = rank.tracks.filter(pl.col("track").is_in(own))["process"].unique()
    tracks: list[int] = rank.tracks.filter(pl.col("process").is_in(processes.to_list()))["track"].to_list()
    return tracks


def _with_iteration(rows: pl.DataFrame, iterations: pl.DataFrame, tracks: list[int]) -> pl.DataFrame:
    """Add ``iteration``: that of the latest marker that started at or before the launch call."""
    if iterations.is_empty():
        return rows.with_columns(pl.lit(None, dtype=pl.Int32).alias("iteration"))
    starts = iterations.select("iteration", pl.col("start_ns").alias("begin_ns")).sort("begin_ns")
    owned = (
        rows.filter(pl.col("track").is_in(tracks), pl.col("launch_start_ns").is_not_null())
        .select("event", "launch_start_ns")
        .sort("launch_start_ns")
        .join_asof(starts, left_on="launch_start_ns", right_on="begin_ns", strategy="backward")
        .select("event", "iteration")
    )
    return rows.join(owned, on="event", how="left", maintain_order="left")


def _none_found(rank: RankTrace) -> Finding:
    seen = rank.markers.group_by("name").len().sort("len", "name", descending=[True, False])
    evidence = {str(name): int(count) for name, count in seen.head(20).iter_rows()}
    annotations = f"annotations seen: {', '.join(list(evidence)[:5])}" if evidence else "the trace holds no annotation"
    return Finding(
        "no-iterations",
        "warning",
        f"iterations: none found, so nothing is given per iteration ({annotations}); --marker REGEX names your own",
        rank.key,
        {"annotations": dict(evidence)},
    )


def _elsewhere(launches: pl.DataFrame, tracks: list[int], rank: RankTrace) -> list[Finding]:
    other = launches.filter(pl.col("track").is_not_null() & ~pl.col("track").is_in(tracks))
    if other.is_empty():
        return []
    message = f"{len(other)} launches come from threads that carry no marker: they belong to no iteration"
    return [Finding("launched-by-other-threads", "note", message, rank.key, {"launches": len(other)})]


def _partial(iterations: pl.DataFrame, rank: RankTrace) -> list[Finding]:
    partial = iterations.filter("partial")
    if partial.is_empty():
        return []
    reasons = {str(number): str(reason) for number, reason in partial.select("iteration", "partial_reason").iter_rows()}
    first = next(iter(reasons.items()))
    message = (
        f"{len(reasons)} of {len(iterations)} iterations are partial and left out of counts and times "
        f"(iteration {first[0]}: {first[1]})"
    )
    return [Finding("partial-iterations", "warning", message, rank.key, {"iterations": dict(reasons)})]


def _transient(found: completeness.StartTransient | None, rank: RankTrace) -> list[Finding]:
    if found is None:
        return []
    what = {"wall": "lasts", "kernel_sum": "has a kernel sum of"}[found.figure]
    message = (
        f"iteration {found.iteration} is a start transient: it {what} {duration(found.value_ns)}, the others "
        f"{duration(found.median_of_others_ns)} in the median; it stays in counts and leaves the medians of times"
    )
    evidence: dict[str, JsonValue] = {
        "figure": found.figure,
        "value_ns": found.value_ns,
        "median_of_others_ns": found.median_of_others_ns,
    }
    return [Finding("start-transient", "note", message, rank.key, evidence)]
