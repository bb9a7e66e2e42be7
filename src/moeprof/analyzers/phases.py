"""Tell the phase of each launch of an iteration: target, draft or sample, from the strongest evidence there is."""

from __future__ import annotations

import polars as pl

from moeprof.analyzers.markers import Family, marker_rules, matching_labels
from moeprof.analyzers.tables import EXPERTS, GATHERS, PHASE, SCATTERS
from moeprof.traces.trace import RankTrace

#: Classes that only a model's layers launch. All-gathers and reduce-scatters count where they pair, see `_layer_launch`.
LAYER_CLASSES = ("attention", *EXPERTS)

#: Which of two scopes of the same extent lies in the other: drafts run inside the sampling call, the forward stands alone.
_DEPTH = {"target": 0, "sample": 1, "draft": 2}


def with_phases(
    launches: pl.DataFrame, iterations: pl.DataFrame, rank: RankTrace, family: Family | None
) -> pl.DataFrame:
    """Add the column ``phase``.

    In this order: the innermost scope around the launch call; for a family whose marker covers the forward only,
    target inside the marker and, after it, draft from the first to the last call that launches a model layer (and
    from the kernel that prepares the first draft, where it is known), sample for the rest; otherwise target.

    Args:
        launches: ATTRIBUTED columns as far as known (no phase), with ``track`` of the launch call and ``role``.
        iterations: ITERATIONS.
        rank: The rank, for its nested scopes.
        family: Marker family in use.
    """
    if family is None:
        return launches.with_columns(pl.lit("target", dtype=PHASE).alias("phase"))
    launches = launches.join(
        iterations.select("iteration", "marker_end_ns"), on="iteration", how="left", maintain_order="left"
    )
    if family.forward:
        split = _after_forward(launches)
    else:
        split = launches.with_columns(pl.lit("target", dtype=PHASE).alias("split"))
    scoped = _innermost_scope(split, rank)
    in_scope = pl.col("scope").is_not_null()
    default = pl.col("split")
    if family.name == "moeprof":
        default = _around_scopes()
    return scoped.with_columns(
        pl.when(pl.col("iteration").is_null())
        .then(None)
        .when(in_scope)
        .then(pl.col("scope"))
        .otherwise(default)
        .cast(PHASE)
        .alias("phase")
    ).drop("split", "scope", "marker_end_ns")


def _around_scopes() -> pl.Expr:
    """Inside our iteration but in no scope: input preparation before the target belongs to it, the rest is bookkeeping."""
    target = pl.col("launch_start_ns").filter(pl.col("scope") == "target").min().over("iteration")
    return (
        pl.when(
            (pl.col("launch_start_ns") < target).fill_null(value=False)
            | pl.col("scope").is_null().all().over("iteration")
        )
        .then(pl.lit("target", dtype=PHASE))
        .otherwise(pl.lit("sample", dtype=PHASE))
    )


def _after_forward(launches: pl.DataFrame) -> pl.DataFrame:
    """Add ``split``: target inside the marker, after it the run of model-layer calls is draft, the rest sample."""
    after = pl.col("launch_start_ns") >= pl.col("marker_end_ns")
    launches = launches.with_columns(
        after.fill_null(value=False).alias("after"),
    ).with_columns(_layer_launch().alias("layer"))
    runs = (
        launches.filter("after", pl.col("iteration").is_not_null())
        .group_by("iteration")
        .agg(
            pl.col("launch_start_ns").filter("layer").min().alias("first"),
            pl.col("launch_start_ns").filter("layer").max().alias("last"),
            pl.col("launch_start_ns").filter(pl.col("role") == "draft-start").min().alias("prepared"),
        )
        .with_columns(pl.when(pl.col("prepared") < pl.col("first")).then("prepared").otherwise("first").alias("first"))
    )
    inside = pl.col("launch_start_ns").is_between(pl.col("first"), pl.col("last")).fill_null(value=False)
    return (
        launches.join(runs.drop("prepared"), on="iteration", how="left", maintain_order="left")
        .with_columns(
            pl.when(~pl.col("after"))
            .then(pl.lit("target", dtype=PHASE))
            .when(inside)
            .then(pl.lit("draft", dtype=PHASE))
            .otherwise(pl.lit("sample", dtype=PHASE))
            .alias("split")
        )
        .drop("after", "layer", "first", "last")
    )


def _layer_launch() -> pl.Expr:
    """True for launches of a model layer, and for the communication that belongs to its experts.

    A gather (or broadcast) counts where experts or a scatter come next, a scatter (or reduce) where experts or a gather came
    before: all-gathers of logits, which attention or nothing follows, do not make a draft. A whole graph holds layers.
    """
    class_ = pl.col("class")
    layer = class_.is_in(LAYER_CLASSES) | (pl.col("activity") == "graph")
    following = pl.when(layer | class_.is_in(SCATTERS)).then(class_).backward_fill().over("iteration", "after")
    preceding = pl.when(layer | class_.is_in(GATHERS)).then(class_).forward_fill().over("iteration", "after")
    return (
        layer
        | ((class_ == "all_gather") & following.is_in([*EXPERTS, *SCATTERS]).fill_null(value=False))
        | ((class_ == "broadcast") & following.is_in(EXPERTS).fill_null(value=False))
        | ((class_ == "reduce_scatter") & preceding.is_in([*EXPERTS, *GATHERS]).fill_null(value=False))
        | ((class_ == "reduce") & preceding.is_in(EXPERTS).fill_null(value=False))
    )


def _innermost_scope(launches: pl.DataFrame, rank: RankTrace) -> pl.DataFrame:
    """Add ``scope``: the phase of the innermost scope that holds the launch call on its thread, else null."""
    rules = marker_rules()
    labels = [
        (label, phase)
        for label in matching_labels(rank.markers["name"], [pattern for pattern, _ in rules.scopes])
        if (phase := rules.scope_phase(label)) is not None
    ]
    if not labels:
        return launches.with_columns(pl.lit(None, dtype=PHASE).alias("scope"))
    scopes = rank.markers.join(
        pl.DataFrame(labels, schema={"name": pl.String, "scope_phase": PHASE}, orient="row"), on="name", how="inner"
    ).filter(pl.col("end_ns").is_not_null())
    borders = _innermost_borders(scopes)
    return launches.sort("launch_start_ns").join_asof(
        borders, left_on="launch_start_ns", right_on="at_ns", by="track", strategy="backward", check_sortedness=False
    ).drop("at_ns").sort("start_ns", "event")  # fmt: skip


def _innermost_borders(scopes: pl.DataFrame) -> pl.DataFrame:
    """Return track, at_ns, scope: from at_ns on, the innermost open scope of the track is `scope` (null: none).

    Scopes are few (a handful an iteration), so a stack per track is walked in plain Python.
    """
    rows: list[tuple[int, int, str | None]] = []
    depth = pl.col("scope_phase").cast(pl.String).replace_strict(_DEPTH, return_dtype=pl.Int8)
    ordered = scopes.sort("track", "start_ns", "end_ns", depth, descending=[False, False, True, False])
    for track, group in ordered.group_by("track", maintain_order=True):
        stack: list[tuple[int, str]] = []
        key = int(str(track[0]))
        for start, end, phase in group.select("start_ns", "end_ns", "scope_phase").iter_rows():
            _close(stack, rows, key, until=start)
            stack.append((end, phase))
            rows.append((key, start, phase))
        _close(stack, rows, key, until=None)
    frame = pl.DataFrame(rows, schema={"track": pl.UInt32, "at_ns": pl.Int64, "scope": PHASE}, orient="row")
    # Several borders at one instant: the last one written holds (a scope that opens where another closes).
    return frame.unique(["track", "at_ns"], keep="last", maintain_order=True).sort("track", "at_ns").sort("at_ns")


def _close(
    stack: list[tuple[int, str]], rows: list[tuple[int, int, str | None]], track: int, *, until: int | None
) -> None:
    """Take the scopes that have ended off the stack; where ranges overlap, one below may have ended before the one above."""
    while stack and (until is None or stack[-1][0] <= until):
        closed, _ = stack.pop()
        while stack and stack[-1][0] <= closed:
            stack.pop()
        rows.append((track, closed, stack[-1][1] if stack else None))
