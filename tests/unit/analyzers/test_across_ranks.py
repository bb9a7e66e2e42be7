"""Ranks side by side: agreement and skew."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

import polars as pl
import pytest

from moeprof.analyzers.across_ranks import RankTimes, across_ranks
from moeprof.analyzers.results import (
    AgRsPairs,
    ClassCount,
    Coverage,
    GemmPairs,
    IterationCounts,
    Pairs,
    PerIterationTimes,
    PhaseTimes,
    RankDifference,
    RankReport,
    Skew,
    Spread,
    TimeTotals,
)
from moeprof.analyzers.tables import ATTRIBUTED, ITERATIONS, Attribution
from tests.shared import shared


def _report(rank: str | None, counts: dict[tuple[str, str], int | None], *, iterations: int = 4) -> RankReport:
    pairs = Pairs(
        AgRsPairs(42, 3, 0, 45, 45 * iterations, 0, 0, 0, True), GemmPairs(42, 3, 0, 45, 45 * iterations, 0, True)
    )
    return RankReport(
        rank=rank,
        source="file",
        device=None,
        iterations=IterationCounts("vllm", iterations, iterations, 0, 0, 0, 0),
        counts_over="decode" if iterations else None,
        counts=tuple(
            ClassCount(name, phase, (count or 5) * (iterations or 1), count, True, ())
            for (name, phase), count in counts.items()
        ),
        kernels=(),
        pairs=pairs,
        time_ns=TimeTotals(None, None, None, None, None, None, None, None),
        per_iteration_ns=PerIterationTimes(0, None, None, None, None, PhaseTimes(None, None, None)),
        layers=(),
        launch_unit="kernel",
        coverage=Coverage(0, 0, 0, 0, 0, None, 0),
    )


Launch = tuple[int, int, str, int | None]  # start, end, class, iteration


def _times(
    launches: Iterable[Launch], *, base: int = 0, known: bool = True, iterations: int = 0, activity: str = "kernel"
) -> RankTimes:
    rows = [
        {
            **dict.fromkeys(ATTRIBUTED),
            "event": number,
            "name": name,
            "class": name,
            "gemms": 0,
            "activity": activity,
            "device": 0,
            "stream": 7,
            "start_ns": start,
            "end_ns": end,
            "duration_ns": end - start,
            "iteration": iteration,
            "phase": "target",
        }
        for number, (start, end, name, iteration) in enumerate(launches)
    ]
    steps = [{**dict.fromkeys(ITERATIONS), "iteration": number, "start_ns": number} for number in range(iterations)]
    attribution = Attribution(
        rank=None,
        family="vllm" if iterations else None,
        cpu_only=activity == "operator",
        counts_over="decode" if iterations else None,
        iterations=pl.DataFrame(steps, schema=ITERATIONS),
        launches=pl.DataFrame(rows, schema=ATTRIBUTED),
    )
    return base, known, attribution


_TWO = (_report("rank0", {}), _report("rank1", {}))


def test_one_rank_neither_agrees_nor_disagrees() -> None:
    # GIVEN a single rank with a collective
    # WHEN ranks are compared
    across, findings = across_ranks((_report(None, {}),), {None: _times([(0, 10, "all_gather", None)])})
    # THEN there is nothing to say
    assert (across.ranks, across.agree, across.differences, across.skew) == ((None,), None, (), None)
    assert findings == ()


def test_equal_ranks_agree() -> None:
    # GIVEN two ranks with equal figures
    reports = tuple(_report(rank, {("moe_gemm", "target"): 84}) for rank in ("rank0", "rank1"))
    # WHEN ranks are compared
    across, findings = across_ranks(reports, {"rank0": _times([]), "rank1": _times([])})
    # THEN they agree, and without collectives there is no skew
    assert (across.agree, across.differences, across.skew, findings) == (True, (), None, ())


def test_differences_hold_the_value_of_each_rank() -> None:
    # GIVEN ranks that differ in iterations, in a count, in a class that one lacks, and in unmatched gathers
    first = _report("rank0", {("moe_gemm", "target"): 84, ("copy", "sample"): 2})
    second = _report("rank1", {("moe_gemm", "target"): 82}, iterations=3)
    second = replace(second, pairs=replace(second.pairs, ag_rs=replace(second.pairs.ag_rs, unmatched_ag=1)))
    # WHEN ranks are compared
    across, findings = across_ranks((first, second), {"rank0": _times([]), "rank1": _times([])})
    # THEN each difference is listed, totals over unlike windows are not, and one finding tells them
    assert across.agree is False
    assert across.differences == (
        RankDifference("iterations.total", {"rank0": 4, "rank1": 3}),
        RankDifference("counts.moe_gemm.target", {"rank0": 84, "rank1": 82}),
        RankDifference("counts.copy.sample", {"rank0": 2, "rank1": 0}),
        RankDifference("pairs.ag_rs.unmatched_ag", {"rank0": 0, "rank1": 1}),
    )
    (finding,) = findings
    assert (finding.slug, finding.severity, finding.rank) == ("ranks-differ", "warning", None)
    assert finding.message == (
        "the ranks differ in 4 figures: iterations.total rank0: 4, rank1: 3; counts.moe_gemm.target rank0: 84,"
        " rank1: 82; counts.copy.sample rank0: 2, rank1: 0; and 1 more"
    )


def test_a_rank_without_iterations_has_no_count_rather_than_zero() -> None:
    # GIVEN a rank with iterations and one without
    first, second = _report("rank0", {("norm", "target"): 9}), _report("rank1", {}, iterations=0)
    # WHEN ranks are compared
    across, _ = across_ranks((first, second), {"rank0": _times([]), "rank1": _times([])})
    # THEN the count of the second is None
    assert RankDifference("counts.norm.target", {"rank0": 9, "rank1": None}) in across.differences


def test_without_iterations_the_totals_of_the_windows_are_compared() -> None:
    # GIVEN two ranks without iterations, whose windows hold 5 and no launches of a class
    reports = (_report("rank0", {("send_recv", "target"): None}, iterations=0), _report("rank1", {}, iterations=0))
    # WHEN ranks are compared
    across, _ = across_ranks(reports, {"rank0": _times([]), "rank1": _times([])})
    # THEN the totals differ
    assert across.differences == (RankDifference("counts.send_recv.target", {"rank0": 5, "rank1": None}),)


def test_skew_adds_the_base_times() -> None:
    # GIVEN one collective on two ranks whose base times lie 2 ms apart
    traces: dict[str | None, RankTimes] = {
        "rank0": _times([(3_000_000, 3_050_000, "all_gather", None)], base=1_735_689_600_000_000_000),
        "rank1": _times([(1_010_000, 1_050_000, "all_gather", None)], base=1_735_689_600_002_000_000),
    }
    # WHEN ranks are compared
    across, findings = across_ranks(_TWO, traces)
    # THEN rank 1 arrives 10 us late, and both end together
    late = Spread(10_000, 10_000, 10_000)
    assert across.skew == Skew(1, late, Spread(0, 0, 0), {"rank0": 0, "rank1": 1})
    assert findings == ()


def test_collectives_match_within_iteration_and_class() -> None:
    # GIVEN two iterations; rank 1 lacks an all-gather in the first, and has its rows in another order
    first = [
        (100, 150, "all_gather", 0),
        (200, 250, "all_gather", 0),
        (300, 350, "reduce_scatter", 0),
        (400, 450, "all_gather", 1),
        (460, 470, "moe_gemm", 1),
    ]
    second = [(430, 452, "all_gather", 1), (301, 351, "reduce_scatter", 0), (210, 250, "all_gather", 0)]
    traces: dict[str | None, RankTimes] = {"rank0": _times(first, iterations=2), "rank1": _times(second, iterations=2)}
    # WHEN ranks are compared
    across, _ = across_ranks(_TWO, traces)
    # THEN only groups of equal number match
    assert across.skew == Skew(2, Spread(15, 1, 30), Spread(1, 1, 2), {"rank0": 0, "rank1": 2})


def test_unlike_windows_match_by_order_within_classes_of_equal_number() -> None:
    # GIVEN ranks with another number of iterations; all-reduces agree in number, all-gathers do not
    first = [(100, 150, "all_reduce", 0), (200, 250, "all_gather", 0), (300, 350, "all_reduce", 1)]
    second = [(320, 352, "all_reduce", 0), (90, 151, "all_reduce", 0)]
    traces: dict[str | None, RankTimes] = {"rank0": _times(first, iterations=2), "rank1": _times(second, iterations=1)}
    # WHEN ranks are compared
    across, _ = across_ranks(_TWO, traces)
    # THEN the all-reduces match by order
    assert across.skew == Skew(2, Spread(15, 10, 20), Spread(1, 1, 2), {"rank0": 1, "rank1": 1})


def test_a_collective_that_all_reach_at_once_has_no_last_arrival() -> None:
    # GIVEN three ranks: all at once, then two late together
    reports = (*_TWO, _report("rank2", {}))
    traces: dict[str | None, RankTimes] = {
        rank: _times([(10, 20, "broadcast", None), (late, 90, "broadcast", None)])
        for rank, late in (("rank0", 50), ("rank1", 60), ("rank2", 60))
    }
    # WHEN ranks are compared
    across, _ = across_ranks(reports, traces)
    # THEN the two that came late together each count
    assert across.skew is not None
    assert across.skew.last_arrivals == {"rank0": 0, "rank1": 1, "rank2": 1}


def test_an_unknown_base_time_leaves_the_skew_out() -> None:
    # GIVEN a rank whose file states no base time
    row = [(0, 10, "all_gather", None)]
    traces: dict[str | None, RankTimes] = {"rank0": _times(row), "rank1": _times(row, known=False)}
    # WHEN ranks are compared
    across, (finding,) = across_ranks(_TWO, traces)
    # THEN there is no skew, and a finding says why
    assert across.skew is None
    assert (finding.slug, finding.severity) == ("base-time-unknown", "warning")
    assert finding.message == ("1 of 2 ranks do not state their base time: arrivals at collectives cannot be compared")
    assert finding.evidence == {"ranks": ["rank1"]}


@pytest.mark.parametrize(("apart", "slugs"), [(1_000_000_000, []), (1_000_000_001, ["clocks-apart"])])
def test_clocks_that_lie_apart_are_told_and_still_measured(apart: int, slugs: list[str]) -> None:
    # GIVEN a collective that ends at or above 1 s later on the other rank
    traces: dict[str | None, RankTimes] = {
        "rank0": _times([(0, 10, "all_gather", None)]),
        "rank1": _times([(0, 10, "all_gather", None)], base=apart),
    }
    # WHEN ranks are compared
    across, findings = across_ranks(_TWO, traces)
    # THEN the figures stay, with a warning above 1 s
    assert [finding.slug for finding in findings] == slugs
    spread = Spread(apart, apart, apart)
    assert across.skew == Skew(1, spread, spread, {"rank0": 0, "rank1": 1})


def test_operators_have_no_skew() -> None:
    # GIVEN collectives of a CPU-only trace
    row = [(0, 10, "all_gather", None)]
    traces: dict[str | None, RankTimes] = {rank: _times(row, activity="operator") for rank in ("rank0", "rank1")}
    # WHEN ranks are compared
    across, findings = across_ranks(_TWO, traces)
    # THEN host times make no skew
    assert (across.skew, findings) == (None, ())


def test_ranks_that_share_no_collective_have_no_skew() -> None:
    # GIVEN ranks with other numbers of the one class they have
    traces: dict[str | None, RankTimes] = {
        "rank0": _times([(0, 10, "all_gather", None)]),
        "rank1": _times([(0, 10, "all_gather", None), (20, 30, "all_gather", None)]),
    }
    # WHEN ranks are compared
    across, _ = across_ranks(_TWO, traces)
    # THEN nothing is matched
    assert across.skew is None


def test_the_odd_ranks_with_two_base_times() -> None:
    # GIVEN the two files whose base times lie 2 ms apart, read by nothing of ours
    folder = shared("traces", "odd", "28_base_time")
    traces: dict[str | None, RankTimes] = {}
    for rank in ("rank0", "rank1"):
        document = json.loads((folder / f"{rank}.json").read_text(), parse_float=Decimal)
        rows: list[Launch] = [
            (int(event["ts"] * 1000), int((event["ts"] + event["dur"]) * 1000), "all_gather", None)
            for event in document["traceEvents"]
            if event.get("cat") == "kernel"
        ]
        traces[rank] = _times(rows, base=document["baseTimeNanoseconds"])
    # WHEN ranks are compared
    across, _ = across_ranks(_TWO, traces)
    # THEN the skew is the published one
    assert across.skew == Skew(1, Spread(10_000, 10_000, 10_000), Spread(0, 0, 0), {"rank0": 0, "rank1": 1})


@pytest.mark.parametrize(
    ("arm", "expected"),
    [
        ("base", Skew(1980, Spread(1370, 3, 990086), Spread(326, 1, 1515), {"rank0": 1397, "rank1": 583})),
        ("triton", Skew(1620, Spread(1290, 1, 873298), Spread(451, 1, 1722), {"rank0": 789, "rank1": 831})),
    ],
)
def test_measured_ranks_leave_their_collectives_within_two_microseconds(arm: str, expected: Skew) -> None:
    # GIVEN the collectives of two measured ranks, read by nothing of ours
    folder = shared("traces", "h200", arm)
    classes = {"AllGather": "all_gather", "ReduceScatter": "reduce_scatter"}
    traces: dict[str | None, RankTimes] = {}
    for number, path in enumerate(sorted(folder.glob("*.gz"))):
        with gzip.open(path) as file:
            document = json.load(file, parse_float=Decimal)
        rows: list[Launch] = sorted(
            (int(event["ts"] * 1000), int((event["ts"] + event["dur"]) * 1000), classes[found[1]], None)
            for event in document["traceEvents"]
            if event.get("cat") == "kernel" and (found := re.match(r"ncclDevKernel_([A-Za-z]+)_", event["name"]))
        )
        traces[f"rank{number}"] = _times(rows, base=document["baseTimeNanoseconds"])
    # WHEN ranks are compared
    across, findings = across_ranks(_TWO, traces)
    # THEN all of them match, and no end lies more than 2 us from the other rank's
    assert across.skew == expected
    assert findings == ()
