"""Peaks of devices from ``rules/roofs.toml``, and what they allow."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources

from moeprof.analyzers.kernel_metrics.results import Roof

_FORMATS = {"bf16": "bf16", "fp8_block": "fp8"}


def roof_of(device: str | None, weights: str) -> Roof | None:
    """Return the roofs of a device for the numbers that a layer's weights are in; None where they are not known.

    >>> roof = roof_of("NVIDIA H200", "bf16")
    >>> roof.bytes_per_s
    4800000000000.0
    """
    wanted = _FORMATS.get(weights)
    if device is None or wanted is None:
        return None
    for pattern, memory, peaks in _devices():
        if re.search(pattern, device):
            peak = peaks.get(wanted)
            return None if peak is None else Roof(device, wanted, peak, memory)
    return None


def share(roof: Roof | None, flops: int | None, moved: float | None, duration_ns: float | None) -> float | None:
    """Return the achieved part of the lower of both roofs at this arithmetic intensity.

    >>> share(Roof("d", "bf16", 1e12, 1e12), flops=500, moved=1000.0, duration_ns=2.0)
    0.5
    """
    if roof is None or not flops or not moved or not duration_ns:
        return None
    least_s = max(flops / roof.flops_per_s, moved / roof.bytes_per_s)
    return least_s / (duration_ns * 1e-9)


@cache
def _devices() -> tuple[tuple[str, float, dict[str, float]], ...]:
    text = (resources.files("moeprof.analyzers") / "rules" / "roofs.toml").read_text(encoding="utf-8")
    return tuple((d["pattern"], d["bytes_per_s"], d["flops_per_s"]) for d in tomllib.loads(text)["device"])
