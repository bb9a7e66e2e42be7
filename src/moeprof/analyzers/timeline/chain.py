"""The critical chain of an iteration: which stretches of host and device bounded it, in order."""

from __future__ import annotations

import polars as pl

from moeprof.analyzers.timeline.results import Chain, Step
from moeprof.analyzers.timeline.tables import BOUNDS

_HOST = ("host", "launch")
_MOST = 12  # steps; shorter ones join their neighbours
_LENGTH = pl.col("end_ns") - pl.col("start_ns")


def median_chain(pieces: pl.DataFrame, steady: pl.DataFrame) -> Chain | None:
    """Return the chain of the steady iteration whose wall time is the median (of two, the shorter, earlier one).

    Args:
        pieces: `moeprof.analyzers.timeline.tables.PIECES`.
        steady: `moeprof.analyzers.timeline.tables.PER_ITERATION` of steady iterations.
    """
    if steady.is_empty():
        return None
    ordered = steady.sort("wall_ns", "iteration")
    chosen = ordered.row((ordered.height - 1) // 2, named=True)
    own = pieces.filter(pl.col("iteration") == chosen["iteration"]).sort("start_ns")
    return Chain(int(chosen["iteration"]), int(chosen["wall_ns"]), _steps(own))


def _steps(own: pl.DataFrame) -> tuple[Step, ...]:
    """Merge pieces of one resource and phase; then join the shortest steps to the longer neighbour until few are left."""
    resource = pl.when(pl.col("bound").is_in(list(_HOST))).then(pl.lit("host")).otherwise(pl.lit("device"))
    phase = pl.col("phase").cast(pl.String)
    marked = own.with_columns(
        resource.alias("resource"),
        pl.when(resource == "device").then(phase.forward_fill().fill_null(phase.backward_fill())).alias("phase"),
    )
    runs = (
        marked.with_columns(pl.struct("resource", "phase").rle_id().alias("run"))
        .group_by("run", maintain_order=True)
        .agg(pl.col("resource", "phase").first(), *_bounds())
    )
    steps = [_step(row) for row in runs.iter_rows(named=True)]
    while len(steps) > _MOST:
        steps = _without_shortest(steps)
    return tuple(steps)


def _bounds() -> list[pl.Expr]:
    is_communication = pl.col("bound") == "communication"
    sums = {name: _LENGTH.filter(pl.col("bound") == name).sum() for name in BOUNDS}
    sums["communication"] = (_LENGTH - pl.col("wait_ns")).filter(is_communication).sum()
    sums["wait"] = sums["wait"] + pl.col("wait_ns").filter(is_communication).sum()
    return [value.alias(f"bound_{name}") for name, value in sums.items()]


def _step(row: dict[str, object]) -> Step:
    bounds = {name: value for name in BOUNDS if isinstance(value := row[f"bound_{name}"], int) and value}
    phase = row["phase"]
    return Step(str(row["resource"]), None if phase is None else str(phase), sum(bounds.values()), bounds)


def _without_shortest(steps: list[Step]) -> list[Step]:
    at = min(range(len(steps)), key=lambda index: (steps[index].ns, index))
    neighbours = [index for index in (at - 1, at + 1) if 0 <= index < len(steps)]
    other = max(neighbours, key=lambda index: (steps[index].ns, -index))
    joined = _joined(steps[other], steps[at])
    kept = [joined if index == other else step for index, step in enumerate(steps) if index != at]
    alike = [kept[0]]
    for step in kept[1:]:
        if (step.resource, step.phase) == (alike[-1].resource, alike[-1].phase):
            alike[-1] = _joined(alike[-1], step)
        else:
            alike.append(step)
    return alike


def _joined(main: Step, other: Step) -> Step:
    names = [name for name in BOUNDS if name in main.bounds or name in other.bounds]
    bounds = {name: main.bounds.get(name, 0) + other.bounds.get(name, 0) for name in names}
    return Step(main.resource, main.phase, main.ns + other.ns, bounds)
