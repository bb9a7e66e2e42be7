"""The floor: the expert GEMMs of a layer through torch's own grouped GEMM, in bf16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .request import Shape


def build(shape: Shape, device: str) -> Callable[[Any, Any], Any]:
    """Return a function from tokens (batch, hidden) and router logits (batch, experts) to the layer's output."""
    import torch

    std = 0.02
    w13 = torch.randn(shape.experts, shape.hidden, 2 * shape.intermediate, device=device, dtype=torch.bfloat16) * std
    w2 = torch.randn(shape.experts, shape.intermediate, shape.hidden, device=device, dtype=torch.bfloat16) * std

    def run(tokens: Any, logits: Any) -> Any:
        weights, experts = torch.topk(torch.softmax(logits.float(), -1), shape.top_k)
        order = experts.flatten().argsort()
        counts = torch.zeros(shape.experts, device=device, dtype=torch.int32)
        ends = counts.index_add_(0, experts.flatten(), torch.ones_like(experts.flatten(), dtype=torch.int32))
        ends = ends.cumsum(0, dtype=torch.int32)
        source = order // shape.top_k
        gate, up = torch._grouped_mm(tokens[source], w13, offs=ends).chunk(2, -1)
        rows = torch._grouped_mm((torch.nn.functional.silu(gate) * up).contiguous(), w2, offs=ends)
        result = torch.zeros_like(tokens)
        return result.index_add_(0, source, rows * weights.flatten()[order, None].to(rows.dtype))

    return run
