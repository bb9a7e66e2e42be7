"""The program: python .../moeprof_kernels/run.py REQUEST.json. A path, not a module: nsight-python starts it again by its path."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from moeprof_kernels.request import Request, range_name, read

_WARM = 3


def main(path: str) -> int:
    """Measure what a request asks for."""
    request = read(path)
    if request.driver == "nsight-python":
        import nsight  # noqa: F401 - version 1 attaches to the process before CUDA starts

    layer, inputs = _prepare(request)
    if request.driver == "nsight-python":
        _with_nsight_python(request, layer, inputs)
    else:
        _in_ranges(request, layer, inputs)
    return 0


def _prepare(request: Request) -> tuple[Callable[[Any, Any], Any], dict[int, tuple[Any, Any]]]:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(request.seed)
    shape = request.shape
    if request.backend == "torch":
        from moeprof_kernels import grouped

        layer = grouped.build(shape, device)
    else:
        from moeprof_kernels import vllm_layer

        layer = vllm_layer.build(shape, request.backend, device)
    inputs = {
        batch: (
            torch.randn(batch, shape.hidden, device=device, dtype=torch.bfloat16),
            torch.randn(batch, shape.experts, device=device, dtype=torch.bfloat16),
        )
        for batch in request.batches
    }
    with torch.no_grad():
        for tokens, logits in inputs.values():
            for _ in range(_WARM):  # compiles and tunes outside the measured ranges
                output = layer(tokens, logits)
            if output.shape != tokens.shape or not bool(torch.isfinite(output.float()).all()):
                raise SystemExit(f"the layer gave {tuple(output.shape)} with values that are not finite")
    _wait(device)
    print(f"moeprof: layer ready on {device}", file=sys.stderr, flush=True)
    return layer, inputs


def _in_ranges(request: Request, layer: Callable[[Any, Any], Any], inputs: dict[int, tuple[Any, Any]]) -> None:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.no_grad():
        for _ in range(request.runs):
            for batch, (tokens, logits) in inputs.items():
                with _range(range_name(batch), device):
                    layer(tokens, logits)
    _wait(device)


@contextlib.contextmanager
def _range(name: str, device: str) -> Iterator[None]:
    import torch

    if device != "cuda":
        yield
        return
    torch.cuda.nvtx.range_push(name)
    try:
        yield
    finally:
        torch.cuda.nvtx.range_pop()


def _with_nsight_python(request: Request, layer: Callable[[Any, Any], Any], inputs: dict[int, tuple[Any, Any]]) -> None:
    import nsight
    import torch

    @nsight.analyze.kernel(
        configs=[(batch,) for batch in request.batches],
        runs=request.runs,
        metrics=request.metrics,
        combine_kernel_metrics=lambda first, second: first + second,  # its own sum is not used: the report is read
        clock_control="none",
        cache_control="none",
        thermal_mode="off",
        output="quiet",
        output_prefix=request.prefix,
    )
    def moe_layer(batch: int) -> None:
        tokens, logits = inputs[batch]
        with torch.no_grad(), nsight.annotate(range_name(batch)):
            layer(tokens, logits)

    moe_layer()


def _wait(device: str) -> None:
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
