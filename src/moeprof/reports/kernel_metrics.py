"""The section of a diff on kernels that were measured alone."""

from __future__ import annotations

from collections.abc import Sequence

from moeprof.analyzers.kernel_metrics.results import LayerChange
from moeprof.reports.document import Column, Section, Table
from moeprof.reports.units import NO_DATA, change
from moeprof.wording import duration

FIGURES = {"gemm_sum_ns": "expert GEMMs", "kernel_sum_ns": "all kernels"}
NOTE = (
    "kernels ran one at a time under Nsight Compute, on one rank, with random tokens and routing: durations compare kernels, "
    "not servers"
)


def changes_table(base: str, candidate: str, rows: Sequence[LayerChange]) -> Table:
    """Return the sums of kernel durations of a MoE layer by batch."""
    return Table(
        (
            Column("batch", "number"),
            Column("figure"),
            Column(base, "number"),
            Column(candidate, "number"),
            Column("change", "number"),
        ),
        tuple(
            (batch(row.batch), FIGURES.get(row.figure, row.figure), ns(row.base), ns(row.candidate), change(row.ratio))
            for row in rows
        ),
    )


def kernel_metrics_sections(rows: Sequence[LayerChange]) -> tuple[Section, ...]:
    """Return the section; none where an arm was not measured."""
    if not rows:
        return ()
    table = changes_table("base", "candidate", rows)
    return (Section("One MoE layer alone (moeprof kernels)", (Table(table.columns, table.rows, (NOTE,)),)),)


def batch(value: int | None) -> str:
    """Return a number of tokens."""
    return "unknown" if value is None else str(value)


def ns(value: float | None) -> str:
    """Return a duration."""
    return NO_DATA if value is None else duration(round(value))
