"""Results built by hand: the arms of the H200 traces (base, mega), a CPU-only trace and a trace with nothing in it."""

from __future__ import annotations

from dataclasses import replace

from moeprof.analyzers.accuracy.compare import compare_accuracy
from moeprof.analyzers.accuracy.results import AccuracyRow, Evaluation
from moeprof.analyzers.claims.results import ClaimRow
from moeprof.analyzers.durations import compare as durations
from moeprof.analyzers.durations.results import KernelTimeRow
from moeprof.analyzers.environment.results import EnvironmentRow
from moeprof.analyzers.results import (
    AcrossRanks,
    AgRsPairs,
    ClassCount,
    Coverage,
    Diff,
    DiffSubject,
    GemmPairs,
    IterationCounts,
    KernelCount,
    KernelRow,
    PairChange,
    PairChanges,
    Pairs,
    PerIterationTimes,
    PhaseTimes,
    RankDifference,
    RankReport,
    Report,
    Skew,
    Spread,
    StructureRow,
    Subject,
    TimeRow,
    TimeTotals,
)
from moeprof.analyzers.serving.results import ArmValues, Drift, ServingRow
from moeprof.findings import Finding

ITERATIONS = 22


def _humming(shape: str) -> str:
    tiles = "Shape<56u, 128u, 128u>, Shape<56u, 32u, 64u>, Shape<0u, 0u, 0u>, FloatingPointType<16u, 8u, 7u>"
    types = "LayerConfig, ComputeConfig, TuningConfig"
    return f"void humming<MmaOpClass, {shape}, {tiles}, {types}>(unsigned int const*, CUtensorMap_st*, int*, bool)"


W13 = _humming("Shape<0u, 1024u, 1024u>")
W2 = _humming("Shape<0u, 1024u, 512u>")
ALL_GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
REDUCE_SCATTER = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
MEGA = "kernel_cutlass_mega_moe_fp8_dispatch_gemm_act_gemm_combine_tensorptrf8E4M3FN_gmem_align16_0"
CUTLASS = (
    "void cutlass::device_kernel<vllm::cutlass_3x_gemm_fp8_blockwise<cutlass::bfloat16_t, 1, 128, 128, "
    "cute::tuple<cute::C<128>, cute::C<128>, cute::C<128> >, cutlass::epilogue::TmaWarpSpecializedCooperative, "
    "false>::GemmKernel>(vllm::cutlass_3x_gemm_fp8_blockwise<cutlass::bfloat16_t, 1, 128, 128>::GemmKernel::Params)"
)
ATTENTION = (
    "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90"
    "<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >, cute::tuple<cute::C<64>, cute::C<128>, cute::C<128> > > > > "
    ">(flash::Params)"
)

#: Launches per iteration of the base arm: class, then target, draft, sample. Sums are 1286, 354 and 14.
_BASE = (
    ("moe_gemm", 84, 6, 0),
    ("moe_route", 168, 12, 0),
    ("moe_act", 42, 3, 0),
    ("moe_combine", 42, 3, 0),
    ("dense_gemm", 217, 60, 0),
    ("attention", 86, 9, 0),
    ("kv_cache", 43, 3, 0),
    ("norm", 87, 24, 0),
    ("quant", 172, 18, 0),
    ("all_gather", 42, 3, 0),
    ("reduce_scatter", 42, 3, 0),
    ("sampling", 0, 6, 5),
    ("elementwise", 218, 180, 4),
    ("copy", 36, 18, 5),
    ("other", 7, 6, 0),
)
_MEGA_CHANGES = {"moe_gemm": 0, "moe_route": 0, "moe_act": 0, "moe_combine": 0, "all_gather": 0, "reduce_scatter": 0}

_TIMES = (
    # kernel_sum, kernel_busy, gpu_busy, wall, compute_busy, comm_busy, comm_exposed
    (163730073, 149216974, 149541149, 272447345, 129104388, 21067185, 20112586),
    (180980016, 166066711, 166379601, 285455411, 128331007, 39117220, 37735704),
)


def spread(median: int) -> Spread:
    """Return a spread around a median."""
    return Spread(median, median - median // 50, median + median // 3)


def _counts(mega: bool) -> tuple[ClassCount, ...]:
    rows = []
    for name, *values in _BASE:
        for phase, value in zip(("target", "draft", "sample"), values, strict=True):
            number = _MEGA_CHANGES.get(name, value) if mega and phase == "target" else value
            if number and (name, phase) == ("elementwise", "target"):
                rows.append(ClassCount(name, phase, number * ITERATIONS - 1, number, False, (number - 1, number)))
            elif number:
                rows.append(ClassCount(name, phase, number * ITERATIONS, number, True, (number,)))
    if mega:
        rows.insert(2, ClassCount("moe_fused", "target", 42 * ITERATIONS, 42, True, (42,)))
    return tuple(rows)


def _kernels(mega: bool) -> tuple[KernelCount, ...]:
    rows = [
        (CUTLASS, "dense_gemm", "target", "cutlass", 184, 26100112),
        (ATTENTION, "attention", "target", "fa3", 46, 24816020),
        (ALL_GATHER, "all_gather", "target", "nccl", 42, 13419676),
        (W13, "moe_gemm", "target", "humming", 42, 12009118),
        (W2, "moe_gemm", "target", "humming", 42, 10247003),
        ("void per_token_group_quant_8bit_kernel<c10::BFloat16, true>(int)", "quant", "target", None, 139, 7075444),
        (REDUCE_SCATTER, "reduce_scatter", "target", "nccl", 42, 6548092),
        ("triton_red_fused_3", "elementwise", "target", "triton", 41, 2964001),
        ("triton_poi_fused_mul_silu_slice_0", "moe_act", "target", "triton", 45, 2050310),
        (W13, "moe_gemm", "draft", "humming", 1, 620400),
        (W2, "moe_gemm", "draft", "humming", 1, 551200),
        (ALL_GATHER, "all_gather", "draft", "nccl", 3, 700021),
    ]
    if mega:
        gone = {"moe_gemm", "all_gather", "reduce_scatter"}
        rows = [row for row in rows if row[2] != "target" or row[1] not in gone]
        rows.insert(0, (MEGA, "moe_fused", "target", "flashinfer", 42, 41224388))
    return tuple(
        KernelCount(name, class_, phase, backend, launches * ITERATIONS, launches, total)
        for name, class_, phase, backend, launches, total in rows
    )


def rank_report(index: int = 0, *, mega: bool = False) -> RankReport:
    """Return rank `index` of an arm of the H200 traces."""
    figures = _TIMES[index % 2]
    kernel_sum, _, gpu_busy, wall, *_ = figures
    period = (12166501, 12101102)[index % 2]
    per_iteration = PerIterationTimes(
        iterations=20,
        wall=spread(period),
        gpu_busy=spread(gpu_busy // ITERATIONS),
        kernel_sum=spread(kernel_sum // ITERATIONS),
        comm_exposed=spread(figures[6] // ITERATIONS),
        phases=PhaseTimes(spread(5020118), spread(1502202), spread(81330)),
    )
    target = 0 if mega else 42
    pairs = target + 3
    kernels = 29919 if mega else 36387
    return RankReport(
        rank=f"dp{index}_pp0_tp0_dcp0_ep{index}_rank0",
        source=f"dp{index}_pp0_tp0_dcp0_ep{index}_rank0.pt.trace.json.gz",
        device="NVIDIA H200",
        launch_unit="kernel",
        iterations=IterationCounts("vllm", ITERATIONS, ITERATIONS, 0, 0, 0, 0),
        counts_over="decode",
        counts=_counts(mega),
        kernels=_kernels(mega),
        pairs=Pairs(
            AgRsPairs(target, 3, 0, pairs, pairs * ITERATIONS, 0, 0, 0, True),
            GemmPairs(target, 3, 0, pairs, pairs * ITERATIONS, 0, True),
        ),
        time_ns=TimeTotals(*figures, wall - gpu_busy),
        per_iteration_ns=per_iteration,
        layers=(),
        coverage=Coverage(kernels, kernels, 0, 0, 286, 0.0123, 0),
    )


def report(ranks: int = 2, *, mega: bool = False, findings: tuple[Finding, ...] = ()) -> Report:
    """Return a report of some ranks that agree."""
    reports = tuple(rank_report(index, mega=mega) for index in range(ranks))
    keys = tuple(rank.rank for rank in reports)
    last = {str(key): 990 // ranks for key in keys}
    skew = Skew(990, Spread(412007, 2210, 1830442), Spread(3120, 410, 9021), last) if ranks > 1 else None
    across = AcrossRanks(keys, True if ranks > 1 else None, (), skew)
    source = "traces/h200/mega_derived" if mega else "traces/h200/base"
    return Report(Subject(None, source), reports, across, findings or FINDINGS)


def unequal_report() -> Report:
    """Return a report of two ranks of which the second has another number of launches and a partial iteration."""
    first, second = rank_report(0), rank_report(1)
    counts = tuple(
        replace(row, per_iteration=7, distinct=(7,), total=154)
        if row.class_ == "copy" and row.phase == "sample"
        else row
        for row in second.counts
    )
    iterations = IterationCounts("vllm", 21, 20, 0, 1, 0, 1)
    second = replace(second, counts=counts, iterations=iterations)
    keys = (first.rank, second.rank)
    differences = (RankDifference("launches of copy in sample", {str(keys[0]): 5, str(keys[1]): 7}),)
    return Report(Subject("base", "traces/h200/base"), (first, second), AcrossRanks(keys, False, differences, None), ())


def cpu_report() -> Report:
    """Return a report of a CPU-only trace: operators are counted, there is no GPU time."""
    none = PhaseTimes(None, None, None)
    rank = RankReport(
        rank="dp0_pp0_tp0_dcp0_ep0_rank0",
        source="dp0_pp0_tp0_dcp0_ep0_rank0.pt.trace.json.gz",
        device=None,
        launch_unit="operator",
        iterations=IterationCounts("vllm", 8, 8, 0, 0, 0, 0),
        counts_over="decode",
        counts=(
            ClassCount("moe_gemm", "target", 16, 2, True, (2,)),
            ClassCount("all_gather", "target", 16, 2, True, (2,)),
        ),
        kernels=(KernelCount("vllm::cpu_fused_moe", "moe_gemm", "target", "cpu", 16, 2, 4012334),),
        pairs=Pairs(AgRsPairs(2, 0, 0, 2, 16, 0, 0, 0, True), GemmPairs(2, 0, 0, 2, 16, 0, True)),
        time_ns=TimeTotals(None, None, None, None, None, None, None, None),
        per_iteration_ns=PerIterationTimes(0, None, None, None, None, none),
        layers=(),
        coverage=Coverage(0, 0, 0, 0, 0, None, 0),
    )
    return Report(Subject(None, "cpu/base"), (rank,), AcrossRanks((rank.rank,), None, (), None), ())


def empty_report() -> Report:
    """Return a report of a trace in which nothing was found: no markers, no launches, no GPU rows."""
    cpu = cpu_report()
    rank = replace(
        cpu.ranks[0],
        rank=None,
        source="trace.json",
        iterations=IterationCounts(None, 0, None, None, None, None, 0),
        counts_over=None,
        counts=(),
        kernels=(),
        pairs=Pairs(
            AgRsPairs(None, None, None, None, 0, None, None, None, None),
            GemmPairs(None, None, None, None, 0, None, None),
        ),
    )
    return Report(Subject(None, "trace.json"), (rank,), AcrossRanks((None,), None, (), None), ())


FINDINGS = (
    Finding(
        "start-transient", "note", "the first iteration took 16.90 ms against a median of 12.17 ms and leaves the medians",
        "dp0_pp0_tp0_dcp0_ep0_rank0", {"first_ns": 16900154, "median_ns": 12166501},
    ),
    Finding(
        "not-constant", "warning", "1 of 22 decode iterations has 217 launches of elementwise in target instead of 218: "
        "iteration 19", None, {"iterations": [19]},
    ),
)  # fmt: skip

UNCHANGED = tuple(
    StructureRow(row.class_, row.phase, row.per_iteration, row.per_iteration, "same") for row in _counts(False)
)


def diff() -> Diff:
    """Return the diff of base and mega."""
    changed = [
        StructureRow("moe_fused", "target", 0, 42, "added"),
        StructureRow("moe_gemm", "target", 84, 0, "removed"),
        StructureRow("all_gather", "target", 42, 0, "removed"),
        StructureRow("reduce_scatter", "target", 42, 0, "removed"),
        StructureRow("moe_route", "target", 168, 0, "removed"),
        StructureRow("moe_act", "target", 42, 0, "removed"),
        StructureRow("moe_combine", "target", 42, 0, "removed"),
    ]
    same = [row for row in UNCHANGED if (row.class_, row.phase) not in {(item.class_, item.phase) for item in changed}]
    kernels = (
        KernelRow(MEGA, "moe_fused", "target", 0, 42, 0, 1873836),
        KernelRow(ALL_GATHER, "all_gather", "target", 42, 0, 610021, 0),
        KernelRow(W13, "moe_gemm", "target", 42, 0, 545869, 0),
        KernelRow(W2, "moe_gemm", "target", 42, 0, 465773, 0),
        KernelRow(REDUCE_SCATTER, "reduce_scatter", "target", 42, 0, 297640, 0),
        KernelRow(CUTLASS, "dense_gemm", "target", 184, 184, 1186369, 1186369),
        *(
            KernelRow(f"triton_poi_fused_add_{number}", "elementwise", "target", 1, 0, 900 - number, 0)
            for number in range(14)
        ),
    )
    sums = "kernel sums are not wall-clock time"
    method = "median over the steady iterations of all ranks; one run each, no interval"
    time = (
        TimeRow("wall", None, 12133801, 12133801, 1.0, None, method, "profiled: the host side may bound it"),
        TimeRow("gpu_busy", None, 6798119, 6281840, 0.92405, None, method, ""),
        TimeRow("gpu_busy", "target", 5020118, 4521077, 0.90059, None, method, ""),
        TimeRow("gpu_busy", "draft", 1502202, 1502202, 1.0, None, method, ""),
        TimeRow("gpu_busy", "sample", 81330, 81330, 1.0, None, method, ""),
        TimeRow("kernel_sum", None, 7442276, 6973817, 0.93705, None, method, sums),
        TimeRow("comm_exposed", None, 914208, 101044, 0.11053, None, method, ""),
    )
    return Diff(
        base=DiffSubject(None, "traces/h200/base", 2, 1),
        candidate=DiffSubject(None, "traces/h200/mega_derived", 2, 1),
        summary=(
            "Per decode iteration, 84 moe_gemm launches of the target became 42 moe_fused launches.",
            "AG/RS pairs fell from 45 to 3 per decode iteration; the 3 that stay belong to the drafts.",
            "22 against 22 iterations in the profile window.",
        ),
        structure=(*changed, *same),
        kernels=kernels,
        pairs=PairChanges(PairChange(45, 3), PairChange(45, 3)),
        layers=(),
        time=time,
        serving=(),
        accuracy=(),
        environment=(),
        claims=(),
        verdict="changed",
        findings=(
            Finding("profiled-times", "note", "times come from profiled passes and say nothing about speed", None),
        ),
    )


def serving_row() -> ServingRow:
    """Return a row that is there in every member."""
    return ServingRow(
        metric="output_throughput",
        unit="tok/s",
        better="higher",
        base=ArmValues(4, 101.5, 100.0, 103.0, (100.0, 101.0, 102.0, 103.0), 0.0127, (0, 0, 2, 2)),
        candidate=ArmValues(3, 111.0, 110.0, 112.0, (110.0, 111.0, 112.0), 0.009, (1, 1, 1)),
        change=0.0936,
        interval=(0.0777, 0.1089),
        confidence=0.9429,
        p=0.0571,
        p_floor=0.0571,
        drift=Drift(100.5, 102.5, 0.0199, 0.1045, 0.0829, 0.0936, False),
        label="A/B/A, drifted",
        verdict="improved",
        reason="shown",
        workload="c64",
        gates=True,
        hl=0.0936,
        delta=1.0,
        method="all labellings",
        label_because="the ranges of the A blocks do not overlap",
        worst_not_excluded=0.0777,
        notes=("a note",),
    )


def accuracy_row() -> AccuracyRow:
    """Return a row that is there in every member."""
    outcomes = tuple(number % 10 != 0 for number in range(200))
    base = [Evaluation("gsm8k", 200, (180,), f"base{number}.json", (0,), 5, outcomes) for number in range(2)]
    candidate = [Evaluation("gsm8k", 200, (180,), "mega.json", (1,), 5, outcomes)]
    (row,) = compare_accuracy(base, candidate, margin=0.05)
    (unstated,) = compare_accuracy(base, candidate)
    return replace(row, needed=unstated.needed)


def environment_row() -> EnvironmentRow:
    """Return a row that is there in every member."""
    return EnvironmentRow("git.revision", "abc", "def", True, "base blocks", (0, 2), False, True)


def kernel_time_row() -> KernelTimeRow:
    """Return a kernel that became slower, with every member."""
    return KernelTimeRow(
        "norm", "norm", "target", 42, 42, 50_050, 55_050, 5_000, 1.1, (1.08, 1.12), 1e-6, 1e-5, 1e-4, "slower", False
    )


def tested_time_row() -> TimeRow:
    """Return a time with its test."""
    sides = [[100, 104, 98, 101, 99, 103]], [[120, 118, 123, 119, 122, 121]]
    return TimeRow("wall", None, 100, 120, 1.2, durations.interval(*sides), "", "", durations.compare(*sides))


def claim_row() -> ClaimRow:
    """Return a sentence with its label."""
    return ClaimRow("output throughput rose", "A/B/A, drifted", "4 v 3 passes", "sentence", "output_throughput", "c64")


def same_diff() -> Diff:
    """Return the diff of base with itself."""
    changed = diff()
    return replace(
        changed,
        candidate=changed.base,
        summary=("Nothing changed in structure.",),
        structure=UNCHANGED,
        kernels=(),
        pairs=PairChanges(PairChange(45, 45), PairChange(45, 45)),
        verdict="unchanged",
        findings=(),
    )
