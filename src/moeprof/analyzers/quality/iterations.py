"""Quality of iterations: those that deviate, graph replays that differ, work outside, profiler cost inside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from moeprof.analyzers.commonest import commonest, commonest_of
from moeprof.analyzers.quality.names import FIRST
from moeprof.analyzers.tables import Attribution
from moeprof.findings import Finding, JsonValue, Severity
from moeprof.traces.trace import RankTrace
from moeprof.wording import duration, functions, listed, percent, plural

_NAMES = 10  # kernel names that the evidence of one iteration lists


def iterations_that_deviate(rank_trace: RankTrace, attribution: Attribution) -> Iterator[Finding]:
    """Tell which counted iterations have another number of kernels than most, and whether a record was lost.

    A kernel that is gone together with its launch was never launched: a note. Anything else is a warning.
    """
    figures = _figures(rank_trace, attribution)
    if figures.is_empty():
        return
    usual = {column: commonest_of(figures[column].to_list()) or 0 for column in ("kernels", "graph_kernels", "calls")}
    deviating = figures.filter(pl.col("kernels") != usual["kernels"])
    if deviating.is_empty():
        return
    names = _differing_names(attribution, figures, usual["kernels"])
    explained = (pl.col("graph_kernels") == usual["graph_kernels"]) & (
        pl.col("kernels") - usual["kernels"] == pl.col("calls") - usual["calls"]
    )
    severities: tuple[tuple[Severity, pl.DataFrame], ...] = (
        ("note", deviating.filter(explained)),
        ("warning", deviating.filter(~explained)),
    )
    for severity, rows in severities:
        if rows.is_empty():
            continue
        cases = [_case(row, usual, names) for row in rows.to_dicts()]
        more = f"; and {len(cases) - FIRST} more" if len(cases) > FIRST else ""
        message = "; ".join(_sentence(case) for case in cases[:FIRST]) + more
        evidence: dict[str, JsonValue] = {"iterations": [*cases], "usual_kernels": usual["kernels"]}
        yield Finding("iteration-deviates", severity, message, attribution.rank, evidence)


def graph_replays_that_differ(rank_trace: RankTrace, attribution: Attribution) -> Iterator[Finding]:
    """Warn of graph replays with other kernel counts than those at the same place of iterations with the same label."""
    replays = (
        host_calls(rank_trace, attribution)
        .filter(pl.col("is_graph") & pl.col("iteration").is_not_null())
        .join(attribution.iterations.select("iteration", "label"), on="iteration", maintain_order="left")
        .sort("iteration", "start_ns", "kernel_rows", "launch")
        .with_columns(
            pl.int_range(pl.len()).over("iteration").alias("position"), pl.len().over("iteration").alias("replays")
        )
        .filter((pl.col("kernel_rows") > 0) & pl.col("label").is_not_null())
        .with_columns(pl.col("kernel_rows").cast(pl.Int64))
    )
    place = ["label", "replays", "position"]
    usual = commonest(replays.rename({"kernel_rows": "value"}), place, None).select(*place, usual="commonest")
    differing = replays.join(usual, on=place).filter(pl.col("kernel_rows") != pl.col("usual"))
    if differing.is_empty():
        return
    columns = ("iteration", "position", "kernel_rows", "usual")
    cases = differing.sort("iteration", "position").select(columns).rename({"kernel_rows": "kernels"}).to_dicts()
    told = "; ".join(
        f"graph launch {case['position']} of iteration {case['iteration']}: {case['kernels']} kernels instead of"
        f" {case['usual']}"
        for case in cases[:FIRST]
    )
    message = f"{plural(len(cases), 'graph replay')} of {replays.height} differ from their like: {told}"
    evidence: dict[str, JsonValue] = {"differing": len(cases), "replays": replays.height, "cases": [*cases]}
    yield Finding("graph-replay-differs", "warning", message, attribution.rank, evidence)


def outside_iterations(rank_trace: RankTrace, attribution: Attribution) -> Iterator[Finding]:
    """Tell the share of kernels (operators on a CPU-only trace) that were launched outside every iteration."""
    if attribution.family is None:
        return
    launches = attribution.launches.filter(pl.col("activity").is_in(["kernel", "operator"]))
    outside = launches.filter(pl.col("iteration").is_null() & pl.col("launch_start_ns").is_not_null())
    if outside.is_empty():
        return
    time, whole = int(outside["duration_ns"].sum()), int(launches["duration_ns"].sum())
    noun = "operator" if attribution.cpu_only else "kernel"
    message = (
        f"{outside.height} of {plural(launches.height, noun)} ({percent(outside.height / launches.height)}, "
        f"{duration(time)}) were launched outside every iteration"
    )
    evidence: dict[str, JsonValue] = {
        "launches": outside.height,
        "of_launches": launches.height,
        "share": outside.height / launches.height,
        "time_ns": time,
        "time_share": time / whole if whole else 0.0,
    }
    yield Finding("outside-iterations", "note", message, attribution.rank, evidence)


def profiler_overhead(rank_trace: RankTrace, attribution: Attribution) -> Iterator[Finding]:
    """Tell the cost of the profiler itself, and which iterations it falls into."""
    events = rank_trace.events.filter(pl.col("category").cast(pl.String) == "overhead")
    events = events.filter(pl.col("start_ns").is_not_null()).with_columns(pl.col("duration_ns").fill_null(0))
    if events.is_empty():
        return
    time = int(events["duration_ns"].sum())
    hit = _iterations_hit(events, attribution)
    numbers: list[int] = hit["iteration"].to_list()
    counted = bool(hit["counted"].any())
    place = (
        f"within {plural(len(numbers), 'iteration')} ({listed(numbers, _NAMES)})"
        if numbers
        else "outside every iteration"
    )
    message = f"{plural(events.height, 'event')} of profiler overhead, {duration(time)} in all, {place}"
    message += ": these last longer than without the profiler" if counted else ""
    evidence: dict[str, JsonValue] = {"events": events.height, "time_ns": time, "iterations": [*numbers]}
    yield Finding("profiler-overhead", "warning" if counted else "note", message, attribution.rank, evidence)


def host_calls(rank_trace: RankTrace, attribution: Attribution) -> pl.DataFrame:
    """Return the launch calls with the iteration they belong to, those without GPU rows included.

    Calls that made a GPU row are where attribution put them; the others go by start and thread.
    """
    known = attribution.launches.filter(pl.col("launch").is_not_null()).select("launch", "iteration")
    spans = attribution.iterations.select("iteration", "track", "start_ns").sort("start_ns")
    known = known.unique("launch", keep="first", maintain_order=True)
    silent = (
        rank_trace.launches.join(known, on="launch", how="anti")
        .sort("start_ns", "launch")
        .join_asof(spans, on="start_ns", by="track", strategy="backward", check_sortedness=False)
    )
    return pl.concat([rank_trace.launches.join(known, on="launch"), silent], how="vertical_relaxed")


def _figures(rank_trace: RankTrace, attribution: Attribution) -> pl.DataFrame:
    """Count per counted iteration: kernels, of these in graphs, launch calls, and calls that left no kernel."""
    counted = attribution.iterations.filter("counted").select("iteration")
    if attribution.family is None or not (attribution.launches["activity"] == "kernel").any():
        return counted.clear()
    graphs = rank_trace.launches.filter("is_graph").select("launch", is_graph=True)
    kernels = (
        attribution.launches.filter(pl.col("activity") == "kernel")
        .join(graphs, on="launch", how="left")
        .group_by("iteration")
        .agg(pl.len().alias("kernels"), pl.col("is_graph").sum().alias("graph_kernels"))
    )
    made = pl.col("is_kernel_launch") | (pl.col("kernel_rows") > 0)
    calls = (
        host_calls(rank_trace, attribution)
        .filter(made)
        .group_by("iteration")
        .agg(pl.len().alias("calls"), (pl.col("kernel_rows") == 0).sum().alias("lost_calls"))
    )
    joined = counted.join(kernels, on="iteration", how="left").join(calls, on="iteration", how="left")
    return joined.with_columns(pl.exclude("iteration").fill_null(0).cast(pl.Int64)).sort("iteration")


def _differing_names(attribution: Attribution, figures: pl.DataFrame, usual: int) -> pl.DataFrame:
    """Return per deviating iteration the kernel names whose count differs from the usual one, and by how much."""
    counts = (
        attribution.launches.filter(pl.col("activity") == "kernel")
        .group_by("iteration", "name")
        .agg(pl.len().cast(pl.Int64).alias("count"))
        .join(figures.select("iteration"), on="iteration", how="semi")
    )
    grid = (
        counts.select(pl.col("name").unique())
        .join(figures.select("iteration", (pl.col("kernels") == usual).alias("is_usual")), how="cross")
        .join(counts, on=["iteration", "name"], how="left")
        .with_columns(pl.col("count").fill_null(0))
    )
    like = grid.filter("is_usual").rename({"count": "value"})
    typical = commonest(like, ["name"], None).select("name", typical="commonest")
    return (
        grid.filter(~pl.col("is_usual"))
        .join(typical, on="name")
        .select("iteration", "name", (pl.col("count") - pl.col("typical")).alias("change"))
        .filter(pl.col("change") != 0)
        .sort("iteration", pl.col("change").abs(), "name", descending=[False, True, False])
    )


def _case(row: Mapping[str, int], usual: Mapping[str, int], names: pl.DataFrame) -> dict[str, JsonValue]:
    changes = names.filter(pl.col("iteration") == row["iteration"]).head(_NAMES).select("name", "change").rows()
    return {
        **row,
        "usual_kernels": usual["kernels"],
        "usual_calls": usual["calls"],
        "missing": {name: -change for name, change in changes if change < 0},
        "extra": {name: change for name, change in changes if change > 0},
        "reason": _reason(row, usual),
    }


def _reason(row: Mapping[str, int], usual: Mapping[str, int]) -> str:
    kernels, calls = row["kernels"] - usual["kernels"], row["calls"] - usual["calls"]
    if row["lost_calls"]:
        return f"{plural(row['lost_calls'], 'launch', 'launches')} on record left no kernel: a lost record"
    if row["graph_kernels"] != usual["graph_kernels"]:
        return "the kernels of its graph launches differ"
    if kernels < 0:
        return (
            "its launch is missing too: a difference, not a loss"
            if calls < 0
            else ("its launch is on record: a lost record")
        )
    return "its launch is on record too" if calls > 0 else "no launch is on record for it"


def _sentence(case: dict[str, JsonValue]) -> str:
    parts = [
        f"{word} " + ", ".join(f"{changes[name]} x {shown}" for name, shown in functions(list(changes)[:FIRST]).items())
        for word, changes in (("without", case["missing"]), ("with", case["extra"]))
        if isinstance(changes, dict) and changes
    ]
    noun = "kernel" if case["kernels"] == 1 else "kernels"
    return (
        f"iteration {case['iteration']} has {case['kernels']} {noun} instead of {case['usual_kernels']}"
        f" ({'; '.join([*parts, str(case['reason'])])})"
    )


def _iterations_hit(events: pl.DataFrame, attribution: Attribution) -> pl.DataFrame:
    """Return the iterations (iteration, counted) in whose time on the host some event lies, at least in part."""
    last_launch = attribution.launches.group_by("iteration").agg(pl.col("launch_start_ns").max())
    iterations = attribution.iterations.join(last_launch, on="iteration", how="left").sort("start_ns")
    # The last iteration has no successor: it lasts as long as it launches.
    until = pl.coalesce("next_start_ns", pl.max_horizontal("marker_end_ns", "launch_start_ns"))
    spans = iterations.select("iteration", "counted", from_ns="start_ns", until_ns=until)
    events = events.select("start_ns", end_ns=pl.col("start_ns") + pl.col("duration_ns").clip(lower_bound=1))
    return (
        spans.join_where(events, pl.col("from_ns") < pl.col("end_ns"), pl.col("start_ns") < pl.col("until_ns"))
        .unique("iteration")
        .select("iteration", "counted")
        .sort("iteration")
    )
