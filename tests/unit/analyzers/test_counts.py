"""Counts of iterations, classes and kernels, in total and per iteration."""

from __future__ import annotations

import random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moeprof.analyzers.commonest import by_iteration, commonest
from moeprof.analyzers.counts import class_counts, counts_findings, iteration_counts, kernel_counts
from moeprof.analyzers.results import ClassCount, IterationCounts, KernelCount
from moeprof.analyzers.tables import Attribution
from tests.unit.analyzers.attributions import Row, attribution, launches, shuffled


def _repeated(per_iteration: list[int], class_: str = "norm") -> Attribution:
    """Return an attribution in which a class occurs so many times in iteration 0, 1, ..."""
    rows = [row for i, times in enumerate(per_iteration) for row in launches(f"{times}*{class_}", iteration=i)]
    return attribution(rows, len(per_iteration))


class TestIterationCounts:
    def test_counts_each_kind(self) -> None:
        # GIVEN four iterations of three kinds
        kinds = [{"kind": "decode"}, {"kind": "decode"}, {"kind": "prefill"}, {"kind": "idle"}]
        # WHEN / THEN
        assert iteration_counts(attribution([], kinds)) == IterationCounts(
            marker="vllm", total=4, decode=2, prefill=1, mixed=0, idle=1, partial=0, counted=2
        )

    def test_total_and_kind_include_partial_iterations(self) -> None:
        # GIVEN three decode iterations of which the last is cut
        counts = iteration_counts(attribution([], [{}, {}, {"partial": True}]))
        # THEN
        assert (counts.total, counts.decode, counts.partial) == (3, 3, 1)

    def test_marker_never_closed_is_partial_and_not_in_total(self) -> None:
        # GIVEN two closed markers and one without an end
        counts = iteration_counts(attribution([], [{}, {}, {"marker_end_ns": None, "partial": True}]))
        # THEN
        assert (counts.total, counts.decode, counts.partial) == (2, 2, 1)

    def test_family_without_kinds_has_none(self) -> None:
        # GIVEN a family whose markers say nothing about the kind
        counts = iteration_counts(attribution([], 3, family="profiler_step", counts_over="all"))
        # THEN
        assert counts == IterationCounts("profiler_step", 3, None, None, None, None, 0, 3)

    def test_no_family_is_no_iteration(self) -> None:
        # GIVEN a trace without markers
        counts = iteration_counts(attribution(launches("norm"), family=None))
        # THEN
        assert counts == IterationCounts(None, 0, 0, 0, 0, 0, 0, 0)


class TestClassCounts:
    def test_shared_value_is_constant(self) -> None:
        # GIVEN two norms in each of three iterations
        # WHEN / THEN
        assert class_counts(_repeated([2, 2, 2])) == (ClassCount("norm", "target", 6, 2, True, (2,)),)

    def test_most_frequent_value_where_iterations_differ(self) -> None:
        # GIVEN one iteration with a launch less
        # WHEN / THEN
        assert class_counts(_repeated([12, 12, 11, 12])) == (ClassCount("norm", "target", 47, 12, False, (11, 12)),)

    def test_iteration_without_the_class_has_value_zero(self) -> None:
        # GIVEN a class that occurs in one of three iterations
        # WHEN / THEN
        assert class_counts(_repeated([0, 5, 0])) == (ClassCount("norm", "target", 5, 0, False, (0, 5)),)

    def test_absent_class_is_not_listed(self) -> None:
        # GIVEN iterations in which nothing was launched
        # WHEN / THEN
        assert class_counts(_repeated([0, 0])) == ()

    def test_order_is_phase_then_class_of_the_tables(self) -> None:
        # GIVEN launches in an order that is neither
        rows = [
            *launches("memset norm moe_gemm", phase="sample"),
            *launches("copy all_gather", phase="draft"),
            *launches("memcpy attention", phase="target"),
        ]
        # WHEN
        order = [(count.phase, count.class_) for count in class_counts(attribution(rows))]
        # THEN
        assert order == [
            ("target", "attention"),
            ("target", "memcpy"),
            ("draft", "all_gather"),
            ("draft", "copy"),
            ("sample", "moe_gemm"),
            ("sample", "norm"),
            ("sample", "memset"),
        ]

    def test_only_counted_iterations_enter(self) -> None:
        # GIVEN a prefill and a partial iteration beside two decode ones
        rows = [row for i in range(4) for row in launches("3*norm", iteration=i)]
        special: list[Row] = [{"kind": "prefill"}, {}, {}, {"partial": True}]
        # WHEN / THEN
        assert class_counts(attribution(rows, special)) == (ClassCount("norm", "target", 6, 3, True, (3,)),)

    def test_launch_outside_iterations_is_left_out(self) -> None:
        # GIVEN an orphan
        rows = [*launches("norm"), *launches("norm", iteration=None, phase=None)]
        # WHEN / THEN
        assert class_counts(attribution(rows)) == (ClassCount("norm", "target", 1, 1, True, (1,)),)

    def test_no_family_gives_totals_alone(self) -> None:
        # GIVEN one window
        counts = class_counts(attribution(launches("2*norm memcpy"), family=None))
        # THEN
        assert counts == (
            ClassCount("norm", "target", 2, None, None, ()),
            ClassCount("memcpy", "target", 1, None, None, ()),
        )

    def test_no_counted_iteration_gives_nothing(self) -> None:
        # GIVEN a family whose only iteration is partial
        # WHEN / THEN
        assert class_counts(attribution(launches("norm"), [{"partial": True}])) == ()


class TestKernelCounts:
    def test_largest_kernel_sum_first_then_name(self) -> None:
        # GIVEN three kernels, two of equal sum
        rows = [
            {"class": "norm", "name": "b", "duration_ns": 5},
            {"class": "norm", "name": "a", "duration_ns": 5},
            {"class": "norm", "name": "c", "duration_ns": 3},
            {"class": "norm", "name": "c", "duration_ns": 4},
        ]
        # WHEN
        counts = kernel_counts(attribution(rows))
        # THEN
        assert [(count.name, count.total, count.kernel_sum) for count in counts] == [
            ("c", 2, 7),
            ("a", 1, 5),
            ("b", 1, 5),
        ]

    def test_phase_and_backend_part_a_name(self) -> None:
        # GIVEN one kernel name in two phases and from two backends
        row = {"class": "moe_gemm", "name": "gemm"}
        rows = [
            {**row, "backend": "triton", "duration_ns": 40},
            {**row, "backend": "triton", "phase": "draft", "duration_ns": 30},
            {**row, "backend": "cutlass", "duration_ns": 20},
            {**row, "duration_ns": 10},
        ]
        # WHEN / THEN
        assert kernel_counts(attribution(rows)) == (
            KernelCount("gemm", "moe_gemm", "target", "triton", 1, 1, 40),
            KernelCount("gemm", "moe_gemm", "draft", "triton", 1, 1, 30),
            KernelCount("gemm", "moe_gemm", "target", "cutlass", 1, 1, 20),
            KernelCount("gemm", "moe_gemm", "target", None, 1, 1, 10),
        )

    def test_unknown_backend_keeps_its_per_iteration(self) -> None:
        # GIVEN a kernel without a backend in two of three iterations
        counts = kernel_counts(_repeated([4, 0, 4]))
        # THEN
        assert counts == (KernelCount("norm_kernel", "norm", "target", None, 8, 4, 80),)

    def test_copies_by_the_driver_are_left_out(self) -> None:
        # GIVEN a copy and a kernel that copies, both of class memcpy
        rows = [
            {"class": "memcpy", "name": "Memcpy HtoD"},
            {"class": "memcpy", "name": "memcpy32_post", "activity": "kernel"},
            {"class": "memset", "name": "Memset"},
        ]
        # WHEN / THEN
        assert [count.name for count in kernel_counts(attribution(rows))] == ["memcpy32_post"]

    def test_operators_count_on_a_cpu_trace(self) -> None:
        # GIVEN a CPU-only trace
        counts = kernel_counts(attribution(launches("3*AG"), cpu_only=True))
        # THEN
        assert counts == (KernelCount("all_gather_kernel", "all_gather", "target", None, 3, 3, 30),)

    def test_no_family_has_no_per_iteration(self) -> None:
        # GIVEN one window
        counts = kernel_counts(attribution(launches("2*norm"), family=None))
        # THEN
        assert counts == (KernelCount("norm_kernel", "norm", "target", None, 2, None, 20),)


class TestFindings:
    def test_names_the_iterations_that_deviate(self) -> None:
        # GIVEN 22 iterations, number 19 with one launch less
        values = [12] * 22
        values[19] = 11
        # WHEN
        (finding,) = counts_findings(_repeated(values, "elementwise"))
        # THEN
        assert (finding.slug, finding.severity, finding.rank) == ("not-constant", "warning", "rank0")
        assert finding.evidence == {
            "class": "elementwise",
            "phase": "target",
            "commonest": 12,
            "iterations": {"19": 11},
        }
        assert "1 of 22 iterations differ (iteration 19: 11)" in finding.message

    def test_absence_is_a_deviation(self) -> None:
        # GIVEN an iteration without the class
        (finding,) = counts_findings(_repeated([2, 0, 2]))
        # THEN
        assert finding.evidence["iterations"] == {"1": 0}

    def test_numbers_are_those_of_all_iterations(self) -> None:
        # GIVEN a prefill before three decode iterations, the last of which differs
        rows = [row for i, times in enumerate([9, 1, 1, 2]) for row in launches(f"{times}*norm", iteration=i)]
        # WHEN
        (finding,) = counts_findings(attribution(rows, [{"kind": "prefill"}, {}, {}, {}]))
        # THEN
        assert finding.evidence["iterations"] == {"3": 2}

    def test_message_names_twenty_and_evidence_all(self) -> None:
        # GIVEN 25 of 60 iterations that deviate
        (finding,) = counts_findings(_repeated([2] * 35 + [3] * 25))
        # THEN
        assert finding.evidence["iterations"] == {str(i): 3 for i in range(35, 60)}
        assert finding.message.count("iteration ") == 1 + 20  # "per iteration" and those named
        assert "and 5 more" in finding.message

    @pytest.mark.parametrize(
        "quiet",
        [
            _repeated([3, 3]),
            attribution([]),
            attribution(launches("norm"), family=None),
            attribution(launches("norm"), [{"partial": True}]),
        ],
        ids=["constant", "empty", "no family", "nothing counted"],
    )
    def test_nothing_to_say(self, quiet: Attribution) -> None:
        # GIVEN counts that are constant or absent
        # WHEN / THEN
        assert counts_findings(quiet) == ()


class TestCommonest:
    @staticmethod
    def _of(values: list[int], iterations: int | None = None) -> int:
        frame = pl.DataFrame({"key": ["k"] * len(values), "value": values})
        (result,) = commonest(frame, ["key"], iterations or len(values))["commonest"]
        return int(result)

    def test_tie_goes_to_the_value_nearest_the_median(self) -> None:
        # GIVEN 1 and 6 twice each, and a median of 5
        # WHEN / THEN
        assert self._of([1, 1, 5, 6, 6]) == 6

    def test_tie_at_equal_distance_goes_to_the_smaller(self) -> None:
        # GIVEN a median of 3.5 between two equally frequent values
        # WHEN / THEN
        assert self._of([4, 3, 4, 3]) == 3

    def test_missing_iterations_weigh_in_the_median(self) -> None:
        # GIVEN 8 and 9 twice each in five iterations: the fifth is 0, the median 8
        # WHEN / THEN
        assert self._of([9, 9, 8, 8], iterations=5) == 8

    def test_zero_rows_and_missing_rows_are_one_value(self) -> None:
        # GIVEN zeros both written and left out: four in all against three sevens
        # WHEN / THEN
        assert self._of([0, 0, 7, 7, 7], iterations=7) == 0

    def test_by_iteration_without_remainder_names_all(self) -> None:
        # GIVEN twenty iterations
        # WHEN / THEN
        assert "more" not in by_iteration({str(i): i for i in range(20)})


@settings(deadline=None)
@given(values=st.lists(st.integers(0, 4), min_size=1, max_size=8), seed=st.integers(0, 2**16))
def test_order_of_rows_does_not_matter(values: list[int], seed: int) -> None:
    # GIVEN an attribution and the same one with rows in another order
    straight = _repeated(values)
    mixed = shuffled(straight, random.Random(seed))
    # WHEN / THEN
    assert class_counts(mixed) == class_counts(straight)
    assert kernel_counts(mixed) == kernel_counts(straight)
    assert counts_findings(mixed) == counts_findings(straight)
