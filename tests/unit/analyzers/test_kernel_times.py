"""Kernels by how much their time per iteration changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

import polars as pl
import pytest
from scipy import stats

import moeprof
from moeprof.analyzers.comparison.compare import compare
from moeprof.analyzers.durations import compare as durations
from moeprof.analyzers.durations.results import KernelTimeRow
from moeprof.analyzers.results import Report
from moeprof.analyzers.series import KERNELS, TIMES, Series
from tests.unit.analyzers.reports import Kernel, rank, report

Times = Mapping[str, Sequence[int]]


def arm(*ranks: Times, class_: str = "norm", source: str = "base") -> Report:
    """Return an arm whose ranks launch each kernel once per iteration; a time of 0 is an iteration without it."""
    made = []
    for number, kernels in enumerate(ranks):
        length = max(len(values) for values in kernels.values())
        one = rank([Kernel(name, class_, 1) for name in kernels], key=f"rank{number}", iterations=length)
        made.append(replace(one, series=_series(kernels, class_, length)))
    return report(*made, source=source)


def _series(kernels: Times, class_: str, length: int) -> Series:
    times = pl.DataFrame(
        {"iteration": range(length), "transient": [False] * length, "start_ns": [100 * n for n in range(length)]}
    )
    filled = times.with_columns(
        pl.lit(None, dtype).alias(name) for name, dtype in TIMES.items() if name not in times.columns
    )
    rows = [
        {"name": name, "class": class_, "phase": "target", "iteration": n, "launches": 1, "kernel_sum_ns": value}
        for name, values in kernels.items()
        for n, value in enumerate(values)
        if value
    ]
    return Series(filled.select(list(TIMES)).cast(TIMES), pl.DataFrame(rows, schema=KERNELS))  # type: ignore[arg-type]  # a schema


def by_name(*arms: Report) -> dict[str, KernelTimeRow]:
    """Return the rows by kernel."""
    return {row.name: row for row in compare(*arms).kernel_times}


STEADY = (50_000, 50_400, 49_700, 50_100, 49_900, 50_300, 49_800, 50_200)
SLOWER = tuple(value + 5_000 for value in STEADY)


def test_a_change_must_be_sure_large_and_long() -> None:
    # GIVEN a kernel that is 10 % slower, one that is surely 1 % slower, a short one that is half as long, and an unsteady one
    before = {"slow": STEADY, "little": STEADY, "short": (400, 401, 399, 400) * 2, "wild": (9_000, 90_000) * 4}
    after = {
        "slow": SLOWER,
        "little": tuple(value + 500 for value in STEADY),
        "short": (200, 201, 199, 200) * 2,
        "wild": (10_000, 99_000) * 4,
    }
    # WHEN compared THEN only the first is called slower, and the other way round only that one faster
    there, back = by_name(arm(before), arm(after)), by_name(arm(after), arm(before))
    assert {name: row.change for name, row in there.items()} == {
        "slow": "slower",
        "little": "same",
        "short": "same",
        "wild": "same",
    }
    assert {name: row.change for name, row in back.items() if row.change != "same"} == {"slow": "faster"}
    assert (there["slow"].base, there["slow"].candidate, there["slow"].difference) == (50_050, 55_050, 5_000)


def test_kernels_of_one_side_are_listed_and_not_tested() -> None:
    # GIVEN a kernel that went and one that came WHEN compared THEN they are told apart from those that changed
    rows = by_name(arm({"old": STEADY, "kept": STEADY}), arm({"new": SLOWER, "kept": STEADY}))
    assert {name: row.change for name, row in rows.items()} == {"old": "removed", "new": "added", "kept": "same"}
    assert (rows["old"].base, rows["old"].candidate, rows["old"].ratio, rows["old"].p) == (50_050, 0, None, None)
    assert (rows["new"].base, rows["new"].candidate) == (0, 55_050)


def test_an_iteration_without_the_kernel_counts_as_0() -> None:
    # GIVEN a kernel that runs in every other iteration WHEN compared THEN its mean is over all of them
    rows = by_name(arm({"k": (4_000, 0) * 4}), arm({"k": (4_000,) * 8}))
    assert (rows["k"].base, rows["k"].candidate) == (2_000, 4_000)


def test_communication_is_marked_as_holding_waiting() -> None:
    # GIVEN a collective WHEN compared THEN the row says that it waits
    (row,) = compare(arm({"k": STEADY}, class_="all_gather"), arm({"k": SLOWER}, class_="all_gather")).kernel_times
    assert row.holds_waiting


def test_reports_without_values_of_iterations_give_no_rows() -> None:
    # GIVEN reports built without series, on one side or both WHEN compared THEN there is nothing to rank
    bare = report(rank([Kernel("k", "norm", 1)]))
    assert compare(bare, bare).kernel_times == ()
    assert compare(arm({"k": STEADY}), bare).kernel_times == ()


def test_not_comparable_sides_have_no_rows() -> None:
    # GIVEN sides that count other kinds of iterations WHEN compared THEN no time is held against another
    candidate = arm({"k": STEADY})
    prefill = replace(candidate, ranks=tuple(replace(one, counts_over="prefill") for one in candidate.ranks))
    assert compare(arm({"k": STEADY}), prefill).kernel_times == ()


def test_rows_equal_the_plain_computation_and_scipys_adjustment() -> None:
    # GIVEN two real captures of two ranks
    base, candidate = moeprof.report("samples/h200/base"), moeprof.report("samples/h200/triton")
    # WHEN compared
    rows = compare(base, candidate).kernel_times
    tested = [row for row in rows if row.p is not None]
    assert len(tested) > 50
    # THEN each kernel's p is that of its values, taken iteration by iteration in plain Python
    for row in tested:
        sides = [[_values(one.series, row) for one in arm.ranks] for arm in (base, candidate)]
        plain = durations.compare(*sides)
        assert plain is not None
        assert row.p == pytest.approx(plain.p, rel=1e-6)
        assert (row.base, row.candidate) == (round(plain.base.mean), round(plain.candidate.mean))
    # AND the adjusted ones are scipy's, and the order is by difference
    expected = stats.false_discovery_control([row.p for row in tested])
    assert [row.p_adjusted for row in tested] == pytest.approx(list(expected))
    differences = [abs(row.difference) for row in rows]
    assert differences == sorted(differences, reverse=True)


def _values(series: Series | None, row: KernelTimeRow) -> list[int]:
    assert series is not None
    times = {n: 0 for n, transient in series.times.select("iteration", "transient").iter_rows() if not transient}
    columns = ("name", "class", "phase", "iteration", "kernel_sum_ns")
    for name, class_, phase, iteration, value in series.kernels.select(columns).iter_rows():
        if (name, class_, phase) == (row.name, row.class_, row.phase) and iteration in times:
            times[iteration] += value
    return list(chain(times.values()))


def test_swapping_the_sides_mirrors_the_rows() -> None:
    # GIVEN two real captures WHEN compared both ways
    base, candidate = moeprof.report("samples/h200/base"), moeprof.report("samples/h200/triton")
    mirror = {"slower": "faster", "faster": "slower", "added": "removed", "removed": "added", "same": "same"}
    there, back = compare(base, candidate).kernel_times, compare(candidate, base).kernel_times
    # THEN the order is the same, differences change their sign, ratios invert, and p stays
    for row, other in zip(there, back, strict=True):
        assert (row.name, row.class_, row.phase) == (other.name, other.class_, other.phase)
        assert (row.base, row.candidate, row.difference) == (other.candidate, other.base, -other.difference)
        assert row.change is not None and mirror[row.change] == other.change
        assert row.p_adjusted == pytest.approx(other.p_adjusted)
        if row.ratio is not None and other.ratio is not None:
            assert row.ratio * other.ratio == pytest.approx(1)
        if row.interval is not None and other.interval is not None:
            assert row.interval == pytest.approx((1 / other.interval[1], 1 / other.interval[0]))
