"""Check the fused operator on two real gloo ranks, with weights of ordinary size.

    python -m moeprof_cpu_backend.selfcheck

For equal and unequal numbers of tokens: `mega_moe` gives the same bits as gathers, local experts and reduce-scatter, and both
are as near to a dense float32 computation as bfloat16 allows. A profile of one call shows one operator with nothing in it.
"""

from __future__ import annotations

import os
import socket
import sys
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

HIDDEN, INNER, EXPERTS, CHOSEN, RANKS = 256, 128, 8, 2, 2
SPLITS = ([6, 6], [7, 2], [1, 8])
TOLERANCE = 0.02


def dense(hidden: Tensor, w13: Tensor, w2: Tensor, weights: Tensor, ids: Tensor) -> Tensor:
    """Compute the layer in float32 with every expert at hand."""
    x = hidden.float()
    up = torch.einsum("eih,th->tei", w13.float(), x)
    gate, value = up.split(INNER, dim=2)
    inner = (torch.nn.functional.silu(gate) * value).bfloat16().float()
    each = torch.einsum("ehi,tei->teh", w2.float(), inner)
    chosen = each.gather(1, ids.long()[:, :, None].expand(-1, -1, HIDDEN))
    return (weights[:, :, None] * chosen).sum(1)


def rank_main(rank: int, port: int, results: Any) -> None:
    """Compare the three ways on one rank, and send what rank 0 saw."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    from vllm.platforms import current_platform

    from moeprof_cpu_backend import agrs, mega
    from moeprof_cpu_backend.exchange import to_local_experts

    current_platform.import_kernels()
    from vllm._custom_ops import cpu_fused_moe, cpu_prepack_moe_weight

    mega.define()
    mega.GROUPS["check"] = dist.group.WORLD
    random = torch.Generator().manual_seed(20)
    w13 = (torch.randn(EXPERTS, 2 * INNER, HIDDEN, generator=random) / 12).bfloat16()
    w2 = (torch.randn(EXPERTS, HIDDEN, INNER, generator=random) / 12).bfloat16()
    share = EXPERTS // RANKS
    own = slice(rank * share, (rank + 1) * share)
    packed = [cpu_prepack_moe_weight(weight[own].contiguous(), "vec") for weight in (w13, w2)]
    expert_map = torch.full((EXPERTS,), -1, dtype=torch.int32)
    expert_map[own] = torch.arange(share, dtype=torch.int32)
    communicator = SimpleNamespace(rank_in_group=rank, device_group=dist.group.WORLD)
    rows: list[tuple[list[int], bool, float]] = []
    call: tuple[Any, ...] = ()
    for sizes in SPLITS:
        total = sum(sizes)
        hidden = torch.randn(total, HIDDEN, generator=random).bfloat16()
        scores = torch.rand(total, EXPERTS, generator=random)
        ids = scores.topk(CHOSEN).indices.int()
        weights = torch.rand(total, CHOSEN, generator=random).softmax(1)
        x, w, i = (tensor.split(sizes)[rank] for tensor in (hidden, weights, ids))
        call = (x, *packed, w, i, expert_map, "check", sizes, rank, "silu", "vec")
        fused = torch.ops.moeprof_demo.mega_moe(*call)
        all_x, all_w, all_i = agrs.all_gatherv(communicator, [x, w, i], sizes=sizes)
        local_i, local_w = to_local_experts(all_i, all_w, expert_map)
        partial = torch.empty_like(all_x)
        cpu_fused_moe(partial, all_x, *packed, None, None, local_w, local_i, "silu", "vec", False)
        plain = agrs.reduce_scatterv(communicator, partial, sizes=sizes)
        exact = dense(x, w13, w2, w, i)
        error = float((fused.float() - exact).abs().max() / exact.abs().max())
        rows.append((sizes, torch.equal(fused, plain), error))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        torch.ops.moeprof_demo.mega_moe(*call)
    if rank == 0:
        results.put((rows, [event.name for event in profile.events()]))
    dist.barrier()
    dist.destroy_process_group()


def main() -> int:
    """Run both ranks; return 0 when all is as it should be."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = torch.multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    ranks = [context.Process(target=rank_main, args=(rank, port, results), daemon=True) for rank in range(RANKS)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(120)
    if any(process.exitcode != 0 for process in ranks):
        print(f"FAILED: the ranks ended with {[process.exitcode for process in ranks]}", file=sys.stderr)
        return 1
    rows, names = results.get()
    good = True
    for sizes, same, error in rows:
        good &= same and error < TOLERANCE
        print(f"tokens {sizes}: same bits as AG/RS: {same}; largest error against float32: {error:.4f}")
    opaque = os.environ.get("MOEPROF_DEMO_MEGA_OPAQUE") != "0"
    inside = len([name for name in names if name != "moeprof_demo::mega_moe"])
    good &= (inside == 0) == opaque
    print(f"recorded inside one call: {inside} operators ({'none' if opaque else 'some'} expected)")
    print("ok" if good else "FAILED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
