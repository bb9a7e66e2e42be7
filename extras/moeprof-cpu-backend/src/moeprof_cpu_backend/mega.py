"""Plugin ``moeprof_cpu_mega``: each MoE layer of the target model as one operator, `moeprof_demo::mega_moe`.

The operator dispatches, runs both expert GEMMs and combines, with the same results as the path of ``moeprof_cpu_agrs``; draft
(MTP) layers stay on that path. It is slower than what it replaces: its point is the change of structure. As with a fused GPU
kernel nothing inside it is recorded, unless ``MOEPROF_DEMO_MEGA_OPAQUE=0``.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from moeprof_cpu_backend import agrs
from moeprof_cpu_backend.exchange import gather_rows, scatter_sums, to_local_experts

NAMESPACE = "moeprof_demo"
SIGNATURE = (
    "mega_moe(Tensor hidden, Tensor w13, Tensor w2, Tensor weights, Tensor ids, Tensor? expert_map, "
    "str group, int[] sizes, int rank, str activation, str isa) -> Tensor"
)
#: Process groups by the name under which the operator is told of them: an operator takes no objects.
GROUPS: dict[str, Any] = {}


@functools.cache
def define() -> torch.library.Library:
    """Define the operator, once a process; the definition lives as long as the returned library."""
    library = torch.library.Library(NAMESPACE, "DEF")
    library.define(SIGNATURE)
    library.impl("mega_moe", mega_moe, "CPU")
    return library


def mega_moe(
    hidden: Tensor,
    w13: Tensor,
    w2: Tensor,
    weights: Tensor,
    ids: Tensor,
    expert_map: Tensor | None,
    group: str,
    sizes: Sequence[int],
    rank: int,
    activation: str,
    isa: str,
) -> Tensor:
    """Dispatch, both GEMMs, combine."""
    from vllm._custom_ops import cpu_fused_moe

    with _unrecorded():
        hidden, weights, ids = _dispatch(hidden, weights, ids, sizes, GROUPS[group])
        if expert_map is not None:
            ids, weights = to_local_experts(ids, weights, expert_map)
        partial = torch.empty_like(hidden)
        cpu_fused_moe(partial, hidden, w13, w2, None, None, weights, ids, activation, isa, False)
        return scatter_sums(partial, sizes, rank, GROUPS[group])


def _dispatch(hidden: Tensor, weights: Tensor, ids: Tensor, sizes: Sequence[int], group: Any) -> list[Tensor]:
    """Gather tokens and routing of all ranks as one tensor of bytes."""
    parts = (hidden, weights, ids)
    raw = [part.contiguous().view(torch.uint8).flatten(1) for part in parts]
    everything = gather_rows(torch.cat(raw, dim=1), sizes, group)
    columns = everything.split([part.shape[1] for part in raw], dim=1)
    return [
        column.contiguous().view(part.dtype).unflatten(1, part.shape[1:])
        for column, part in zip(columns, parts, strict=True)
    ]


@contextlib.contextmanager
def _unrecorded() -> Iterator[None]:
    """Hide inner operators from the profiler; the switch is the thread's own and goes along with what it hands to gloo."""
    if os.environ.get("MOEPROF_DEMO_MEGA_OPAQUE") == "0":
        yield
        return
    torch.autograd._enable_record_function(False)
    try:
        yield
    finally:
        torch.autograd._enable_record_function(True)


def register() -> None:
    """Send the target's MoE layers through the operator, and bring in ``moeprof_cpu_agrs``. Safe to call again."""
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        return
    agrs.register()
    define()
    from vllm.model_executor.layers.fused_moe.unquantized_fused_moe_method import UnquantizedFusedMoEMethod as Method

    if not hasattr(Method.apply, "_moeprof"):
        _take_over(Method)


def _take_over(method: Any) -> None:
    from vllm.config import get_current_vllm_config
    from vllm.distributed import get_dp_group
    from vllm.forward_context import get_forward_context
    from vllm.logger import init_logger

    logger = init_logger("vllm.moeprof_cpu_mega")
    plain_init, plain_apply = method.__init__, method.apply
    paths: dict[str, bool] = {}

    @functools.wraps(plain_init)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        plain_init(self, *args, **kwargs)
        # Known only while the model is built; the layers of the draft model are numbered on from here.
        self._moeprof_layers = get_current_vllm_config().model_config.hf_text_config.num_hidden_layers

    @functools.wraps(plain_apply)
    def apply(
        self: Any, layer: Any, x: Tensor, topk_weights: Tensor, topk_ids: Tensor, *args: Any, **kwargs: Any
    ) -> Any:
        name = layer.layer_name
        if name not in paths:
            paths[name] = _fits(self, layer)
            logger.info("%s: %s", name, f"{NAMESPACE}::mega_moe" if paths[name] else "AG/RS path")
        if not paths[name]:
            return plain_apply(self, layer, x, topk_weights, topk_ids, *args, **kwargs)
        group = get_dp_group()
        GROUPS[group.unique_name] = group.device_group
        sizes = get_forward_context().dp_metadata.get_chunk_sizes_across_dp_rank()
        return torch.ops.moeprof_demo.mega_moe(
            x,
            layer.w13_weight,
            layer.w2_weight,
            topk_weights,
            topk_ids,
            layer.expert_map,
            group.unique_name,
            [int(size) for size in sizes],
            group.rank_in_group,
            layer.activation.value,
            self.moe_kernel.fused_experts.isa,
        )

    apply._moeprof = True  # type: ignore[attr-defined]
    method.__init__, method.apply = init, apply


def _fits(method: Any, layer: Any) -> bool:
    """Whether a layer belongs to the target, is spread over data-parallel ranks and uses nothing that the operator lacks."""
    from vllm.model_executor.models.utils import extract_layer_index

    experts, parallel = method.moe_kernel.fused_experts, method.moe.moe_parallel_config
    target = extract_layer_index(layer.layer_name) < method._moeprof_layers
    plain = experts.w1_bias is None and experts.w2_bias is None and not getattr(experts, "_use_zentorch", False)
    return bool(
        target and plain and parallel.use_ep and parallel.dp_size > 1 and not layer.apply_router_weight_on_input
    )
