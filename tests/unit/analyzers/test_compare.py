"""`compare`: rows, verdicts and findings of hand-built reports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moeprof.analyzers.comparison.compare import compare
from moeprof.analyzers.comparison.differences import METHOD
from moeprof.analyzers.results import (
    ClassCount,
    Diff,
    DiffSubject,
    KernelCount,
    PairChange,
    PhaseTimes,
    Report,
    StructureRow,
)
from moeprof.findings import Finding
from tests.unit.analyzers.reports import (
    RANK_0,
    RANK_1,
    Kernel,
    base_arm,
    mega_arm,
    pairs,
    rank,
    renamed,
    report,
    spread,
)

GEMM = Kernel("humming", "moe_gemm", 84, backend="HUMMING")
NORM = Kernel("rms_norm_kernel", "norm", 10)


def found(result: Diff, slug: str) -> list[Finding]:
    """Return the findings of one slug."""
    return [one for one in result.findings if one.slug == slug]


def test_structure_is_the_union_by_phase_then_class() -> None:
    # GIVEN an arm with grouped GEMMs and one with fused launches
    # WHEN they are compared
    rows = compare(base_arm(), mega_arm()).structure
    # THEN every class and phase of either side has its row, 0 where it is absent
    assert rows == (
        StructureRow("moe_gemm", "target", 84, 0, "removed"),
        StructureRow("moe_fused", "target", 0, 42, "added"),
        StructureRow("moe_combine", "target", 42, 0, "removed"),
        StructureRow("all_gather", "target", 42, 0, "removed"),
        StructureRow("reduce_scatter", "target", 42, 0, "removed"),
        StructureRow("moe_gemm", "draft", 6, 6, "same"),
        StructureRow("all_gather", "draft", 3, 3, "same"),
        StructureRow("reduce_scatter", "draft", 3, 3, "same"),
        StructureRow("sampling", "sample", 14, 14, "same"),
        StructureRow("memcpy", "sample", 5, 5, "same"),
    )


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [(0, 3, "added"), (3, 0, "removed"), (3, 4, "more"), (4, 3, "fewer"), (3, 3, "same"), (0, 0, "same")],
)
def test_change_of_a_class(before: int, after: int, change: str) -> None:
    # GIVEN a class launched `before` times in one arm and `after` times in the other, beside another class
    base = report(rank([NORM, Kernel("k", "quant", before)]))
    candidate = report(rank([NORM, Kernel("k", "quant", after)]))
    # WHEN they are compared
    rows = compare(base, candidate).structure
    # THEN the change says which way
    assert [row.change for row in rows if row.class_ == "quant"] == [change]


def test_kernels_come_by_largest_difference_of_kernel_sum_in_either_direction() -> None:
    # GIVEN kernels whose sums per iteration fall by 500, rise by 700, and stay
    base = report(rank([Kernel("a", "norm", 1, duration=900), Kernel("b", "norm", 1, duration=100), NORM]))
    candidate = report(rank([Kernel("a", "norm", 1, duration=400), Kernel("b", "norm", 1, duration=800), NORM]))
    # WHEN they are compared
    rows = compare(base, candidate).kernels
    # THEN the largest distance is first
    assert [(row.name, row.base_kernel_sum, row.candidate_kernel_sum) for row in rows] == [
        ("b", 100, 800),
        ("a", 900, 400),
        ("rms_norm_kernel", 10_000, 10_000),
    ]


def test_a_kernel_of_one_side_only_is_0_on_the_other() -> None:
    # GIVEN a kernel that only the candidate launches
    # WHEN the arms are compared
    row = next(row for row in compare(base_arm(), mega_arm()).kernels if row.class_ == "moe_fused")
    # THEN both its count and its sum are 0 in the base
    assert (row.base, row.candidate, row.base_kernel_sum, row.candidate_kernel_sum) == (0, 42, 0, 42 * 40_000)


@pytest.mark.parametrize(("total", "expected"), [(5, 2), (15, 8), (25, 12), (27, 14), (24, 12)])
def test_kernel_sum_per_iteration_is_over_all_ranks_rounded_half_to_even(total: int, expected: int) -> None:
    # GIVEN two ranks of one counted iteration each, the sums of a kernel adding up to `total` ns
    one = rank([Kernel("k", "norm", 1, duration=total - 1)], iterations=1)
    two = rank([Kernel("k", "norm", 1, duration=1)], key=RANK_1, iterations=1)
    # WHEN the report is compared
    row = compare(report(one, two), report(one, two)).kernels[0]
    # THEN the total is divided by two iterations: 2.5 -> 2, 7.5 -> 8, 12.5 -> 12, 13.5 -> 14
    assert row.base_kernel_sum == expected


def test_counted_iterations_are_derived_where_the_report_does_not_say() -> None:
    # GIVEN a report that does not state how many of its 20 iterations it counts, one of them being partial
    one = rank([Kernel("k", "norm", 3, duration=100)], iterations=8, counted=None)
    one = replace(one, iterations=replace(one.iterations, total=20, mixed=11, partial=1))
    # WHEN it is compared
    row = compare(report(one), report(one)).kernels[0]
    # THEN a class of constant count tells: 24 launches at 3 an iteration are 8 iterations
    assert row.base_kernel_sum == 300


def test_kernel_sum_is_none_where_nothing_tells_the_iterations() -> None:
    # GIVEN a report that neither states its counted iterations nor has a class of constant count, and a partial one
    one = rank([Kernel("k", "norm", 3)], iterations=8, counted=None)
    varying = tuple(replace(row, constant=False, distinct=(2, 3)) for row in one.counts)
    one = replace(one, counts=varying, iterations=replace(one.iterations, partial=1, total=9))
    # WHEN it is compared
    row = compare(report(one), report(one)).kernels[0]
    # THEN its count is known and its sum per iteration is not
    assert (row.base, row.base_kernel_sum) == (3, None)


def test_the_most_frequent_value_over_ranks_stands_for_a_side() -> None:
    # GIVEN three ranks of which one launches a class more often
    ranks = [rank([Kernel("k", "norm", n)], key=f"rank{i}") for i, n in enumerate((11, 10, 10))]
    # WHEN compared with an arm of one value
    result = compare(report(*ranks), report(rank([NORM])))
    # THEN the most frequent value is the base's, and a finding gives the values by rank
    assert result.structure == (StructureRow("norm", "target", 10, 10, "same"),)
    findings = found(result, "ranks-differ")
    assert findings[0].evidence == {
        "side": "base",
        "class": "norm",
        "phase": "target",
        "values": {"rank0": 11, "rank1": 10, "rank2": 10},
    }
    assert (findings[0].severity, findings[0].rank) == ("warning", None)


def test_ranks_that_disagree_evenly_give_the_figures_of_one_of_them() -> None:
    # GIVEN two ranks, each with more of something than the other
    one = rank([Kernel("k", "norm", 9), Kernel("q", "quant", 1)], key="rank0", pairs=pairs((42, 2, 0)))
    other = rank([Kernel("k", "norm", 4), Kernel("q", "quant", 3)], key="rank1", pairs=pairs((42, 3, 0)))
    for order in ((one, other), (other, one)):
        # WHEN either order is compared
        result = compare(report(*order), report(rank([NORM])))
        # THEN the figures are all those of the first by name, a set that this rank has, and the finding says so
        assert [(row.class_, row.base) for row in result.structure] == [("norm", 9), ("quant", 1)]
        assert {row.name: row.base for row in result.kernels if row.base} == {"k": 9, "q": 1}
        assert result.pairs.ag_rs.base == 44
        assert all("rank0" in finding.message.split(";")[1] for finding in found(result, "ranks-differ"))


def test_the_rank_that_agrees_with_most_others_decides_where_all_differ() -> None:
    # GIVEN three ranks of which the first stands alone in one figure, and all differ in another
    ranks = [
        rank([Kernel("k", "norm", norm), Kernel("q", "quant", quant)], key=f"rank{number}")
        for number, (norm, quant) in enumerate([(1, 5), (2, 6), (2, 7)])
    ]
    # WHEN compared THEN the most frequent value is kept, and the other figure comes from a rank that has it
    result = compare(report(*ranks), report(rank([NORM])))
    assert [(row.class_, row.base) for row in result.structure] == [("norm", 2), ("quant", 6)]


def test_a_class_absent_from_one_rank_counts_as_0_there() -> None:
    # GIVEN a class that one of three ranks launches
    ranks = [rank([NORM], key="rank0"), rank([NORM], key="rank1"), rank([NORM, Kernel("q", "quant", 2)], key="rank2")]
    # WHEN compared with itself
    result = compare(report(*ranks), report(*ranks))
    # THEN the side's value is 0, and the ranks are told apart
    assert [row.base for row in result.structure if row.class_ == "quant"] == [0]
    values = [one.evidence["values"] for one in found(result, "ranks-differ") if one.evidence.get("class") == "quant"]
    assert values == [{"rank0": 0, "rank1": 0, "rank2": 2}] * 2


def test_kernels_that_differ_between_ranks_are_listed_in_one_finding() -> None:
    # GIVEN two ranks that launch other kernels of one class equally often
    ranks = [rank([Kernel(name, "norm", 5)], key=name) for name in ("a", "b")]
    # WHEN compared
    findings = found(compare(report(*ranks), report(rank([NORM]))), "ranks-differ")
    # THEN one finding lists both kernels, and the class is no finding
    assert [[kernel["name"] for kernel in one.evidence["kernels"]] for one in findings] == [["a", "b"]]  # type: ignore[index, union-attr, call-overload]  # evidence is JSON


def test_pairs_that_differ_between_ranks_are_a_finding() -> None:
    # GIVEN ranks with 3 and 2 AG/RS pairs in the drafts
    ranks = [rank([NORM], key=f"rank{n}", pairs=pairs((42, n, 0))) for n in (3, 2)]
    # WHEN compared with itself
    result = compare(report(*ranks), report(*ranks))
    # THEN the figures that differ are named on each side, one rank's values standing for the side
    told = {(one.evidence["side"], one.evidence["figure"]) for one in found(result, "ranks-differ")}
    assert told == {(side, figure) for side in ("base", "candidate") for figure in ("per_iteration", "draft")}
    assert result.pairs.ag_rs == PairChange(44, 44)  # of rank2, the first by name


def test_pairs_are_per_iteration() -> None:
    # GIVEN arms of 22 and 18 iterations
    # WHEN compared
    result = compare(base_arm(), mega_arm())
    # THEN pairs are the arms' values per iteration, not totals
    assert (result.pairs.ag_rs, result.pairs.moe_gemm) == (PairChange(45, 3), PairChange(45, 3))


def test_a_report_against_itself_is_unchanged_without_findings() -> None:
    # GIVEN a report
    # WHEN compared with itself
    result = compare(base_arm(), base_arm())
    # THEN all rows are the same and there is nothing to say
    assert result.verdict == "unchanged"
    assert {row.change for row in result.structure} == {"same"}
    assert result.findings == ()


def test_equal_counts_of_other_kernels_are_a_change() -> None:
    # GIVEN arms that launch other kernels of one class equally often, from different backends
    base = report(rank([GEMM, NORM]))
    candidate = report(rank([Kernel("fused_moe_kernel", "moe_gemm", 84, backend="Triton"), NORM]), source="triton")
    # WHEN compared
    result = compare(base, candidate)
    # THEN the verdict is changed although each class is the same, and the backends are a note
    assert result.verdict == "changed"
    assert {row.change for row in result.structure} == {"same"}
    (note,) = found(result, "backend-changed")
    assert note.severity == "note"
    assert note.evidence == {"class": "moe_gemm", "phase": "target", "base": ["HUMMING"], "candidate": ["Triton"]}
    assert not found(result, "arms-equal")


def test_a_class_that_one_side_lacks_has_no_changed_backend() -> None:
    # GIVEN an arm without target GEMMs
    # WHEN compared with one that has them
    # THEN their backend has not changed: they are gone
    assert not found(compare(base_arm(), mega_arm()), "backend-changed")


def test_pairs_alone_can_change() -> None:
    # GIVEN arms with equal kernels of which one pairs them in another way
    base = report(rank([NORM], pairs=pairs((42, 0, 0))))
    candidate = report(rank([NORM], pairs=pairs((40, 2, 0))))
    # WHEN compared
    # THEN that is a change
    assert compare(base, candidate).verdict == "changed"


def test_different_sources_with_equal_kernels_are_warned_of() -> None:
    # GIVEN the same kernels from two sources
    # WHEN compared
    result = compare(base_arm("base"), renamed(base_arm(), "mega"))
    # THEN nothing changed, and a warning says that the flag had no effect
    (warning,) = found(result, "arms-equal")
    assert (result.verdict, warning.severity) == ("unchanged", "warning")
    assert warning.evidence == {"base": "base", "candidate": "mega", "kernels": 9}


def test_counts_over_other_kinds_are_not_comparable() -> None:
    # GIVEN counts over decode and over prefill iterations
    # WHEN compared
    result = compare(report(rank([NORM], wall=100)), report(rank([NORM], wall=100, counts_over="prefill")))
    # THEN there is no verdict on the arms, no ratio, and the reason is a finding
    assert result.verdict == "not_comparable"
    assert [one.message for one in found(result, "not-comparable")] == [
        "not comparable: base counts over decode iterations, candidate over prefill"
    ]
    assert {row.ratio for row in result.time} == {None}


def test_operators_are_not_held_against_kernels() -> None:
    # GIVEN the same launches, of a device and of a CPU-only trace
    # WHEN compared
    result = compare(report(rank([NORM])), report(rank([NORM], device_kernels=0)))
    # THEN they are not called equal
    assert (result.verdict, result.summary) == (
        "not_comparable",
        ("not comparable: base launches kernels, candidate operators",),
    )


def test_a_side_without_iterations_has_no_data_rather_than_0() -> None:
    # GIVEN a candidate without iterations
    # WHEN compared with an arm that has them
    result = compare(
        report(rank([NORM])), report(rank([NORM, Kernel("q", "quant", 1)], iterations=0, pairs=pairs(None)))
    )
    # THEN its values are None and so are the changes
    assert result.structure == (
        StructureRow("norm", "target", 10, None, None),
        StructureRow("quant", "target", 0, None, None),
    )
    assert {(row.candidate, row.candidate_kernel_sum) for row in result.kernels} == {(None, None)}
    assert result.verdict == "not_comparable"
    assert len(found(result, "not-comparable")) == 1


def test_windows_without_iterations_are_unchanged_only_when_totals_are_equal() -> None:
    # GIVEN three windows without iterations, two of them equal
    def window(launches: int) -> Diff:
        one = report(rank([NORM], iterations=0, pairs=pairs(None)))
        return compare(one, report(rank([Kernel(NORM.name, "norm", launches)], iterations=0, pairs=pairs(None))))

    # WHEN compared
    equal, other = window(10), window(11)
    # THEN equal totals are unchanged with a finding, others are not comparable
    assert (equal.verdict, [one.slug for one in equal.findings]) == ("unchanged", ["no-iterations"])
    assert (other.verdict, [one.slug for one in other.findings]) == ("not_comparable", ["not-comparable"])


@pytest.mark.parametrize("iterations", [0, 10])
@pytest.mark.parametrize("kernels", [(), (NORM,)])
def test_the_same_contents_are_unchanged_under_any_name(iterations: int, kernels: tuple[Kernel, ...]) -> None:
    # GIVEN a capture with or without launches, with or without iterations
    one = rank(kernels, iterations=iterations, pairs=pairs(None) if not iterations else pairs())
    copy = replace(one, rank="rank7", source="copy.json")
    # WHEN it is compared with itself and with its copy THEN both are unchanged
    for other in (report(one), report(copy, source="copy")):
        result = compare(report(one), other)
        assert result.verdict == "unchanged"
        assert result.summary[0].startswith("nothing changed: ")
        assert not found(result, "not-comparable")


def test_two_sides_without_launches_that_differ_are_not_comparable() -> None:
    # GIVEN reports without a single launch, of different devices
    other = replace(rank(iterations=0, pairs=pairs(None)), device="NVIDIA B200")
    # WHEN compared
    result = compare(report(rank(iterations=0, pairs=pairs(None))), report(other))
    # THEN that is not called unchanged
    assert (result.verdict, result.summary) == (
        "not_comparable",
        ("not comparable: neither side has launches to compare",),
    )


def test_a_class_without_data_is_not_called_unchanged() -> None:
    # GIVEN an arm whose quant launches have no value per iteration
    one = rank([NORM, Kernel("q", "quant", 2)])
    counts = tuple(
        replace(row, per_iteration=None, constant=None) if row.class_ == "quant" else row for row in one.counts
    )
    # WHEN compared with the same arm, values and all
    result = compare(report(replace(one, counts=counts)), report(one))
    # THEN what is equal is not enough for a verdict
    assert result.verdict == "not_comparable"
    assert result.summary == ("not comparable: 1 of 16 figures have no data on a side, and the others are equal",)


def test_a_difference_counts_even_where_other_figures_have_no_data() -> None:
    # GIVEN arms that differ in a norm, one of them without a value for quant
    one = rank([NORM, Kernel("q", "quant", 2)])
    counts = tuple(
        replace(row, per_iteration=None, constant=None) if row.class_ == "quant" else row for row in one.counts
    )
    other = report(rank([Kernel(NORM.name, "norm", 11), Kernel("q", "quant", 2)]))
    # WHEN compared
    result = compare(report(replace(one, counts=counts)), other)
    # THEN the arms are known to differ
    assert result.verdict == "changed"
    assert [(row.base, row.change) for row in result.structure] == [(10, "more"), (None, None)]


def test_a_graph_level_capture_has_no_counts() -> None:
    # GIVEN a base whose capture recorded whole graphs
    graph_level = Finding("graph-level-capture", "warning", "whole graphs were recorded")
    # WHEN compared with an arm of single kernels
    result = compare(report(rank([NORM]), findings=(graph_level,)), report(rank([NORM])))
    # THEN its few kernels are not taken for counts
    assert [row.base for row in result.structure] == [None]
    assert result.verdict == "not_comparable"


def test_a_rank_of_another_kind_is_left_out_with_a_finding() -> None:
    # GIVEN a base of three ranks of which one counts over prefill
    ranks = [
        rank([Kernel("k", "norm", n)], key=f"rank{i}", counts_over=kind)
        for i, (n, kind) in enumerate([(10, "decode"), (10, "decode"), (70, "prefill")])
    ]
    # WHEN compared
    result = compare(report(*ranks), report(rank([NORM])))
    # THEN the other two stand for the side
    (warning,) = found(result, "ranks-left-out")
    assert warning.evidence == {"side": "base", "ranks": ["rank2"]}
    assert not [one for one in found(result, "ranks-differ") if "class" in one.evidence]


def test_errors_and_warnings_of_the_reports_are_carried_over_with_their_side() -> None:
    # GIVEN reports with a finding of each severity
    severe = (
        Finding("a", "error", "an error", RANK_0, {"count": 1}),
        Finding("b", "warning", "a warning"),
        Finding("c", "note", "a note"),
    )
    # WHEN compared
    result = compare(report(rank([NORM]), findings=severe), report(rank([NORM]), findings=severe[1:]))
    # THEN notes stay behind, worst come first
    assert [(one.slug, one.rank, one.evidence) for one in result.findings] == [
        ("a", RANK_0, {"count": 1, "side": "base"}),
        ("b", None, {"side": "base"}),
        ("b", None, {"side": "candidate"}),
    ]


def test_what_ranks_disagree_on_is_said_once() -> None:
    # GIVEN a base whose report already says that its ranks differ
    ranks = [rank([Kernel("k", "norm", n)], key=f"rank{n}") for n in (1, 2)]
    base = report(*ranks, findings=(Finding("ranks-differ", "warning", "the ranks differ in 1 figure"),))
    # WHEN compared
    result = compare(base, report(rank([NORM])))
    # THEN only the findings that name the value used remain
    assert [one.message for one in found(result, "ranks-differ")] == [
        "launches of norm in target per iteration differ between ranks (rank1: 1, rank2: 2); 1, that of rank1, is used",
        "launches per iteration of 1 kernel differ between ranks; the most frequent values are used, where there is none "
        "those of rank1",
    ]


def test_time_rows_are_floor_medians_over_ranks_with_ratio() -> None:
    # GIVEN a base of two ranks whose medians lie 1 ns apart, and a candidate of one
    base = report(rank([NORM], wall=101), rank([NORM], key=RANK_1, wall=102))
    candidate = report(rank([NORM], wall=202, phases=PhaseTimes(spread(7), None, None)))
    # WHEN compared
    rows = compare(base, candidate).time
    # THEN wall is the floor mean, and a figure that one side lacks has no ratio
    assert [(row.metric, row.phase, row.base, row.candidate, row.ratio) for row in rows] == [
        ("wall", None, 101, 202, 2.0),
        ("gpu_busy", None, None, None, None),
        ("kernel_sum", None, None, None, None),
        ("comm_exposed", None, None, None, None),
        ("gpu_busy", "target", None, 7, None),
        ("gpu_busy", "draft", None, None, None),
        ("gpu_busy", "sample", None, None, None),
    ]
    assert {(row.method, row.interval) for row in rows} == {(METHOD, None)}


def test_ranks_that_lie_far_apart_are_shown_in_the_note() -> None:
    # GIVEN kernel sums of two ranks exactly 1.1 apart in one arm, and 1 ns further in the other
    base = report(rank([NORM], kernel_sum=1_000_000), rank([NORM], key=RANK_1, kernel_sum=1_100_000))
    candidate = report(rank([NORM], kernel_sum=1_000_000), rank([NORM], key=RANK_1, kernel_sum=1_100_001))
    # WHEN compared
    note = next(row.note for row in compare(base, candidate).time if row.metric == "kernel_sum")
    # THEN only the latter's ranks are shown, beside what a kernel sum is not
    assert note == (
        "within these two captures; not a serving-speed claim; "
        "kernel sums contain waiting inside collectives and are no wall-clock saving; "
        f"candidate by rank: {RANK_0} 1.00 ms, {RANK_1} 1.10 ms"
    )


def test_a_time_of_0_gives_no_ratio() -> None:
    # GIVEN a candidate without busy time
    # WHEN compared with one that has some
    row = compare(report(rank([NORM], gpu_busy=5)), report(rank([NORM], gpu_busy=0))).time[1]
    # THEN 0 is shown as data, and a ratio without inverse is not
    assert (row.base, row.candidate, row.ratio) == (5, 0, None)


def test_numbers_of_iterations_that_differ_are_a_note() -> None:
    # GIVEN arms of 22 and 18 iterations
    # WHEN compared
    (note,) = found(compare(base_arm(), mega_arm()), "iterations-differ")
    # THEN a note says that figures are per iteration
    assert note.severity == "note"
    assert note.message == "base counts 22 iterations a rank, candidate 18: figures are per iteration"


def test_numbers_of_ranks_that_differ_are_a_warning() -> None:
    # GIVEN a base of two ranks and a candidate of one
    base = report(rank([NORM]), rank([NORM], key=RANK_1))
    # WHEN compared
    (warning,) = found(compare(base, report(rank([NORM]))), "rank-counts-differ")
    # THEN that is a warning
    assert (warning.severity, warning.message) == ("warning", "base has 2 ranks, candidate 1")


def test_the_subjects_are_carried_over() -> None:
    # GIVEN reports of an arm and of a path
    base = report(rank([NORM]), rank([NORM], key=RANK_1), source="runs/base", arm="base")
    # WHEN compared
    result = compare(base, report(rank([NORM]), source="mega"))
    # THEN both are named with their ranks
    assert (result.base, result.candidate) == (
        DiffSubject("base", "runs/base", 2, 1, "kernel"),
        DiffSubject(None, "mega", 1, 1, "kernel"),
    )


def test_what_paths_do_not_carry_is_empty() -> None:
    # GIVEN two reports
    # WHEN diffed through the public function
    result = compare(base_arm(), mega_arm()).to_dict()
    # THEN the parts without data are empty lists, and the schema is named
    assert [result[key] for key in ("layers", "serving", "accuracy", "environment", "claims")] == [[]] * 5
    assert result["schema"] == "moeprof.diff/1"


def test_a_minority_of_iterations_on_another_path_is_a_change() -> None:
    # GIVEN an arm of which some iterations still take the old path: the commonest values are equal
    base = base_arm()
    candidate = replace(
        base,
        ranks=tuple(
            replace(
                rank,
                counts=tuple(
                    replace(row, constant=False, distinct=(0, *row.distinct)) if row.class_ == "moe_gemm" else row
                    for row in rank.counts
                ),
            )
            for rank in base.ranks
        ),
        subject=replace(base.subject, source="other"),
    )
    # WHEN
    result = compare(base, candidate)
    # THEN it does not pass as unchanged, and says so
    assert result.verdict == "changed"
    assert "minority-differs" in {finding.slug for finding in result.findings}
    assert any(" or " in text for text in result.summary)
    assert not any(text.startswith("nothing changed") for text in result.summary)


def _with_sampled(values: tuple[int, ...], commonest: int, source: str) -> Report:
    """Return an arm whose small operators in sample vary; its kernels of that class vary with them."""
    arm = base_arm()
    row = ClassCount("elementwise", "sample", 10, commonest, constant=False, distinct=values)
    extra = KernelCount("aten::add", "elementwise", "sample", None, 10, commonest, 100)
    ranks = tuple(replace(rank, counts=(*rank.counts, row), kernels=(*rank.kernels, extra)) for rank in arm.ranks)
    return replace(arm, ranks=ranks, subject=replace(arm.subject, source=source))


def test_counts_that_vary_within_both_arms_are_no_change() -> None:
    # GIVEN two captures of one arm whose sampling calls now more, now fewer small operators
    result = compare(_with_sampled((144, 147, 150), 147, "a"), _with_sampled((144, 150), 144, "b"))
    # THEN
    assert result.verdict == "unchanged"
    assert "counts-vary" in {finding.slug for finding in result.findings}
    assert {row.change for row in result.structure} == {"same"}


def test_counts_that_vary_in_ranges_apart_are_a_change() -> None:
    result = compare(_with_sampled((144, 147), 147, "a"), _with_sampled((244, 250), 244, "b"))
    assert result.verdict == "changed"


def test_an_arm_with_varying_counts_against_itself_leaves_nothing_aside() -> None:
    arm = _with_sampled((144, 147, 150), 147, "a")
    (first, *_) = compare(arm, arm).summary
    assert first.startswith("nothing changed")
    assert "aside" not in first
