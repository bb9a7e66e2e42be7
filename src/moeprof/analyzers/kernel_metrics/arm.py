"""From a report of Nsight Compute to an arm's figures: kernels by layer and batch, medians over runs, roofs."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from statistics import median

import polars as pl

from moeprof.analyzers.classify import Classifier
from moeprof.analyzers.kernel_metrics.results import ArmKernels, KernelMetricRow, LayerRow, LayerShape, Roof
from moeprof.analyzers.kernel_metrics.roofs import roof_of, share
from moeprof.analyzers.kernel_metrics.work import flops, stages
from moeprof.findings import Finding, JsonValue

_BATCH = re.compile(r"\bbatch\s*=\s*(\d+)")
_GEMMS = frozenset(("moe_gemm", "moe_fused"))
_SHARES = ("tensor_pct", "dram_pct", "occupancy_pct")

Launch = dict[str, object]


@dataclass(frozen=True, slots=True)
class Measured:
    """An arm's report and what is known about how it was made.

    Attributes:
        arm: Its name.
        source: Where the report came from.
        kernels: Rows of `moeprof.traces.ncu.table.KERNEL_METRICS`, in order of launch.
        backend: Expert backend, where known.
        shape: The layer, where known; without it no FLOP/s.
    """

    arm: str
    source: str
    kernels: pl.DataFrame
    backend: str | None = None
    shape: LayerShape | None = None


def arm_kernels(measured: Measured, classifier: Classifier) -> tuple[ArmKernels, list[Finding]]:
    """Return an arm's figures, and what stands against them.

    A layer is a run of launches under one NVTX range that holds ``batch=N``, repeated for each run; launches without
    one are one layer of unknown batch. Where the launches of a batch differ between runs, the commonest sequence counts.
    """
    devices = [name for name in measured.kernels["device"].unique(maintain_order=True).to_list() if name]
    device = devices[0] if devices else None
    roof = roof_of(device, measured.shape.weights) if measured.shape else None
    findings = _about(measured, devices, roof)
    rows: list[KernelMetricRow] = []
    layers: list[LayerRow] = []
    for batch, runs in _layers(measured.kernels, classifier).items():
        kept, left_aside = _commonest(runs)
        if left_aside:
            findings.append(_uneven(measured.arm, batch, len(kept), left_aside))
        found = _rows(kept, batch, measured.shape, roof)
        rows += found
        layers.append(_layer(batch, found))
    return (
        ArmKernels(
            measured.arm,
            measured.source,
            measured.backend,
            device,
            measured.shape,
            roof,
            tuple(layers),
            tuple(rows),
        ),
        findings,
    )


def _layers(kernels: pl.DataFrame, classifier: Classifier) -> dict[int | None, list[list[Launch]]]:
    """Return, by batch in order of size, the launches of each run of the layer.

    A run ends where the range changes, or where its first kernel comes again: ranges of runs in a row bear one name.
    """
    found: defaultdict[int | None, list[list[Launch]]] = defaultdict(list)
    before: tuple[object, ...] = ()
    for row in kernels.iter_rows(named=True):  # some hundred rows, each of which took a profiler's replay
        match = _BATCH.search(row["range"] or "")
        batch = int(match[1]) if match else None
        launch = {**row, "class": classifier.explain(row["name"]).class_}
        runs = found[batch]
        if before != (row["range"],) or (runs and _begins_again(runs[-1], launch)):
            runs.append([])
        runs[-1].append(launch)
        before = (row["range"],)
    return dict(sorted(found.items(), key=lambda item: (item[0] is None, item[0] or 0)))


def _begins_again(run: list[Launch], launch: Launch) -> bool:
    """Tell whether a launch is the first of the next run: the run is complete (has expert GEMMs) and its first kernel returns."""
    first = run[0]
    same = first["name"] == launch["name"] and first["grid"] == launch["grid"]
    return same and launch["class"] not in _GEMMS and any(item["class"] in _GEMMS for item in run)


def _commonest(runs: list[list[Launch]]) -> tuple[list[list[Launch]], int]:
    groups: defaultdict[tuple[object, ...], list[list[Launch]]] = defaultdict(list)
    for run in runs:
        groups[tuple(item["name"] for item in run)].append(run)
    best = max(groups.values(), key=len)
    return best, len(runs) - len(best)


def _rows(
    runs: list[list[Launch]], batch: int | None, shape: LayerShape | None, roof: Roof | None
) -> list[KernelMetricRow]:
    names = stages([str(item["class"]) for item in runs[0]])
    parts = {name: names.count(name) for name in ("w13", "w2", "fused")}
    rows = []
    for position, (first, stage) in enumerate(zip(runs[0], names, strict=True)):
        column = [run[position] for run in runs]
        duration = _median(column, "duration_ns")
        moved = _sum(_median(column, "dram_read_bytes"), _median(column, "dram_write_bytes"))
        work = flops(stage, shape, batch) if shape is not None and batch is not None else None
        work = None if work is None else work // parts[stage]
        rows.append(
            KernelMetricRow(
                batch=batch,
                stage=stage,
                class_=str(first["class"]),
                name=str(first["name"]),
                position=position,
                runs=len(runs),
                duration_ns=duration,
                **{share_: _median(column, share_) for share_ in _SHARES},
                dram_bytes=moved,
                flops=work,
                flops_per_s=_rate(work, duration),
                bytes_per_s=_rate(moved, duration),
                roof_share=share(roof, work, moved, duration),
            )
        )
    return rows


def _layer(batch: int | None, rows: list[KernelMetricRow]) -> LayerRow:
    return LayerRow(
        batch,
        len(rows),
        _total([row.duration_ns for row in rows]),
        _total([row.duration_ns for row in rows if row.class_ in _GEMMS]),
    )


def _total(values: list[float | None]) -> float | None:
    return None if not values or any(value is None for value in values) else sum(value or 0.0 for value in values)


def _median(launches: list[Launch], key: str) -> float | None:
    values = [value for item in launches if isinstance(value := item[key], float)]
    return median(values) if len(values) == len(launches) else None


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def _rate(amount: float | None, duration_ns: float | None) -> float | None:
    return None if amount is None or not duration_ns else amount / (duration_ns * 1e-9)


def _about(measured: Measured, devices: list[str], roof: Roof | None) -> list[Finding]:
    findings = []
    if len(devices) > 1:
        evidence: dict[str, JsonValue] = {"devices": [*devices]}
        findings.append(
            Finding(
                "kernels-several-devices",
                "warning",
                f"the report of {measured.arm} holds kernels of {len(devices)} kinds of devices; roofs are those of {devices[0]}",
                evidence=evidence,
            )
        )
    if roof is None and measured.shape is not None:
        findings.append(
            Finding(
                "kernels-no-roof",
                "note",
                f"the peaks of {devices[0] if devices else 'the device'} for {measured.shape.weights} weights are not known, so "
                f"{measured.arm} has no share of a roof",
            )
        )
    return findings


def _uneven(arm: str, batch: int | None, kept: int, left_aside: int) -> Finding:
    at = "an unknown batch" if batch is None else f"batch {batch}"
    return Finding(
        "kernels-runs-differ",
        "warning",
        f"{arm} at {at} launched other kernels in {left_aside} of {kept + left_aside} runs; the commonest sequence is shown",
        evidence={"kept": kept, "left_aside": left_aside},
    )
