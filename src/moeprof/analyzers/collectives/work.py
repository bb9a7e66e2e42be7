"""The GEMM time of ranks against each other: experts unevenly loaded, or a rank that is slower throughout."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median as middle

import polars as pl

from moeprof.analyzers.collectives.results import RankWork
from moeprof.analyzers.medians import median
from moeprof.analyzers.tables import Attribution

_EXPERT = ("moe_gemm", "moe_fused")
_DENSE = ("dense_gemm",)


def rank_work(ranks: Mapping[str, Attribution]) -> tuple[RankWork, ...]:
    """Return the GEMM time of each rank per steady iteration, and over the median of the other ranks.

    Args:
        ranks: The attribution by label; ranks without iterations are left out.
    """
    figures = {label: _figures(found) for label, found in ranks.items()}
    known = {label: figure for label, figure in figures.items() if figure is not None}
    work = []
    for label, (launches, expert, dense) in known.items():
        others = [figure for other, figure in known.items() if other != label]
        equal = [figure for figure in others if figure[0] == launches]
        work.append(
            RankWork(
                rank=label,
                launches=launches,
                expert_ns=expert,
                dense_ns=dense,
                expert_against_others=_ratio(expert, [figure[1] for figure in equal]),
                dense_against_others=_ratio(dense, [figure[2] for figure in equal]),
                against_others=_ratio(expert + dense, [figure[1] + figure[2] for figure in equal]),
            )
        )
    return tuple(work)


def _figures(found: Attribution) -> tuple[int, int, int] | None:
    """Return launches, expert and dense time per steady iteration; None without iterations."""
    steady = found.iterations.filter("counted", ~pl.col("transient")).select("iteration")
    if steady.is_empty():
        return None
    gemms = found.launches.filter(pl.col("class").is_in([*_EXPERT, *_DENSE]))
    each = gemms.group_by("iteration").agg(
        pl.len().alias("launches"),
        pl.col("duration_ns").filter(pl.col("class").is_in(_EXPERT)).sum().alias("expert"),
        pl.col("duration_ns").filter(pl.col("class").is_in(_DENSE)).sum().alias("dense"),
    )
    table = steady.join(each, on="iteration", how="left").with_columns(pl.exclude("iteration").fill_null(0))
    launches, expert, dense = (median(table[name].to_list()) or 0 for name in ("launches", "expert", "dense"))
    return launches, expert, dense


def _ratio(value: int, others: list[int]) -> float | None:
    usual = middle(others) if others else 0
    return value / usual if usual else None
