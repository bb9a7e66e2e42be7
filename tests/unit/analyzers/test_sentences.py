"""The sentences of a diff, and the short forms of kernel names in them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moeprof.analyzers.comparison.compare import compare
from moeprof.wording import NAME_WIDTH, functions
from tests.unit.analyzers.reports import Kernel, base_arm, mega_arm, pairs, rank, renamed, report

NORM = Kernel("rms_norm_kernel", "norm", 10)


def summary(before: list[Kernel], after: list[Kernel]) -> tuple[str, ...]:
    """Return the sentences of two one-rank arms."""
    return compare(report(rank(before)), report(rank(after))).summary


def test_the_fused_arm_is_told_from_the_experts_down_to_the_clock() -> None:
    # GIVEN the arm with grouped GEMMs and the fused arm
    # WHEN compared
    # THEN each sentence holds its numbers, most important first
    assert compare(base_arm(), mega_arm()).summary == (
        "target: MoE GEMM launches 84 -> 0 and fused MoE launches 0 -> 42 per iteration "
        "(42 GEMM pairs -> 42 fused launches)",
        "AG/RS pairs 45 -> 3 per iteration (target 42 -> 0, draft 3 -> 3)",
        "target: MoE combine 42 -> 0 launches per iteration",
        "draft: unchanged (6 MoE GEMM launches, 3 AG/RS pairs)",
        "sample: unchanged (14 kernels)",
        "5 kernels removed, 1 added: -`vllm::moe::moe_sum` x42 (moe_combine, target), "
        "-`humming<Shape<0u, 1024u>>` x42 (moe_gemm, target), -`humming<Shape<0u, 2048u>>` x42 (moe_gemm, target), "
        "-`ncclDevKernel_AllGather_RING_LL` x42 (all_gather, target), "
        "-`ncclDevKernel_ReduceScatter_RING_LL` x42 (reduce_scatter, target); "
        "+`sm100_fp8_mega_moe_impl` x42 (moe_fused, target)",
        "kernels per iteration 236 -> 68",
        "iteration wall median 12.13 ms -> 15.15 ms under the profiler (not a speed claim)",
        "figures are per iteration: base counts 22 iterations a rank, candidate 18",
    )


def test_the_way_back_from_the_fused_arm_reads_the_other_way() -> None:
    # GIVEN the fused arm as base
    # WHEN compared
    sentences = compare(mega_arm(), base_arm()).summary
    # THEN fused launches become GEMM pairs
    assert sentences[0] == (
        "target: MoE GEMM launches 0 -> 84 and fused MoE launches 42 -> 0 per iteration "
        "(42 fused launches -> 42 GEMM pairs)"
    )
    assert sentences[1] == "AG/RS pairs 3 -> 45 per iteration (target 0 -> 42, draft 3 -> 3)"


def test_more_gemms_in_the_same_way_name_their_pairs() -> None:
    # GIVEN arms with 42 and 40 GEMM pairs
    base = report(rank([Kernel("g", "moe_gemm", 84)], pairs=pairs((0, 0, 0), (42, 0, 0))))
    candidate = report(rank([Kernel("g", "moe_gemm", 80)], pairs=pairs((0, 0, 0), (40, 0, 0))))
    # WHEN compared
    # THEN no fused launch is spoken of
    assert compare(base, candidate).summary[0] == (
        "target: MoE GEMM launches 84 -> 80 per iteration (GEMM pairs 42 -> 40)"
    )


def test_gemm_pairs_alone_are_told() -> None:
    # GIVEN equal launches of which one arm's hold both GEMMs
    base = report(rank([Kernel("g", "moe_gemm", 42)], pairs=pairs((0, 0, 0), (21, 0, 0))))
    candidate = report(rank([Kernel("g", "moe_gemm", 42)], pairs=pairs((0, 0, 0), (42, 0, 0))))
    # WHEN compared
    # THEN the pairs are what changed
    assert compare(base, candidate).summary[0] == "target: GEMM pairs 21 -> 42 per iteration"


def test_gemm_pairs_that_changed_in_no_single_phase_are_told() -> None:
    # GIVEN ranks that have their one pair in different phases, and an arm without pairs
    ranks = [
        rank([NORM], key=key, pairs=pairs((0, 0, 0), where))
        for key, where in (("a", (1, 0, 0)), ("b", (0, 1, 0)), ("c", (0, 0, 1)))
    ]
    # WHEN compared
    sentences = compare(report(*ranks), report(rank([NORM], key="a"), rank([NORM], key="b"))).summary
    # THEN each phase's value is that of the two ranks without, and the sum is told
    assert sentences[0] == "GEMM pairs 1 -> 0 per iteration"


def test_a_backend_that_changed_alike_in_two_phases_is_one_sentence() -> None:
    # GIVEN target and draft GEMMs of one backend, then of another
    def arm(name: str, backend: str) -> list[Kernel]:
        return [Kernel(name, "moe_gemm", 84, backend=backend), Kernel(name, "moe_gemm", 6, "draft", backend)]

    # WHEN compared
    sentences = summary(arm("humming", "HUMMING"), arm("fused_moe_kernel", "Triton"))
    # THEN one sentence names both phases
    assert sentences == (
        "MoE GEMM backend: HUMMING -> Triton (target, draft)",
        "2 kernels removed, 2 added: -`humming` x84 (moe_gemm, target), -`humming` x6 (moe_gemm, draft); "
        "+`fused_moe_kernel` x84 (moe_gemm, target), +`fused_moe_kernel` x6 (moe_gemm, draft)",
        "kernels per iteration 90 -> 90",
    )


def test_communication_that_stayed_is_told_with_its_numbers() -> None:
    # GIVEN arms that differ in a norm only
    comm = [Kernel("ag", "all_gather", 45), Kernel("rs", "reduce_scatter", 45), Kernel("ar", "all_reduce", 2, "sample")]
    base = report(rank([NORM, *comm], pairs=pairs((42, 3, 0))))
    candidate = report(rank([*comm], pairs=pairs((42, 3, 0))))
    # WHEN compared
    # THEN communication is unchanged, over all phases
    assert compare(base, candidate).summary[:2] == (
        "target: norm 10 -> 0 launches per iteration",
        "communication: unchanged (45 AG/RS pairs, 45 all-gather, 45 reduce-scatter, 2 all-reduce launches)",
    )


def test_communication_by_other_kernels_is_not_called_unchanged() -> None:
    # GIVEN arms whose all-reduces are other kernels
    # WHEN compared
    sentences = summary([Kernel("one_shot", "all_reduce", 96)], [Kernel("two_shot", "all_reduce", 96)])
    # THEN the counts are equal, the kernels are not
    assert sentences[0] == "communication: equal counts by other kernels (96 all-reduce launches)"


def test_communication_that_changed_in_one_phase_is_not_called_unchanged() -> None:
    # GIVEN an arm in which all-reduces moved from target to sample
    # WHEN compared
    sentences = summary([Kernel("ar", "all_reduce", 2)], [Kernel("ar", "all_reduce", 2, "sample")])
    # THEN the changes are told by phase
    assert sentences[:2] == (
        "target: all-reduce 2 -> 0 launches per iteration",
        "sample: all-reduce 0 -> 2 launches per iteration",
    )


def test_unmatched_gathers_are_told() -> None:
    # GIVEN an arm with gathers that belong to no pair
    base = report(rank([NORM, Kernel("ag", "all_gather", 4)], pairs=pairs(unmatched_ag=4)))
    # WHEN compared with one without
    # THEN both the launches and their being unmatched are told
    assert compare(base, report(rank([NORM]))).summary[:2] == (
        "unmatched all-gathers 4 -> 0 per iteration",
        "target: all-gather 4 -> 0 launches per iteration",
    )


def test_at_most_six_kernels_are_named_on_a_side_and_the_rest_counted() -> None:
    # GIVEN eight kernels that went, of which two are of one function
    names = [("a", 9), ("b", 8), ("c", 7), ("d", 6), ("e", 5), ("void f<1>()", 4), ("void f<2>()", 3), ("g", 1)]
    # WHEN compared
    sentences = summary([NORM, *(Kernel(name, "copy", n) for name, n in names)], [NORM])
    # THEN the most launched ones are named, each for itself
    assert (
        "8 kernels removed: -`a` x9 (copy, target), -`b` x8 (copy, target), -`c` x7 (copy, target), "
        "-`d` x6 (copy, target), -`e` x5 (copy, target), -`f<1>` x4 (copy, target), 2 more removed"
    ) in sentences


def test_the_rest_counts_kernels_and_not_short_names() -> None:
    # GIVEN six kernels launched often, and two of one short name launched once each
    often = [Kernel(name, "copy", 9) for name in "abcdef"]
    seldom = [Kernel("void g<1>()", "copy", 1), Kernel("void g<2>()", "copy", 1)]
    # WHEN they are new in an arm
    sentences = summary([NORM], [NORM, *often, *seldom])
    # THEN the two that are not named are counted as two
    assert next(text for text in sentences if text.startswith("8 kernels added")).endswith(
        "+`f` x9 (copy, target), 2 more added"
    )


def test_a_phase_whose_pairs_changed_is_not_called_unchanged() -> None:
    # GIVEN arms of equal launches that pair them in one phase otherwise
    kernels = [NORM, Kernel("s", "sampling", 2, "sample")]
    base, candidate = (report(rank(kernels, pairs=pairs((pairs_there, 0, 0)))) for pairs_there in (4, 5))
    # WHEN compared
    # THEN only the other phase is unchanged
    assert compare(base, candidate).summary == (
        "AG/RS pairs 4 -> 5 per iteration (target 4 -> 5)",
        "sample: unchanged (2 kernels)",
        "kernels per iteration 12 -> 12",
    )


def test_kernels_launched_more_or_less_often_are_told() -> None:
    # GIVEN arms in which one template takes launches of another
    # WHEN compared
    sentences = summary(
        [Kernel("void g<1>()", "norm", 43), Kernel("void g<2>()", "norm", 2)],
        [Kernel("void g<1>()", "norm", 41), Kernel("void g<2>()", "norm", 4)],
    )
    # THEN both are named although their class is the same
    assert sentences == (
        "2 kernels launched a different number of times: `g<1>` 43 -> 41 (norm, target), `g<2>` 2 -> 4 (norm, target)",
        "kernels per iteration 45 -> 45",
    )


def test_operators_are_not_called_kernels() -> None:
    # GIVEN traces without a device
    base = report(rank([Kernel("aten::mm", "dense_gemm", 3)], device_kernels=0))
    candidate = report(rank([Kernel("aten::mm", "dense_gemm", 4)], device_kernels=0))
    # WHEN compared
    # THEN launches are of operators
    assert compare(base, candidate).summary[-1] == "operators per iteration 3 -> 4"


def test_copies_alone_are_not_called_operators() -> None:
    # GIVEN captures of a GPU on which only copies ran
    one = rank([Kernel("Memcpy HtoD", "memcpy", 3)])
    base = replace(one, coverage=replace(one.coverage, kernels=0, linked=0))
    # WHEN compared
    # THEN it is kernels that there are none of
    assert compare(report(base), report(base)).summary == (
        "nothing changed: 1 class, 0 kernels, equal counts per iteration",
    )


def test_nothing_changed_says_over_how_much() -> None:
    # GIVEN the same arm from two sources
    # WHEN compared
    # THEN the first sentence says how much is equal
    assert compare(base_arm(), renamed(base_arm(), "other")).summary == (
        "nothing changed: 6 classes, 6 kernels, equal counts per iteration",
        "iteration wall median 12.13 ms -> 12.13 ms under the profiler (not a speed claim)",
    )


def test_nothing_changed_without_iterations_speaks_of_windows() -> None:
    # GIVEN a window without iterations
    one = report(rank([NORM], iterations=0, pairs=pairs(None)))
    # WHEN compared with itself
    # THEN nothing is said per iteration
    assert compare(one, one).summary == (
        "nothing changed: 1 class, 1 kernel, equal counts in the whole windows (no iterations)",
    )


def test_arms_that_cannot_be_compared_get_the_reason_only() -> None:
    # GIVEN a candidate without iterations
    candidate = report(rank([NORM], iterations=0, pairs=pairs(None)))
    # WHEN compared with the base arm
    # THEN no figure is set against another
    assert compare(base_arm(), candidate).summary == (
        "not comparable: candidate has no iterations with counts, base has 22 a rank",
    )


def test_ranks_with_other_numbers_of_iterations_are_told_as_a_range() -> None:
    # GIVEN ranks of 20 and 22 iterations against one of 18
    base = report(rank([NORM], key="a", iterations=22), rank([NORM], key="b", iterations=20))
    # WHEN compared
    # THEN the range is given
    assert compare(base, report(rank([NORM], iterations=18))).summary[-1] == (
        "figures are per iteration: base counts 20 to 22 iterations a rank, candidate 18"
    )


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("_rejection_kernel", "_rejection_kernel"),
        ("void humming<Shape<0u, 2048u, 1024u>, Stage<(int)4>>(int*)", "humming"),
        (
            "void at::native::(anonymous namespace)::CatArrayBatchedCopy<int, 1>(int*, (anonymous namespace)::T)",
            "at::native::CatArrayBatchedCopy",
        ),
        ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int>(int)", "internal::gemvx::kernel"),
        ("void cub::detail::for_each::{lambda(int)#1}::run<A<B<C>>>(x)", "cub::detail::for_each::::run"),
        ("void f<decltype(a->b), 3>(int)", "f"),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_AllGather_RING_LL"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"),
        ("<unnamed>", "<unnamed>"),
        ("", ""),
        ("_ZN7cutlass" + "x" * 100, "_ZN7cutlass" + "x" * 25 + "…" + "x" * 23),
    ],
)
def test_short_names_keep_the_function(name: str, short: str) -> None:
    # GIVEN a full kernel name
    # WHEN shortened
    # THEN return type, template arguments and parameters are gone
    assert functions([name]) == {name: short}
    assert len(short) <= NAME_WIDTH


def test_names_of_one_function_show_what_tells_them_apart() -> None:
    # GIVEN the two GEMMs of one template, whose difference stands behind a long common head
    w13, w2 = (f"void humming<MmaOpClass, Shape<0u, {n}u, 1024u>, {'Tile<8u>, ' * 9}Config>(int*)" for n in (1024, 512))
    # WHEN shortened THEN they stay two names
    assert functions([w13, w2]) == {
        w13: "humming<MmaOpClass, Shape<0u, 1024u, 1024u>, Ti…",
        w2: "humming<MmaOpClass, Shape<0u, 512u, 1024u>, Til…",
    }
