"""The result of ``moeprof kernels``: `moeprof.kernels/1`. None means "no data"; durations are ns of kernels that ran one at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from moeprof.analyzers.plain import to_json
from moeprof.findings import Finding, JsonValue


@dataclass(frozen=True, slots=True)
class LayerShape:
    """The layer that was launched: widths, experts held, experts per token, format of the weights."""

    hidden: int
    intermediate: int
    experts: int
    top_k: int
    weights: str


@dataclass(frozen=True, slots=True)
class Roof:
    """What the device can do: dense FLOP/s for a format of numbers, bytes/s of its memory."""

    device: str
    format: str
    flops_per_s: float
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class KernelMetricRow:
    """A kernel of a layer at a batch size; figures are medians over `runs` launches of the layer.

    Attributes:
        batch: Tokens that entered the layer; None where no range names them.
        stage: ``w13`` or ``w2`` for expert GEMMs, ``fused`` for a launch that does both, else the class.
        position: Place among the layer's kernels, from 0.
        duration_ns: Of the kernel alone on the device.
        tensor_pct, dram_pct, occupancy_pct: Tensor pipes active, memory throughput, warps active, each in percent of the peak.
        dram_bytes: Read and written.
        flops: Arithmetic that the stage's shape asks for; only for expert GEMMs of a known layer.
        flops_per_s, bytes_per_s: Achieved.
        roof_share: Achieved part of what the roofs allow at this intensity.
    """

    batch: int | None
    stage: str
    class_: str
    name: str
    position: int
    runs: int
    duration_ns: float | None
    tensor_pct: float | None
    dram_pct: float | None
    occupancy_pct: float | None
    dram_bytes: float | None
    flops: int | None
    flops_per_s: float | None
    bytes_per_s: float | None
    roof_share: float | None


@dataclass(frozen=True, slots=True)
class LayerRow:
    """A whole layer at a batch size: kernels, and the sum of their durations by what they are for, in ns."""

    batch: int | None
    kernels: int
    kernel_sum_ns: float | None
    gemm_sum_ns: float | None


@dataclass(frozen=True, slots=True)
class ArmKernels:
    """One arm."""

    arm: str
    source: str
    backend: str | None
    device: str | None
    shape: LayerShape | None
    roof: Roof | None
    layers: tuple[LayerRow, ...]
    kernels: tuple[KernelMetricRow, ...]


@dataclass(frozen=True, slots=True)
class LayerChange:
    """The same batch on two arms: sums of kernel durations in ns, and candidate over base."""

    batch: int | None
    figure: str
    base: float | None
    candidate: float | None
    ratio: float | None


@dataclass(frozen=True, slots=True)
class KernelsResult:
    """Every arm, and each further arm held against the first: `moeprof.kernels/1`."""

    arms: tuple[ArmKernels, ...]
    changes: dict[str, tuple[LayerChange, ...]]
    findings: tuple[Finding, ...]

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the JSON object."""
        return {"schema": "moeprof.kernels/1", **cast("dict[str, JsonValue]", to_json(self))}
