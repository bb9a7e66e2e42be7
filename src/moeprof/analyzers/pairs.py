"""Pairs of a MoE layer: dispatch with combine (AG/RS), and the two expert GEMMs (w13 with w2).

Within one iteration and phase, launches are read in order of start. A *dispatch end* is a maximal run of adjacent
all-gathers, a *combine end* one reduce-scatter; adjacent means that none of the classes below lies between. A pair is a
dispatch end directly followed by a combine end; what is left over on either side is unmatched.

Where the ranks' token counts differ, grouped broadcasts and reduces stand for all-gathers and reduce-scatters. They are
told from bystanders by what they enclose: a run of broadcasts counts when the next end of any spelling is a combine and
an expert GEMM lies between, a run of reduces likewise looking back. Bystanders are taken out first, so that they
neither part a pair nor a run of all-gathers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import cast

import polars as pl

from moeprof.analyzers.commonest import by_iteration, commonest
from moeprof.analyzers.results import AgRsPairs, GemmPairs, Pairs
from moeprof.analyzers.tables import GATHERS, PHASES, SCATTERS, Attribution
from moeprof.findings import Finding, JsonValue

_EQUIVALENTS = ("broadcast", "reduce")
_CLASSES = (*GATHERS, *SCATTERS, "moe_gemm", "moe_fused", "moe_combine", "attention")

_PLACE = ("iteration", "phase")
_WINDOW = -1  # stands for the iteration where there is no family
_LEFT_OVER = {
    "unmatched_ag": ("all_gather", "all-gather dispatches without a combine"),
    "unmatched_rs": ("reduce_scatter", "reduce-scatter combines without a dispatch"),
    "unmatched": ("moe_gemm", "expert GEMMs without a partner"),
}
_NO_LAYER = (
    ". The trace has no reduce-scatter at all: these are probably all-gathers that belong to no MoE layer, "
    "e.g. logits of a tensor-parallel vocabulary"
)


@dataclass(frozen=True, slots=True)
class _Tally:
    """One kind of pairs.

    Attributes:
        name: ``ag_rs`` or ``moe_gemm``.
        by_phase: iteration, phase, pairs and the other figures, where there is any.
        by_iteration: iteration, target, draft, sample, per_iteration (pairs) and the other figures; one row per counted
            iteration.
        commonest: Figure to commonest value; empty without counted iterations.
        varying: Figures that are not the same in all of them.
    """

    name: str
    by_phase: pl.DataFrame
    by_iteration: pl.DataFrame
    commonest: dict[str, int]
    varying: frozenset[str]

    @property
    def constant(self) -> bool | None:
        """Tell whether pairs and leftovers are the same in every iteration; None without iterations."""
        return not self.varying if self.commonest else None

    def total(self, figure: str) -> int:
        """Return a figure over all phases and counted iterations."""
        return int(self.by_phase[figure].sum())


def pairs(attribution: Attribution) -> Pairs:
    """Count the pairs of the counted iterations; without a family those of the one window, in ``total`` alone.

    There are none, not even a total, where whole graphs were recorded.
    """
    if attribution.graph_level:
        return Pairs(AgRsPairs(*(None,) * len(fields(AgRsPairs))), GemmPairs(*(None,) * len(fields(GemmPairs))))
    ag_rs, gemm = _tallies(attribution)
    return Pairs(
        ag_rs=AgRsPairs(
            target=ag_rs.commonest.get("target"),
            draft=ag_rs.commonest.get("draft"),
            sample=ag_rs.commonest.get("sample"),
            per_iteration=ag_rs.commonest.get("per_iteration"),
            total=ag_rs.total("pairs"),
            unmatched_ag=ag_rs.commonest.get("unmatched_ag"),
            unmatched_rs=ag_rs.commonest.get("unmatched_rs"),
            equivalents=ag_rs.commonest.get("equivalents"),
            constant=ag_rs.constant,
        ),
        moe_gemm=GemmPairs(
            target=gemm.commonest.get("target"),
            draft=gemm.commonest.get("draft"),
            sample=gemm.commonest.get("sample"),
            per_iteration=gemm.commonest.get("per_iteration"),
            total=gemm.total("pairs"),
            unmatched=gemm.commonest.get("unmatched"),
            constant=gemm.constant,
        ),
    )


def pair_findings(attribution: Attribution) -> tuple[Finding, ...]:
    """Say where ends are left over, where pairs are not constant, and where other collectives stand for AG and RS."""
    if attribution.graph_level:
        return ()
    ag_rs, gemm = _tallies(attribution)
    has_combine = bool((attribution.launches["class"] == "reduce_scatter").any())
    findings = [
        *_unmatched(attribution.rank, ag_rs, has_combine=has_combine),
        *_unmatched(attribution.rank, gemm, has_combine=has_combine),
        *_not_constant(attribution.rank, ag_rs),
        *_not_constant(attribution.rank, gemm),
    ]
    stand_ins = ag_rs.total("equivalents")
    if stand_ins:
        findings.append(
            Finding(
                slug="ag-rs-equivalents",
                severity="note",
                message=(
                    f"grouped Broadcast and Reduce stand for all-gather and reduce-scatter in {stand_ins} of "
                    f"{ag_rs.total('pairs')} AG/RS pairs, because the token counts of the ranks differ"
                ),
                rank=attribution.rank,
                evidence={
                    "equivalents": stand_ins,
                    "pairs": ag_rs.total("pairs"),
                    "commonest": ag_rs.commonest.get("equivalents"),
                },
            )
        )
    return tuple(findings)


def _unmatched(rank: str | None, tally: _Tally, *, has_combine: bool) -> list[Finding]:
    findings = []
    for figure in (name for name in _LEFT_OVER if name in tally.by_phase.columns and tally.total(name)):
        class_, what = _LEFT_OVER[figure]
        left = tally.by_phase.filter(pl.col(figure) > 0)
        phases = {phase: int(left.filter(pl.col("phase") == phase)[figure].sum()) for phase in PHASES}
        phases = {phase: count for phase, count in phases.items() if count}
        where = ", ".join(f"{phase} {count}" for phase, count in phases.items())
        touched = tally.by_iteration.filter(pl.col(figure) > 0).select("iteration", figure)
        if tally.commonest:
            message = (
                f"{tally.commonest[figure]} {what} per iteration as a rule; {tally.total(figure)} in "
                f"{touched.height} of {tally.by_iteration.height} iterations ({where})"
            )
        else:
            message = f"{tally.total(figure)} {what} in the whole trace, which has no iterations"
        if figure == "unmatched_ag" and not has_combine:
            message += _NO_LAYER
        findings.append(
            Finding(
                slug="unmatched-pairs",
                severity="warning",
                message=message,
                rank=rank,
                evidence={
                    "class": class_,
                    "commonest": tally.commonest.get(figure),
                    "total": tally.total(figure),
                    "phases": cast("dict[str, JsonValue]", phases),
                    "iterations": {str(number): count for number, count in touched.iter_rows()},
                },
            )
        )
    return findings


def _not_constant(rank: str | None, tally: _Tally) -> list[Finding]:
    if not tally.varying:
        return []
    figures = [name for name in tally.by_iteration.columns if name in tally.varying]
    deviates = pl.any_horizontal(pl.col(name) != tally.commonest[name] for name in figures)
    off: dict[str, dict[str, int]] = {
        str(row["iteration"]): {name: row[name] for name in figures if row[name] != tally.commonest[name]}
        for row in tally.by_iteration.filter(deviates).iter_rows(named=True)
    }
    said = {
        number: ", ".join(f"{name} {value} instead of {tally.commonest[name]}" for name, value in values.items())
        for number, values in off.items()
    }
    return [
        Finding(
            slug="pairs-not-constant",
            severity="warning",
            message=(
                f"{'AG/RS' if tally.name == 'ag_rs' else 'expert GEMM'} pairs differ in {len(off)} of "
                f"{tally.by_iteration.height} iterations ({by_iteration(said)})"
            ),
            rank=rank,
            evidence={
                "pairs": tally.name,
                "commonest": {name: tally.commonest[name] for name in figures},
                "iterations": cast("dict[str, JsonValue]", off),
            },
        )
    ]


def _tallies(attribution: Attribution) -> tuple[_Tally, _Tally]:
    steps = _without_bystanders(_steps(attribution))
    if attribution.family is None:
        iterations = attribution.iterations.clear().select("iteration")
    else:
        iterations = attribution.iterations.filter("counted").select("iteration").sort("iteration")
    return (
        _tally("ag_rs", _ag_rs(steps), iterations, ("unmatched_ag", "unmatched_rs", "equivalents")),
        _tally("moe_gemm", _gemms(steps), iterations, ("unmatched",)),
    )


def _tally(name: str, by_phase: pl.DataFrame, iterations: pl.DataFrame, others: Sequence[str]) -> _Tally:
    figures = by_phase.group_by("iteration").agg(
        *(pl.col("pairs").filter(pl.col("phase") == phase).sum().alias(phase) for phase in PHASES),
        pl.col("pairs").sum().alias("per_iteration"),
        *(pl.col(other).sum() for other in others),
    )
    by_iteration = iterations.join(figures, on="iteration", how="left", maintain_order="left").fill_null(0)
    values: dict[str, int] = {}
    varying: set[str] = set()
    if not iterations.is_empty():
        long = by_iteration.unpivot(index="iteration", variable_name="figure")
        for figure, value, constant, _ in commonest(long, ["figure"], iterations.height).iter_rows():
            values[figure] = value
            # The sum varies only where a phase does, and a spelling is no structure.
            if not constant and figure not in ("per_iteration", "equivalents"):
                varying.add(figure)
    return _Tally(name, by_phase, by_iteration, values, frozenset(varying))


def _steps(attribution: Attribution) -> pl.DataFrame:
    """Return the launches that pairing looks at in order, with runs."""
    return _with_runs(
        attribution.counted.filter(pl.col("class").is_in(_CLASSES))
        .with_columns(pl.col("iteration").fill_null(_WINDOW))
        .sort(*_PLACE, "start_ns", "event")
        .select(*_PLACE, "class", "gemms")
    )


def _with_runs(steps: pl.DataFrame) -> pl.DataFrame:
    """Add starts_run, run (maximal, of one class in one place; a reduce-scatter is its own) and gemms_before."""
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in (*_PLACE, "class"))
    return steps.with_columns((differs | (pl.col("class") == "reduce_scatter")).alias("starts_run")).with_columns(
        pl.col("starts_run").cum_sum().alias("run"),
        (pl.col("class") == "moe_gemm").cast(pl.Int64).cum_sum().alias("gemms_before"),
    )


def _ends(steps: pl.DataFrame) -> pl.DataFrame:
    """Return dispatch and combine ends: opens, closes (a pair), encloses (an expert GEMM; true on both ends).

    Where a place launches experts, only what encloses an expert GEMM is a MoE layer's pair: the gather and scatter of sequence-parallel
    attention, or of a dense layer, are not. Without any expert on record (an unknown backend) adjacency alone decides.
    """
    is_dispatch = pl.col("class").is_in(GATHERS)
    combine_follows = pl.col("class").shift(-1).is_in(SCATTERS)
    same_place = pl.all_horizontal(pl.col(name) == pl.col(name).shift(-1) for name in _PLACE)
    holds = (pl.col("gemms_before").shift(-1) > pl.col("gemms_before")) | ~pl.col("has_experts")
    encloses = pl.col("opens") & (pl.col("gemms_before").shift(-1) > pl.col("gemms_before"))
    return (
        steps.with_columns(pl.col("class").is_in(["moe_gemm", "moe_fused"]).any().over(_PLACE).alias("has_experts"))
        .filter(pl.col("starts_run") & pl.col("class").is_in((*GATHERS, *SCATTERS)))
        .with_columns((is_dispatch & combine_follows & same_place & holds).fill_null(value=False).alias("opens"))
        .with_columns(
            pl.col("opens").shift(1, fill_value=False).alias("closes"),
            encloses.fill_null(value=False).alias("encloses"),
        )
        .with_columns(pl.col("encloses") | pl.col("encloses").shift(1, fill_value=False))
    )


def _without_bystanders(steps: pl.DataFrame) -> pl.DataFrame:
    """Leave out broadcasts and reduces that enclose no expert GEMM."""
    bystanders = _ends(steps).filter(pl.col("class").is_in(_EQUIVALENTS) & ~pl.col("encloses"))
    if bystanders.is_empty():
        return steps
    return _with_runs(steps.join(bystanders.select("run"), on="run", how="anti", maintain_order="left"))


def _ag_rs(steps: pl.DataFrame) -> pl.DataFrame:
    """Return iteration, phase, pairs, unmatched_ag, unmatched_rs, equivalents."""
    is_dispatch = pl.col("class").is_in(GATHERS)
    stands_in = (pl.col("class") == "broadcast") | (pl.col("class").shift(-1) == "reduce").fill_null(value=False)
    return (
        _ends(steps)
        .with_columns((pl.col("opens") & stands_in).alias("stands_in"))
        .group_by(_PLACE)
        .agg(
            pl.col("opens").sum().cast(pl.Int64).alias("pairs"),
            (is_dispatch & ~pl.col("opens")).sum().cast(pl.Int64).alias("unmatched_ag"),
            (~is_dispatch & ~pl.col("closes")).sum().cast(pl.Int64).alias("unmatched_rs"),
            pl.col("stands_in").sum().cast(pl.Int64).alias("equivalents"),
        )
    )


def _gemms(steps: pl.DataFrame) -> pl.DataFrame:
    """Return iteration, phase, pairs, unmatched: single GEMMs pair up until another class of `_CLASSES` intervenes."""
    is_gemm = pl.col("class") == "moe_gemm"
    both = (pl.col("gemms") == 2).sum().cast(pl.Int64)
    single = (pl.col("gemms") != 2).sum().cast(pl.Int64)
    return (
        steps.with_columns((~is_gemm).cum_sum().alias("stretch"))
        .filter(is_gemm)
        .group_by(*_PLACE, "stretch")
        .agg((both + single // 2).alias("pairs"), (single % 2).alias("unmatched"))
        .group_by(_PLACE)
        .agg(pl.col("pairs").sum(), pl.col("unmatched").sum())
    )
