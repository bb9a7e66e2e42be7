"""Reports built by hand: `kernel`, `rank` and `report` fill in everything that a test does not care about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from moeprof.analyzers.results import (
    AcrossRanks,
    AgRsPairs,
    ClassCount,
    Coverage,
    GemmPairs,
    IterationCounts,
    KernelCount,
    Pairs,
    PerIterationTimes,
    PhaseTimes,
    RankReport,
    Report,
    Spread,
    Subject,
    TimeTotals,
)
from moeprof.findings import Finding

RANK_0 = "dp0_pp0_tp0_dcp0_ep0_rank0"
RANK_1 = "dp1_pp0_tp0_dcp0_ep1_rank0"


@dataclass(frozen=True)
class Kernel:
    """A kernel launched `launches` times in every iteration, each launch taking `duration` ns."""

    name: str
    class_: str
    launches: int
    phase: str = "target"
    backend: str | None = None
    duration: int = 1000


def spread(median: int | None) -> Spread | None:
    """Return a spread without width."""
    return None if median is None else Spread(median, median, median)


def pairs(
    ag_rs: tuple[int, int, int] | None = (0, 0, 0),
    moe_gemm: tuple[int, int, int] | None = (0, 0, 0),
    *,
    iterations: int = 10,
    unmatched_ag: int = 0,
) -> Pairs:
    """Return pairs by (target, draft, sample) per iteration; None for a trace without iterations."""
    if ag_rs is None or moe_gemm is None:
        return Pairs(
            AgRsPairs(None, None, None, None, 0, None, None, None, None),
            GemmPairs(None, None, None, None, 0, None, None),
        )
    return Pairs(
        AgRsPairs(*ag_rs, sum(ag_rs), sum(ag_rs) * iterations, unmatched_ag, 0, 0, True),
        GemmPairs(*moe_gemm, sum(moe_gemm), sum(moe_gemm) * iterations, 0, True),
    )


def rank(
    kernels: Iterable[Kernel] = (),
    *,
    key: str | None = RANK_0,
    iterations: int = 10,
    counted: int | None = -1,
    counts_over: str | None = "decode",
    pairs: Pairs = pairs(),  # noqa: B008 - frozen, so one for all calls
    wall: int | None = None,
    gpu_busy: int | None = None,
    kernel_sum: int | None = None,
    phases: PhaseTimes = PhaseTimes(None, None, None),  # noqa: B008 - frozen, so one for all calls
    device_kernels: int = 1,
) -> RankReport:
    """Return a rank whose iterations are all equal; ``iterations=0`` is a trace without iterations (ten launches each).

    Args:
        kernels: What it launches per iteration.
        key: Its key.
        iterations: Iterations counted, all complete and of the kind `counts_over`.
        counted: What the report says of them; -1: as many as `iterations`.
        counts_over: The kind.
        pairs: Its pairs.
        wall: Median per iteration.
        gpu_busy: The same.
        kernel_sum: The same.
        phases: GPU busy by phase.
        device_kernels: `coverage.kernels`; 0 makes it a CPU-only trace.
    """
    kernels = tuple(kernels)
    windows = iterations or 10
    classes: Counter[tuple[str, str]] = Counter()
    for kernel in kernels:
        classes[kernel.class_, kernel.phase] += kernel.launches
    kinds: dict[str, int | None] = dict.fromkeys(("decode", "prefill", "mixed", "idle"), 0)
    if counts_over in kinds:
        kinds[counts_over] = iterations
    return RankReport(
        rank=key,
        source=f"{key}.pt.trace.json.gz",
        device="NVIDIA H200" if device_kernels else None,
        launch_unit="kernel" if device_kernels else "operator",
        iterations=IterationCounts(
            marker="vllm" if iterations else None,
            total=iterations,
            decode=kinds["decode"],
            prefill=kinds["prefill"],
            mixed=kinds["mixed"],
            idle=kinds["idle"],
            partial=0,
            counted=iterations if counted == -1 else counted,
        ),
        counts_over=counts_over if iterations else None,
        counts=tuple(
            ClassCount(
                *key, n * windows, n if iterations else None, True if iterations else None, (n,) if iterations else ()
            )
            for key, n in classes.items()
        ),
        kernels=tuple(
            KernelCount(
                name=kernel.name,
                class_=kernel.class_,
                phase=kernel.phase,
                backend=kernel.backend,
                total=kernel.launches * windows,
                per_iteration=kernel.launches if iterations else None,
                kernel_sum=kernel.launches * windows * kernel.duration,
            )
            for kernel in kernels
            if kernel.class_ not in ("memcpy", "memset")
        ),
        pairs=pairs,
        time_ns=TimeTotals(None, None, None, None, None, None, None, None),
        per_iteration_ns=PerIterationTimes(
            iterations=max(iterations - 1, 0),
            wall=spread(wall),
            gpu_busy=spread(gpu_busy),
            kernel_sum=spread(kernel_sum),
            comm_exposed=None,
            phases=phases,
        ),
        layers=(),
        coverage=Coverage(device_kernels, device_kernels, 0, 0, 0, None, 0),
    )


def report(
    *ranks: RankReport, source: str = "base", arm: str | None = None, findings: tuple[Finding, ...] = ()
) -> Report:
    """Return a report over ranks."""
    across = AcrossRanks(tuple(one.rank for one in ranks), None, (), None)
    return Report(Subject(arm, source), ranks, across, findings)


def renamed(one: Report, source: str) -> Report:
    """Return the same report of another source."""
    return replace(one, subject=replace(one.subject, source=source))


def base_arm(source: str = "base") -> Report:
    """Return the base arm of the grouped-GEMM design in small: 42 target MoE layers, 3 drafts."""
    return report(
        rank(
            [
                Kernel("void humming<Shape<0u, 2048u>>(int*)", "moe_gemm", 42, backend="HUMMING", duration=3000),
                Kernel("void humming<Shape<0u, 1024u>>(int*)", "moe_gemm", 42, backend="HUMMING", duration=2000),
                Kernel("void vllm::moe::moe_sum<float, 4>(float*)", "moe_combine", 42),
                Kernel("ncclDevKernel_AllGather_RING_LL(args<4096ul>)", "all_gather", 42, backend="NCCL"),
                Kernel("ncclDevKernel_ReduceScatter_RING_LL(args)", "reduce_scatter", 42, backend="NCCL"),
                *_draft(),
                Kernel("_rejection_kernel", "sampling", 14, "sample"),
                Kernel("Memcpy HtoD (Pinned -> Device)", "memcpy", 5, "sample"),
            ],
            iterations=22,
            pairs=pairs((42, 3, 0), (42, 3, 0), iterations=22),
            wall=12_133_804,
        ),
        source=source,
    )


def mega_arm(source: str = "mega") -> Report:
    """Return the fused arm of `base_arm`: one launch per target MoE layer, dispatch and combine inside; drafts as they were."""
    return report(
        rank(
            [
                Kernel("sm100_fp8_mega_moe_impl<128>", "moe_fused", 42, backend="DeepGEMM", duration=40_000),
                *_draft(),
                Kernel("_rejection_kernel", "sampling", 14, "sample"),
                Kernel("Memcpy HtoD (Pinned -> Device)", "memcpy", 5, "sample"),
            ],
            iterations=18,
            pairs=pairs((0, 3, 0), (0, 3, 0), iterations=18),
            wall=15_148_820,
        ),
        source=source,
    )


def _draft() -> list[Kernel]:
    return [
        Kernel("void humming<Shape<0u, 2048u>>(int*)", "moe_gemm", 6, "draft", "HUMMING"),
        Kernel("ncclDevKernel_AllGather_RING_LL(args<4096ul>)", "all_gather", 3, "draft", "NCCL"),
        Kernel("ncclDevKernel_ReduceScatter_RING_LL(args)", "reduce_scatter", 3, "draft", "NCCL"),
    ]
