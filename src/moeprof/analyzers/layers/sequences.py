"""The launches of each phase in order: which iterations hold the same ones, and one of them that stands for all.

Iterations are compared by their bags: what was launched how often. Within the commonest bag the order of one iteration stands
for all. Order is that of the launch calls; of the launches of one graph that of the nodes where the trace tells them, else that
of the starts on the device, where kernels of different streams may have overtaken each other.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import polars as pl

from moeprof.analyzers.layers.families import family
from moeprof.analyzers.layers.results import Kernel
from moeprof.analyzers.tables import PHASES, Attribution

_TIMED = 64  # iterations that times are taken from, evenly spread
_FEW_STREAMS = 8  # a phase with more spreads its graphs over streams of their own
_NAMED = 20  # iterations whose difference is told

#: Columns of the launches that times are taken from.
TIMED = ("iteration", "token", "occurrence", "start_ns", "end_ns", "duration_ns")


@dataclass(frozen=True, slots=True)
class Other:
    """What another iteration launches more often (above 0) or less often than the one that stands for all."""

    iteration: int
    differences: tuple[tuple[Kernel, int], ...]


@dataclass(frozen=True, slots=True)
class Sequence:
    """The launches of a phase in the iteration that stands for all.

    Attributes:
        phase: The phase.
        tokens: A number for each launch; `occurrences` says how many of the same number started before it.
        kernels: What each number stands for.
        names: The full name of each launch.
        ordered: Whether the order is known: that of the launch calls, or of graph nodes.
        streams: Stream of each launch by its place among the phase's streams; None where that says nothing.
        iterations: Iterations with the same launches, of `counted`.
        others: The first iterations that hold other launches; `differing` is how many there are.
        timed: The launches of some of the iterations with the same launches: `TIMED`.
    """

    phase: str
    tokens: tuple[int, ...]
    occurrences: tuple[int, ...]
    kernels: tuple[Kernel, ...]
    names: tuple[str, ...]
    ordered: bool
    streams: tuple[int, ...] | None
    iterations: int
    counted: int
    differing: int
    others: tuple[Other, ...]
    timed: pl.DataFrame


def sequences(attribution: Attribution, nodes: pl.DataFrame | None = None) -> tuple[Sequence, ...]:
    """Return the sequence of each phase that launches anything.

    Args:
        attribution: The iterations and launches of a rank.
        nodes: Columns event and graph_node_id of the rank's kernels, where the order in a graph is told.
    """
    rows = attribution.counted.filter(pl.col("phase").is_not_null())
    if attribution.graph_level or rows.is_empty():
        return ()
    rows, kernels = _coded(rows.with_columns(pl.col("iteration").fill_null(-1)))
    bags = rows.group_by("phase", "iteration").agg(pl.col("bag").sum(), pl.len().alias("size"))
    counted = int(attribution.iterations["counted"].sum()) if attribution.family else 1
    found: list[Sequence] = []
    for phase in PHASES:
        own = bags.filter(pl.col("phase") == phase).sort("iteration")
        if not own.is_empty():
            found.append(_sequence(phase, rows, own, counted, kernels, nodes))
    return tuple(found)


def _coded(rows: pl.DataFrame) -> tuple[pl.DataFrame, tuple[Kernel, ...]]:
    """Add token and bag: a number for each kernel and a random one; return the kernels in order as well."""
    distinct = (
        rows.group_by("class", "name").agg(pl.len()).sort("len", "class", "name", descending=[True, False, False])
    )
    codes: dict[Kernel, int] = {}
    numbers: list[int] = []
    for class_, name in distinct.select("class", "name").iter_rows():
        kernel = Kernel(class_, family(name))
        if kernel not in codes:
            codes[kernel] = len(codes)
        numbers.append(codes[kernel])
    drawn = [_drawn(kernel) for kernel in codes]
    table = distinct.select(
        "class",
        "name",
        pl.Series("token", numbers, dtype=pl.UInt32),
        pl.Series("bag", [drawn[number] for number in numbers], dtype=pl.UInt64),
    )
    return rows.join(table, on=["class", "name"], how="left", maintain_order="left"), tuple(codes)


def _drawn(kernel: Kernel) -> int:
    """Return a number of 40 bits for a kernel, so that sums of millions stay exact."""
    digest = hashlib.blake2b(f"{kernel.class_}\0{kernel.family}".encode(), digest_size=5).digest()
    return int.from_bytes(digest, "little")


def _sequence(
    phase: str,
    rows: pl.DataFrame,
    bags: pl.DataFrame,
    counted: int,
    kernels: tuple[Kernel, ...],
    nodes: pl.DataFrame | None,
) -> Sequence:
    kinds = bags.group_by("bag", "size", maintain_order=True).agg("iteration").with_columns(
        pl.col("iteration").list.len().alias("times")
    )  # fmt: skip
    common = kinds.sort("times", descending=True, maintain_order=True).row(0, named=True)
    same: list[int] = common["iteration"]
    step = -(-len(same) // _TIMED)
    timed_iterations = same[::step]
    chosen = timed_iterations[len(timed_iterations) // 2]
    here = rows.filter(pl.col("phase") == phase)
    timed = (
        here.filter(pl.col("iteration").is_in(timed_iterations))
        .sort("start_ns", "event")
        .with_columns(pl.int_range(pl.len()).over("iteration", "token").cast(pl.UInt32).alias("occurrence"))
    )
    one, ordered = _in_order(timed.filter(pl.col("iteration") == chosen), nodes)
    rest = kinds.filter((pl.col("bag") != common["bag"]) | (pl.col("size") != common["size"]))
    differing = sorted(number for numbers in rest["iteration"].to_list() for number in numbers)
    others = here.filter(pl.col("iteration").is_in(differing[:_NAMED]))
    return Sequence(
        phase=phase,
        tokens=tuple(one["token"].to_list()),
        occurrences=tuple(one["occurrence"].to_list()),
        kernels=kernels,
        names=tuple(one["name"].to_list()),
        ordered=ordered,
        streams=_streams(one),
        iterations=len(same),
        counted=counted,
        differing=len(differing),
        others=_others(others, one, kernels),
        timed=timed.select(TIMED),
    )


def _in_order(one: pl.DataFrame, nodes: pl.DataFrame | None) -> tuple[pl.DataFrame, bool]:
    """Return the launches of one iteration in order, and whether that order is known for all of them."""
    if nodes is None:
        one = one.with_columns(pl.lit(None, pl.UInt64).alias("graph_node_id"))
    else:
        one = one.join(nodes.select("event", "graph_node_id"), on="event", how="left", maintain_order="left")
    call = pl.coalesce("launch_start_ns", "start_ns")
    one = one.with_columns(call.alias("call_ns")).sort("call_ns", "graph_node_id", "start_ns", "event", nulls_last=True)
    together = pl.len().over("call_ns") > 1
    guessed = one.select((together & pl.col("graph_node_id").is_null()).any()).item()
    return one, not guessed or one["stream"].n_unique() < 2


def _streams(one: pl.DataFrame) -> tuple[int, ...] | None:
    """Number the streams by their first launch; None where there are too many to be streams of the program."""
    if one["stream"].null_count() or one["stream"].n_unique() > _FEW_STREAMS:
        return None
    places: dict[object, int] = {}
    return tuple(places.setdefault(key, len(places)) for key in one.select("device", "stream").iter_rows())


def _others(others: pl.DataFrame, one: pl.DataFrame, kernels: tuple[Kernel, ...]) -> tuple[Other, ...]:
    if others.is_empty():
        return ()
    common = one.group_by("token").agg(pl.len().cast(pl.Int64).alias("as_a_rule"))
    seen = others.group_by("iteration", "token").agg(pl.len().cast(pl.Int64).alias("here"))
    every = others.select(pl.col("iteration").unique()).join(common, how="cross")
    apart = (
        every.join(seen, on=["iteration", "token"], how="full", coalesce=True)
        .with_columns((pl.col("here").fill_null(0) - pl.col("as_a_rule").fill_null(0)).alias("by"))
        .filter(pl.col("by") != 0)
        .sort("iteration", "token")
    )
    found: dict[int, list[tuple[Kernel, int]]] = {}
    for iteration, token, by in apart.select("iteration", "token", "by").iter_rows():
        found.setdefault(iteration, []).append((kernels[token], by))
    return tuple(Other(iteration, tuple(differences)) for iteration, differences in found.items())
