"""Collectives of simulated ranks: clocks, windows, waits and unequal numbers are told as they were made."""

from __future__ import annotations

import random

import polars as pl
import pytest

from moeprof.analyzers.classify import load_classifier
from moeprof.analyzers.collectives.compare import compare_ranks
from moeprof.analyzers.collectives.results import Collectives
from moeprof.analyzers.iterations import attribute
from moeprof.traces.trace import Trace
from tests.simulator.kineto import simulated
from tests.simulator.program import DENSE, GATHER, SCATTER, SMALL, Collective, Host, Launch, Program, Step, Sync
from tests.simulator.run import RankRun, run

_ITERATIONS = 10


def ranks(count: int, seed: int = 1) -> dict[str, RankRun]:
    """Return ranks whose work before each collective varies, in iterations of varying length."""
    source = random.Random(seed)
    programs: dict[str, Program] = {f"rank{rank}": [] for rank in range(count)}
    for _ in range(_ITERATIONS):
        layers = source.randrange(3, 5)
        for program in programs.values():
            steps: list[Step] = [Host(20_000 + source.randrange(60) * 1_000)]
            for _ in range(layers):
                steps += [Launch(DENSE, 20_000 + source.randrange(400) * 100), Collective(GATHER, 8_000)]
                steps += [Launch(SMALL, 5_000 + source.randrange(90) * 100), Collective(SCATTER, 9_000)]
            program.append([*steps, Launch(SMALL, 2_000), Sync()])
    return run(programs)


def compared(trace: Trace) -> tuple[Collectives, dict[str, pl.DataFrame]]:
    made = {rank.key or "": (rank, attribute(rank, classifier=load_classifier(None))) for rank in trace}
    found, waits = compare_ranks(made)
    assert found is not None
    return found, waits


def true_waits(runs: dict[str, RankRun]) -> dict[str, int]:
    return {
        rank: sum(row.arrived_ns - row.start_ns for row in one.rows if row.arrived_ns is not None)
        for rank, one in runs.items()
    }


@pytest.mark.parametrize("sequences", [False, True])
@pytest.mark.parametrize("clocks", [{}, {"rank1": 3_000_000, "rank2": -700_000}])
def test_waits_are_true_whatever_the_clocks(clocks: dict[str, int], sequences: bool) -> None:
    # GIVEN three ranks, whose clocks may differ
    runs = ranks(3)
    # WHEN their collectives are matched
    found, _ = compared(simulated(runs, clocks=clocks, sequences=sequences))
    # THEN all are, the clocks are found, and each rank waited as long as it did
    assert found.matched == sum(row.arrived_ns is not None for row in runs["rank0"].rows)
    assert (found.matched_by, found.trusted) == ("sequence" if sequences else "iteration", True)
    assert {rank.rank: rank.waited_ns for rank in found.ranks} == true_waits(runs)
    offsets = {rank.rank: rank.offset_ns for rank in found.ranks}
    for key in runs:
        assert offsets[key] - offsets["rank0"] == clocks.get(key, 0) - clocks.get("rank0", 0)
    # AND what is waited for a rank is what it caused; where two come last together, neither did
    for rank in found.ranks:
        assert rank.caused_ns == sum(other.waited_for_ns.get(rank.rank, 0) for other in found.ranks)
    assert 0 < sum(rank.caused_ns for rank in found.ranks) <= sum(rank.waited_ns for rank in found.ranks)


@pytest.mark.parametrize("first", [1, 3])
def test_windows_may_begin_at_different_iterations(first: int) -> None:
    # GIVEN ranks of which one is recorded later, with a clock that is 0.4 ms off
    runs = ranks(2, seed=first)
    # WHEN their collectives are matched
    found, _ = compared(simulated(runs, clocks={"rank1": 400_000}, first={"rank1": first}))
    # THEN the iterations that both hold are held against each other
    assert [rank.shift for rank in found.ranks] == [0, first]
    assert found.trusted
    shared = [row for row in runs["rank1"].rows if row.arrived_ns is not None and row.iteration >= first]
    assert found.matched == len(shared)
    waits = {rank.rank: rank.waited_ns for rank in found.ranks}
    assert waits["rank1"] == sum((row.arrived_ns or 0) - row.start_ns for row in shared)


def test_unequal_numbers_are_left_out_and_named() -> None:
    # GIVEN ranks of which one lacks a gather in the fifth iteration
    runs = ranks(2)
    lost = next(row for row in runs["rank1"].rows if row.iteration == 4 and row.name == GATHER)
    runs["rank1"].rows.remove(lost)
    # WHEN their collectives are matched
    found, _ = compared(simulated(runs))
    # THEN that place is named, and the rest is matched
    assert [(one.iteration, one.class_) for one in found.unmatched] == [(4, "all_gather")]
    counts = found.unmatched[0].counts
    assert counts["rank0"] == counts["rank1"] + 1
    held = [row for row in runs["rank0"].rows if row.arrived_ns is not None]
    left_out = sum(row.iteration == 4 and row.name == GATHER for row in held)
    assert found.matched == len(held) - left_out
    assert found.trusted


def test_captures_that_do_not_belong_together_are_not_trusted() -> None:
    # GIVEN two ranks of different runs
    runs = {"rank0": ranks(2, seed=1)["rank0"], "rank1": ranks(2, seed=2)["rank1"]}
    # WHEN their collectives are matched THEN no waits are given
    found, waits = compared(simulated(runs))
    assert not found.trusted
    assert waits == {}
