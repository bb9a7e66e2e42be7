"""Plugin ``moeprof_cpu_agrs``: what vLLM's all-gather/reduce-scatter expert parallelism lacks on the CPU platform.

vLLM 0.32 accepts ``--data-parallel-size 2 --enable-expert-parallel`` on a CPU and fails in the first MoE layer: the CPU
communicator cannot gather or reduce-scatter, and the CPU experts take global expert ids for local ones.
"""

from __future__ import annotations

import functools
from typing import Any


def register() -> None:
    """Add the two collectives to the CPU communicator and expert maps to the CPU experts. Safe to call again."""
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        return
    from vllm.distributed.device_communicators.cpu_communicator import CpuCommunicator
    from vllm.model_executor.layers.fused_moe.experts.cpu_moe import CPUUnquantizedExperts

    CpuCommunicator.all_gatherv = all_gatherv
    CpuCommunicator.reduce_scatterv = reduce_scatterv
    plain = CPUUnquantizedExperts.apply
    if not hasattr(plain, "_moeprof"):
        CPUUnquantizedExperts.apply = _mapped(plain)


def all_gatherv(self: Any, input_: Any, dim: int = 0, sizes: list[int] | None = None) -> Any:
    """Gather rows of one tensor, or of each tensor of a list, from all ranks of the communicator."""
    from moeprof_cpu_backend.exchange import gather_rows

    _rows_only(dim)
    if isinstance(input_, list):
        return [gather_rows(tensor, sizes, self.device_group) for tensor in input_]
    return gather_rows(input_, sizes, self.device_group)


def reduce_scatterv(self: Any, input_: Any, dim: int = 0, sizes: list[int] | None = None) -> Any:
    """Sum over all ranks and keep this rank's rows."""
    from moeprof_cpu_backend.exchange import scatter_sums

    _rows_only(dim)
    return scatter_sums(input_, sizes, self.rank_in_group, self.device_group)


def _rows_only(dim: int) -> None:
    if dim != 0:
        raise NotImplementedError(f"moeprof-cpu-backend exchanges rows (dim 0) only, not dim {dim}")


def _mapped(plain: Any) -> Any:
    @functools.wraps(plain)
    def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
        from moeprof_cpu_backend.exchange import to_local_experts

        if kwargs["expert_map"] is not None:
            kwargs["topk_ids"], kwargs["topk_weights"] = to_local_experts(
                kwargs["topk_ids"], kwargs["topk_weights"], kwargs["expert_map"]
            )
        return plain(self, *args, **kwargs)

    apply._moeprof = True  # type: ignore[attr-defined]
    return apply
