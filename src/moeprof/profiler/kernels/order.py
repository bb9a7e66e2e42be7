"""What is to be measured: one arm's layer, in which Python, with which expert backend."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from moeprof.config.schema import Arm
from moeprof.errors import ConfigError
from moeprof.profiler.backends.flags import parse
from moeprof.profiler.kernels.site.moeprof_kernels.request import Shape

Driver = Literal["nsight-python", "ncu"]

FLOOR = "torch"
_BACKEND = "--moe-backend"
_FUSED = ("mega", "moe_ep")


@dataclass(frozen=True, slots=True)
class LayerOrder:
    """One arm's layer.

    Attributes:
        arm: Its name.
        backend: ``torch`` for the floor, else a value of ``--moe-backend``.
        python: Interpreter that imports torch, and vLLM where the backend is vLLM's.
        env: The arm's variables.
        shape: The layer.
        batches: Tokens that enter it.
        runs: Launches per batch.
        seed: Of weights, tokens and routing.
    """

    arm: str
    backend: str
    python: str
    env: Mapping[str, str]
    shape: Shape
    batches: tuple[int, ...]
    runs: int = 5
    seed: int = 0


def layer_order(
    arm: Arm, shape: Shape, batches: Sequence[int], *, runs: int = 5, python: str | None = None
) -> LayerOrder:
    """Return the order for an arm of a configuration.

    Raises:
        ConfigError: The arm's expert kernel cannot be launched alone.
    """
    backend = next((flag.values[0] for flag in parse(arm.flags) if flag.name == _BACKEND and flag.values), "auto")
    if any(word in backend for word in _FUSED):
        raise ConfigError(
            f"arm {arm.name} uses {backend}, whose launch waits for other ranks: replayed alone by a profiler it would wait for ever",
            hint="its stages alone can be had from an arm without expert parallelism; its time in place: moeprof capture",
        )
    return LayerOrder(arm.name, backend, python or _python(arm), arm.env, shape, tuple(batches), runs)


def floor_order(
    like: LayerOrder | None, shape: Shape, batches: Sequence[int], *, runs: int = 5, python: str | None = None
) -> LayerOrder:
    """Return the order for torch's own grouped GEMM in bf16 on the same layer, in the same Python as `like`."""
    bf16 = Shape(shape.hidden, shape.intermediate, shape.experts, shape.top_k, "bf16")
    chosen = python or (like.python if like else sys.executable)
    return LayerOrder(FLOOR, FLOOR, chosen, like.env if like else {}, bf16, tuple(batches), runs)


def _python(arm: Arm) -> str:
    """Return the Python behind the server's command: the word itself, else the one beside the program, else ours."""
    first = Path(arm.server.command[0]) if arm.server.command else None
    if first is None:
        return sys.executable
    if first.name.startswith("python"):
        return str(first)
    beside = first.parent / "python"
    return str(beside) if first.is_absolute() and beside.exists() else sys.executable
