"""Times of the whole trace and per iteration."""

from __future__ import annotations

import gzip
import json
import re
from decimal import Decimal
from functools import cache
from itertools import pairwise
from statistics import median
from typing import Any

import polars as pl
import pytest

from moeprof.analyzers.results import PerIterationTimes, PhaseTimes, Spread, TimeTotals
from moeprof.analyzers.series import iteration_times
from moeprof.analyzers.tables import ATTRIBUTED, ITERATIONS, Attribution
from moeprof.analyzers.times import per_iteration_times, spread, time_totals
from tests.shared import shared

_DEFAULTS = {"name": "k", "class": "elementwise", "gemms": 0, "activity": "kernel", "device": 0, "stream": 7}


def _launches(*rows: dict[str, object]) -> pl.DataFrame:
    full = [
        {
            **dict.fromkeys(ATTRIBUTED),
            **_DEFAULTS,
            "event": number,
            "duration_ns": int(str(row["end_ns"])) - int(str(row["start_ns"])),
            **row,
        }
        for number, row in enumerate(rows)
    ]
    return pl.DataFrame(full, schema=ATTRIBUTED)


def _launch(start: int, end: int, **columns: object) -> dict[str, object]:
    return {"start_ns": start, "end_ns": end, **columns}


def _attribution(
    launches: pl.DataFrame, *iterations: tuple[int, int | None, bool, bool], family: str | None = "vllm"
) -> Attribution:
    """Take iterations as (start, next start, transient, counted)."""
    rows = [
        {
            **dict.fromkeys(ITERATIONS),
            "iteration": number,
            "start_ns": start,
            "next_start_ns": following,
            "partial": False,
            "transient": transient,
            "counted": counted,
        }
        for number, (start, following, transient, counted) in enumerate(iterations)
    ]
    table = pl.DataFrame(rows, schema=ITERATIONS)
    return Attribution("rank0", family, False, "decode" if iterations else None, table, launches)


def test_sum_busy_and_wall_are_three_figures() -> None:
    # GIVEN two kernels that overlap by 4, a gap, a memcpy that touches a kernel, and a memset inside one
    launches = _launches(
        _launch(100, 110),
        _launch(106, 120),
        _launch(150, 160),
        _launch(160, 175, activity="memcpy", **{"class": "memcpy"}),
        _launch(152, 155, activity="memset", **{"class": "memset"}),
    )
    # WHEN totals are taken
    totals = time_totals(launches)
    # THEN each figure keeps its own meaning
    assert totals == TimeTotals(
        kernel_sum=34,
        kernel_busy=30,
        gpu_busy=45,
        wall=75,
        compute_busy=30,
        comm_busy=0,
        comm_exposed=0,
        idle=30,
    )


def test_exposed_communication_is_what_no_computation_covers() -> None:
    # GIVEN an all-gather half covered by a GEMM on another stream, and a memcpy beside it
    launches = _launches(
        _launch(0, 100, **{"class": "all_gather"}),
        _launch(60, 130, stream=8, **{"class": "moe_gemm"}),
        _launch(0, 40, stream=9, activity="memcpy", **{"class": "memcpy"}),
    )
    # WHEN totals are taken
    totals = time_totals(launches)
    # THEN only kernels cover communication
    assert (totals.comm_busy, totals.compute_busy, totals.comm_exposed) == (100, 70, 60)


def test_several_devices_are_added_and_the_wall_spans_all() -> None:
    # GIVEN one stream number on three devices at once
    launches = _launches(_launch(0, 100), _launch(0, 90, device=1), _launch(20, 100, device=2))
    # WHEN totals are taken
    totals = time_totals(launches)
    # THEN busy is added over devices, and idle is what 3 walls leave
    assert (totals.kernel_sum, totals.gpu_busy, totals.wall, totals.idle) == (270, 270, 100, 30)


def test_no_device_row_is_no_data() -> None:
    # GIVEN a trace of operators, and one of nothing
    operators = _launches(_launch(0, 100, activity="operator", device=None, stream=None))
    # WHEN totals are taken
    # THEN every figure is None, not 0
    nothing = TimeTotals(None, None, None, None, None, None, None, None)
    assert time_totals(operators) == nothing
    assert time_totals(operators.clear()) == nothing


def test_copies_alone_give_a_kernel_time_of_zero() -> None:
    # GIVEN a device that only copied
    launches = _launches(_launch(5, 15, activity="memcpy", **{"class": "memcpy"}))
    # WHEN totals are taken
    totals = time_totals(launches)
    # THEN kernel figures are 0, since the device has rows
    assert totals == TimeTotals(0, 0, 10, 10, 0, 0, 0, 0)


def test_a_launch_counts_for_the_iteration_that_launched_it() -> None:
    # GIVEN two iterations; the first one's draft runs past the second one's start
    launches = _launches(
        _launch(10, 30, iteration=0, phase="target"),
        _launch(110, 125, iteration=0, phase="draft", **{"class": "all_gather"}),
        _launch(120, 150, iteration=1, phase="target"),
        _launch(140, 160, iteration=1, phase="target", activity="memcpy", **{"class": "memcpy"}),
        _launch(400, 900),
    )
    attribution = _attribution(launches, (0, 100, False, True), (100, 300, False, True))
    # WHEN times are taken per iteration
    times = per_iteration_times(iteration_times(attribution))
    # THEN unions are taken inside each iteration, and a missing phase counts as 0
    assert times == PerIterationTimes(
        iterations=2,
        wall=Spread(150, 100, 200),
        gpu_busy=Spread(37, 35, 40),
        kernel_sum=Spread(32, 30, 35),
        comm_exposed=Spread(7, 0, 15),
        phases=PhaseTimes(target=Spread(30, 20, 40), draft=Spread(7, 0, 15), sample=Spread(0, 0, 0)),
        wall_iterations=2,
    )


def test_transient_and_uncounted_iterations_are_left_out() -> None:
    # GIVEN a start transient, a steady iteration, a partial one, and a last one without successor
    launches = _launches(*(_launch(100 * n, 100 * n + n + 1, iteration=n, phase="target") for n in range(4)))
    attribution = _attribution(
        launches, (0, 100, True, True), (100, 207, False, True), (207, 300, False, False), (300, None, False, True)
    )
    # WHEN times are taken per iteration
    times = per_iteration_times(iteration_times(attribution))
    # THEN two are steady, and only one of them has a wall time
    assert (times.iterations, times.wall_iterations) == (2, 1)
    assert times.wall == Spread(107, 107, 107)
    assert times.kernel_sum == Spread(3, 2, 4)


def test_devices_are_added_per_iteration() -> None:
    # GIVEN one iteration on two devices at the same time
    launches = _launches(
        _launch(0, 10, iteration=0, phase="target"), _launch(0, 10, iteration=0, phase="target", device=1)
    )
    # WHEN times are taken per iteration
    times = per_iteration_times(iteration_times(_attribution(launches, (0, 50, False, True))))
    # THEN both devices count
    assert times.gpu_busy == Spread(20, 20, 20)


def test_a_cpu_only_trace_has_wall_times_only() -> None:
    # GIVEN operators in two iterations
    launches = _launches(_launch(0, 40, iteration=0, phase="target", activity="operator", device=None))
    attribution = _attribution(launches, (0, 50, False, True), (50, 90, False, True))
    # WHEN times are taken per iteration
    times = per_iteration_times(iteration_times(attribution))
    # THEN GPU times are None
    nothing = PhaseTimes(None, None, None)
    assert times == PerIterationTimes(2, Spread(45, 40, 50), None, None, None, nothing, wall_iterations=2)


def test_without_iterations_there_is_no_time_per_iteration() -> None:
    # GIVEN a trace without markers, and one whose only iteration is a transient
    launches = _launches(_launch(0, 40, phase="target"))
    # WHEN times are taken per iteration
    unmarked = per_iteration_times(iteration_times(_attribution(launches, family=None)))
    spinning = per_iteration_times(iteration_times(_attribution(launches, (0, 50, True, True))))
    # THEN there are none
    assert unmarked == PerIterationTimes(0, None, None, None, None, PhaseTimes(None, None, None), wall_iterations=0)
    assert spinning == unmarked


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], None),
        ([None], None),
        ([7], Spread(7, 7, 7)),
        ([5, 2], Spread(3, 2, 5)),
        ([9, None, 1, 4], Spread(4, 1, 9)),
        ([-4, -1], Spread(-3, -4, -1)),
    ],
)
def test_spread_rounds_the_median_down(values: list[int | None], expected: Spread | None) -> None:
    # GIVEN integers, perhaps with nulls
    # WHEN they are spread
    # THEN the median of an even number is the floor of the mean of the middle two
    assert spread(pl.Series(values, dtype=pl.Int64)) == expected


Event = dict[str, Any]


@cache
def _measured(arm: str, rank: str) -> list[Event]:
    """Read a measured trace with nothing of ours; times in ns."""
    path = shared("traces", "h200", arm, f"{rank}.pt.trace.json.gz")
    with gzip.open(path) as file:
        events: list[Event] = json.load(file, parse_float=Decimal)["traceEvents"]
    wanted = ("kernel", "gpu_memcpy", "gpu_memset", "user_annotation")
    return [
        {**event, "ts": int(event["ts"] * 1000), "dur": int(event["dur"] * 1000)}
        for event in events
        if event.get("cat") in wanted
    ]


def _periods(events: list[Event]) -> list[int]:
    markers = [event for event in events if event["cat"] == "user_annotation"]
    starts = sorted(event["ts"] for event in markers if re.match("execute_context_", event["name"]))
    return [after - before for before, after in pairwise(starts)]


@pytest.mark.parametrize(
    ("arm", "rank", "all_periods", "without_first"),
    [
        ("base", "dp0_pp0_tp0_dcp0_ep0_rank0", Spread(12166501, 11603002, 16900154), 12148840),
        ("base", "dp1_pp0_tp0_dcp0_ep1_rank0", Spread(12101102, 11476542, 28107526), 12083474),
        ("triton", "dp0_pp0_tp0_dcp0_ep0_rank0", Spread(15111906, 14710877, 24417593), 15110289),
        ("triton", "dp1_pp0_tp0_dcp0_ep1_rank0", Spread(15185727, 14841247, 21200305), 15178948),
    ],
)
def test_the_published_medians_of_periods_are_taken_over_all_of_them(
    arm: str, rank: str, all_periods: Spread, without_first: int
) -> None:
    # GIVEN the markers of a measured trace, read by nothing of ours
    periods = _periods(_measured(arm, rank))
    assert int(median(periods)) == all_periods.median
    starts = [sum(periods[:number]) for number in range(len(periods) + 1)]
    following = [*starts[1:], None]
    # WHEN wall times are taken with and without a start transient
    plain = [(start, after, False, True) for start, after in zip(starts, following, strict=True)]
    launches = _launches(_launch(0, 1, iteration=0, phase="target"))
    with_first = per_iteration_times(iteration_times(_attribution(launches, *plain))).wall
    rest = per_iteration_times(
        iteration_times(_attribution(launches, (starts[0], following[0], True, True), *plain[1:]))
    ).wall
    # THEN the published figures hold the first iteration, and ours leave it out
    assert with_first == all_periods
    assert rest is not None
    assert rest.median == without_first


@pytest.mark.parametrize(
    ("arm", "rank", "kernel_sum", "kernel_busy", "gpu_busy", "wall"),
    [
        ("base", "dp0_pp0_tp0_dcp0_ep0_rank0", 163730073, 149216974, 149541149, 272447345),
        ("base", "dp1_pp0_tp0_dcp0_ep1_rank0", 180980016, 166066711, 166379601, 285455411),
        ("triton", "dp0_pp0_tp0_dcp0_ep0_rank0", 157931779, 144237881, 144487409, 284717446),
        ("triton", "dp1_pp0_tp0_dcp0_ep1_rank0", 131310173, 118278004, 118535922, 280184064),
        ("eager_cut", "dp1_pp0_tp0_dcp0_ep1_rank0", 11393935, 11369390, 11482667, 314175593),
    ],
)
def test_measured_traces_give_their_published_totals(
    arm: str, rank: str, kernel_sum: int, kernel_busy: int, gpu_busy: int, wall: int
) -> None:
    # GIVEN the rows of a measured trace
    activity = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
    rows = [
        _launch(
            event["ts"],
            event["ts"] + event["dur"],
            activity=activity[event["cat"]],
            device=event["args"]["device"],
            stream=event["args"]["stream"],
            **{"class": "all_gather" if "AllGather" in event["name"] else "elementwise"},
        )
        for event in _measured(arm, rank)
        if event["cat"] in activity
    ]
    # WHEN totals are taken
    totals = time_totals(_launches(*rows))
    # THEN they are the published ones, and what is exposed is what computation leaves of the kernels' union
    assert (totals.kernel_sum, totals.kernel_busy, totals.gpu_busy, totals.wall) == (
        kernel_sum,
        kernel_busy,
        gpu_busy,
        wall,
    )
    assert totals.idle == wall - gpu_busy
    assert totals.compute_busy is not None
    assert totals.comm_exposed == kernel_busy - totals.compute_busy
