"""Collectives over ranks that hold different numbers of tokens, and the routing of tokens to the experts of one rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def gather_rows(rows: Tensor, sizes: Sequence[int] | None, group: Any) -> Tensor:
    """Return the rows of all ranks, in rank order; gloo gathers equal blocks only, so shorter ones are filled up."""
    rows = rows.contiguous()
    ranks = dist.get_world_size(group)
    block = rows.shape[0] if sizes is None else max(sizes)
    if rows.shape[0] < block:
        rows = torch.cat([rows, rows.new_zeros(block - rows.shape[0], *rows.shape[1:])])
    gathered = rows.new_empty(ranks * block, *rows.shape[1:])
    dist.all_gather_into_tensor(gathered, rows, group=group)
    if sizes is None or min(sizes) == block:
        return gathered
    return torch.cat([part[:size] for part, size in zip(gathered.split(block), sizes, strict=True)])


def scatter_sums(rows: Tensor, sizes: Sequence[int] | None, rank: int, group: Any) -> Tensor:
    """Return this rank's rows of the sum over all ranks, the counterpart of `gather_rows`."""
    ranks = dist.get_world_size(group)
    sizes = [rows.shape[0] // ranks] * ranks if sizes is None else list(sizes)
    block = max(sizes)
    if min(sizes) < block:
        filled = rows.new_zeros(ranks, block, *rows.shape[1:])
        for target, part in zip(filled, rows.split(sizes), strict=True):
            target[: part.shape[0]] = part
        rows = filled.flatten(0, 1)
    mine = rows.new_empty(block, *rows.shape[1:])
    dist.reduce_scatter_tensor(mine, rows.contiguous(), group=group)
    return mine[: sizes[rank]]


def to_local_experts(ids: Tensor, weights: Tensor, expert_map: Tensor) -> tuple[Tensor, Tensor]:
    """Turn global expert ids into indices of local weights; what another rank owns (-1 in the map) gets weight 0 here."""
    local = expert_map[ids.long()]
    return local.clamp_min(0).to(ids.dtype), torch.where(local < 0, torch.zeros_like(weights), weights)
