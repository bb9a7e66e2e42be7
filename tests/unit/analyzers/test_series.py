"""Values iteration by iteration."""

from __future__ import annotations

from statistics import median_low

import moeprof
from moeprof.analyzers.report import report as report_of
from moeprof.analyzers.series import KERNELS, TIMES, iteration_times, kernel_times
from moeprof.traces.open import open_trace
from tests.unit.analyzers.attributions import attribution, launches

_BASE = "samples/h200/base"


def test_a_report_carries_the_values_behind_its_medians() -> None:
    # GIVEN the report of a real capture
    report = report_of(open_trace(_BASE))
    for rank in report.ranks:
        # WHEN the values of its steady iterations are looked at
        assert rank.series is not None
        steady = rank.series.times.filter(~rank.series.times["transient"])
        # THEN there are as many as the report says, and their median is the one it gives
        assert steady.height == rank.per_iteration_ns.iterations
        assert rank.per_iteration_ns.kernel_sum is not None
        values = sorted(steady["kernel_sum_ns"].to_list())
        middle = (values[(len(values) - 1) // 2] + values[len(values) // 2]) // 2
        assert rank.per_iteration_ns.kernel_sum.median == middle
        assert median_low(values) <= middle


def test_kernels_of_an_iteration_add_up_to_its_kernel_sum_and_its_counts() -> None:
    # GIVEN the report of a real capture
    rank = report_of(open_trace(_BASE)).ranks[0]
    assert rank.series is not None
    # WHEN the kernels are added up by iteration
    by_iteration = rank.series.kernels.group_by("iteration").agg(total=rank.series.kernels["kernel_sum_ns"].implode())
    added = {row["iteration"]: 0 for row in by_iteration.iter_rows(named=True)}
    for row in rank.series.kernels.iter_rows(named=True):
        added[row["iteration"]] += row["kernel_sum_ns"]
    # THEN they are the kernel sums of the iterations, and the launches are the totals of the report
    assert added == dict(rank.series.times.select("iteration", "kernel_sum_ns").iter_rows())
    assert rank.series.kernels["launches"].sum() == sum(kernel.total for kernel in rank.kernels)


def test_series_stay_out_of_the_json_and_of_equality() -> None:
    # GIVEN two reports of one trace
    first, second = moeprof.report(_BASE), moeprof.report(_BASE)
    # THEN the tables are not in the JSON, and reports compare all the same
    ranks = first.to_dict()["ranks"]
    assert isinstance(ranks, list)
    assert all(isinstance(rank, dict) and "series" not in rank for rank in ranks)
    assert first == second


def test_without_markers_there_is_no_iteration_and_one_window_of_kernels() -> None:
    # GIVEN launches without a marker family
    window = attribution(launches("2*norm"), family=None)
    # WHEN the tables are made
    times, kernels = iteration_times(window), kernel_times(window)
    # THEN no iteration has times, and the kernels stand without one
    assert times.is_empty() and times.schema == TIMES
    assert kernels["iteration"].to_list() == [None]
    assert kernels["launches"].to_list() == [2]
    assert list(kernels.columns) == list(KERNELS)
