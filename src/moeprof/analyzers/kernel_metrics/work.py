"""What the expert GEMMs of a layer have to compute, from its shape alone."""

from __future__ import annotations

from collections.abc import Sequence

from moeprof.analyzers.kernel_metrics.results import LayerShape


def flops(stage: str, shape: LayerShape, batch: int) -> int | None:
    """Return the floating-point operations of a stage: two for each multiply-add of the token-expert pairs.

    Args:
        stage: ``w13``, ``w2`` or ``fused``; None is returned for others.
        shape: The layer.
        batch: Tokens that enter it, each going to ``top_k`` of its experts.

    >>> flops("w2", LayerShape(hidden=8, intermediate=4, experts=2, top_k=2, weights="bf16"), batch=3)
    384
    """
    one = 2 * batch * shape.top_k * shape.hidden * shape.intermediate
    return {"w13": 2 * one, "w2": one, "fused": 3 * one}.get(stage)


def stages(classes: Sequence[str]) -> list[str]:
    """Return the stage of each kernel of one layer, in order: the first half of its expert GEMMs is w13, the second w2.

    A single expert GEMM, or an odd number of them, does not say which half it is and stays ``moe_gemm``.

    >>> stages(["moe_route", "moe_gemm", "moe_act", "moe_gemm", "moe_fused"])
    ['moe_route', 'w13', 'moe_act', 'w2', 'fused']
    """
    total = sum(name == "moe_gemm" for name in classes)
    seen = 0
    found = []
    for name in classes:
        if name == "moe_gemm" and total % 2 == 0:
            found.append("w13" if seen < total // 2 else "w2")
            seen += 1
        else:
            found.append("fused" if name == "moe_fused" else name)
    return found
