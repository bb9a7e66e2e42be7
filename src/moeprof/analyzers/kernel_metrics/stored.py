"""Hold two stored results of ``moeprof kernels`` against each other, for a diff of their arms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from moeprof.analyzers.kernel_metrics.compare import gather
from moeprof.analyzers.kernel_metrics.results import ArmKernels, LayerChange, LayerRow, LayerShape
from moeprof.errors import ManifestError
from moeprof.findings import Finding, JsonValue


def between(
    base: Mapping[str, JsonValue], candidate: Mapping[str, JsonValue]
) -> tuple[tuple[LayerChange, ...], tuple[Finding, ...]]:
    """Return the sums of kernel durations of both arms by batch, and what stands against comparing them.

    Args:
        base: `moeprof.kernels/1` of one arm.
        candidate: Likewise.

    Raises:
        ManifestError: A result does not hold what it must.
    """
    arms = [restored(base), restored(candidate)]
    result = gather(arms if arms[0].arm != arms[1].arm else [arms[0], arms[0]])
    return result.changes[arms[1].arm], result.findings


def restored(value: Mapping[str, JsonValue]) -> ArmKernels:
    """Return an arm with its layers; its kernels one by one are left out.

    Raises:
        ManifestError: The result does not hold what it must.
    """
    try:
        (arm,) = cast("list[dict[str, JsonValue]]", value["arms"])
        shape = cast("dict[str, int | str] | None", arm["shape"])
        layers = cast("list[dict[str, float]]", arm["layers"])
        return ArmKernels(
            arm=str(arm["arm"]),
            source=str(arm["source"]),
            backend=cast("str | None", arm["backend"]),
            device=cast("str | None", arm["device"]),
            shape=None if shape is None else LayerShape(**shape),  # type: ignore[arg-type]
            roof=None,
            layers=tuple(LayerRow(**layer) for layer in layers),  # type: ignore[arg-type]
            kernels=(),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ManifestError(
            f"stored metrics of kernels are damaged: {error}", hint="measure again: moeprof kernels"
        ) from error
