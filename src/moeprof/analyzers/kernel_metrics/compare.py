"""Hold arms against the first one, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moeprof.analyzers.kernel_metrics.results import ArmKernels, KernelsResult, LayerChange, LayerRow
from moeprof.findings import Finding

FIGURES = ("gemm_sum_ns", "kernel_sum_ns")


def gather(arms: Sequence[ArmKernels], findings: Iterable[Finding] = ()) -> KernelsResult:
    """Return all arms with their changes from the first one; batches that an arm lacks have no data there."""
    found = [*findings]
    changes = {arm.arm: tuple(changes_of(arms[0], arm)) for arm in arms[1:]}
    for arm in arms[1:]:
        if arm.shape != arms[0].shape and arm.shape is not None and arms[0].shape is not None:
            found.append(
                Finding(
                    "kernels-other-layer",
                    "warning",
                    f"{arms[0].arm} and {arm.arm} launched layers of different shapes or weights; their durations do not compare "
                    "the same work in the same format",
                )
            )
        if None not in (arm.device, arms[0].device) and arm.device != arms[0].device:
            found.append(
                Finding(
                    "kernels-other-device",
                    "error",
                    f"{arms[0].arm} ran on {arms[0].device} and {arm.arm} on {arm.device}",
                )
            )
    return KernelsResult(tuple(arms), changes, tuple(found))


def changes_of(base: ArmKernels, candidate: ArmKernels) -> list[LayerChange]:
    """Return the sums of kernel durations of both arms, by batch and figure."""
    left, right = ({row.batch: row for row in arm.layers} for arm in (base, candidate))
    batches = sorted({*left, *right}, key=lambda batch: (batch is None, batch or 0))
    return [_change(batch, figure, left.get(batch), right.get(batch)) for batch in batches for figure in FIGURES]


def _change(batch: int | None, figure: str, base: LayerRow | None, candidate: LayerRow | None) -> LayerChange:
    before: float | None = getattr(base, figure, None)
    after: float | None = getattr(candidate, figure, None)
    return LayerChange(batch, figure, before, after, after / before if before and after is not None else None)
