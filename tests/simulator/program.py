"""What a rank does: the steps of a host thread. Times in whole ns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

DENSE = "nvjet_sm90_tst_64x16_64x16_4x1_v_bz_TNT"
EXPERT = "fused_moe_kernel"
SMALL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, std::array<char*, 1ul>>(int)"
GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SCATTER = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
COPY = "Memcpy DtoH (Device -> Pinned)"

MAIN, SIDE = 7, 8


@dataclass(frozen=True, slots=True)
class Host:
    """The host works for a while, without the device."""

    ns: int


@dataclass(frozen=True, slots=True)
class Talk:
    """The host takes part in a collective of its own (gloo)."""

    ns: int


@dataclass(frozen=True, slots=True)
class Launch:
    """Launch one kernel. `overlap` lets it begin that much before its predecessor on the stream ends, at most."""

    name: str
    ns: int
    stream: int = MAIN
    overlap: int = 0


@dataclass(frozen=True, slots=True)
class Replay:
    """Launch a graph: levels of kernels that run beside each other, one level after another."""

    levels: tuple[tuple[tuple[str, int], ...], ...]
    stream: int = MAIN


@dataclass(frozen=True, slots=True)
class Collective:
    """Launch a collective: it ends on all ranks at once, `ns` after the last of them has come."""

    name: str
    ns: int
    stream: int = MAIN


@dataclass(frozen=True, slots=True)
class Depend:
    """What is launched next on `stream` waits for all that is on stream `on`."""

    stream: int
    on: int


@dataclass(frozen=True, slots=True)
class Sync:
    """The host waits until a stream is empty."""

    stream: int = MAIN


Step: TypeAlias = Host | Talk | Launch | Replay | Collective | Depend | Sync
#: The iterations of a rank, each a list of steps.
Program: TypeAlias = list[list[Step]]
