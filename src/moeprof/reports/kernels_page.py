"""The page of ``moeprof kernels``: layers by batch, expert GEMMs against the roofs, and what changed from the first arm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moeprof.analyzers.kernel_metrics.results import ArmKernels, KernelMetricRow, KernelsResult, LayerChange, LayerShape
from moeprof.reports.document import Column, Page, Section, Table
from moeprof.reports.finding_lines import findings_section
from moeprof.reports.kernel_metrics import NOTE, batch, changes_table, ns
from moeprof.reports.units import NO_DATA

_STAGES = ("w13", "w2", "fused", "moe_gemm")
_COLUMNS = (
    Column("batch", "number"),
    Column("stage"),
    Column("kernel", "name"),
    Column("time", "number"),
    Column("TFLOP/s", "number"),
    Column("TB/s", "number"),
    Column("tensor", "number"),
    Column("DRAM", "number"),
    Column("occupancy", "number"),
    Column("of roof", "number"),
)


def kernels_page(result: KernelsResult, *, wide: bool = False) -> Page:
    """Return the page; under `wide` every kernel of the layer has a row, else the expert GEMMs."""
    sections = [Section("MoE layer: sum of kernel durations", (_layers(result.arms),))]
    sections += [_changes(result.arms[0].arm, name, rows) for name, rows in result.changes.items()]
    for arm in result.arms:
        rows = [row for row in arm.kernels if wide or row.stage in _STAGES]
        title = f"{arm.arm}: {'kernels' if wide else 'expert GEMMs'}"
        sections.append(Section(title, (Table(_COLUMNS, tuple(_row(row) for row in rows), tuple(_roof(arm))),)))
    sections.append(findings_section(result.findings, {}, wide=wide))
    return Page(
        title="moeprof kernels",
        facts=tuple((arm.arm, _arm(arm)) for arm in result.arms),
        sections=tuple(sections),
        closing=NOTE,
    )


def _layers(arms: Sequence[ArmKernels]) -> Table:
    batches = sorted({row.batch for arm in arms for row in arm.layers}, key=lambda size: (size is None, size or 0))
    rows = []
    for size in batches:
        for arm in arms:
            found = next((row for row in arm.layers if row.batch == size), None)
            cells = (
                (NO_DATA, NO_DATA, NO_DATA)
                if found is None
                else (str(found.kernels), ns(found.gemm_sum_ns), ns(found.kernel_sum_ns))
            )
            rows.append((batch(size), arm.arm, *cells))
    return Table(
        (
            Column("batch", "number"),
            Column("arm"),
            Column("kernels", "number"),
            Column("expert GEMMs", "number"),
            Column("all kernels", "number"),
        ),
        tuple(rows),
    )


def _changes(base: str, candidate: str, rows: Sequence[LayerChange]) -> Section:
    return Section(f"{base} -> {candidate}", (changes_table(base, candidate, rows),))


def _row(row: KernelMetricRow) -> tuple[str, ...]:
    return (
        batch(row.batch),
        row.stage,
        row.name,
        ns(row.duration_ns),
        _scaled(row.flops_per_s, 1e12, 1),
        _scaled(row.bytes_per_s, 1e12, 2),
        _share(row.tensor_pct),
        _share(row.dram_pct),
        _share(row.occupancy_pct),
        _share(None if row.roof_share is None else row.roof_share * 100),
    )


def _roof(arm: ArmKernels) -> Iterator[str]:
    if arm.roof is not None:
        flops, memory = arm.roof.flops_per_s / 1e12, arm.roof.bytes_per_s / 1e12
        yield f"roof of {arm.roof.device}: {flops:,.0f} TFLOP/s ({arm.roof.format}, dense), {memory:.2f} TB/s"


def _arm(arm: ArmKernels) -> str:
    parts = [arm.source, arm.device or "device unknown"]
    parts += [f"backend {arm.backend}"] if arm.backend else []
    parts += [_shape(arm.shape)] if arm.shape else []
    return "; ".join(parts)


def _shape(shape: LayerShape) -> str:
    return f"{shape.experts} experts of {shape.hidden} x {shape.intermediate} in {shape.weights}, {shape.top_k} for each token"


def _scaled(value: float | None, unit: float, digits: int) -> str:
    return NO_DATA if value is None else f"{value / unit:,.{digits}f}"


def _share(value: float | None) -> str:
    return NO_DATA if value is None else f"{value:.1f} %"
