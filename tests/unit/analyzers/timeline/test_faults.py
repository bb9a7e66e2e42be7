"""Faults that are made on purpose in simulated ranks are found and named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moeprof import api
from moeprof.analyzers.results import Diff, Report
from moeprof.traces.trace import Trace
from tests.simulator.kineto import simulated
from tests.simulator.program import (
    DENSE,
    EXPERT,
    GATHER,
    REDUCE,
    SCATTER,
    SMALL,
    Collective,
    Host,
    Launch,
    Program,
    Replay,
    Step,
    Sync,
)
from tests.simulator.run import run

_ITERATIONS = 12
_LAYERS = 6


def layer(slower: float = 1.0, experts: float = 1.0) -> list[Step]:
    """Return a MoE layer of eager launches."""
    return [
        Launch(DENSE, round(30_000 * slower)),
        Collective(GATHER, 8_000),
        Launch(EXPERT, round(60_000 * slower * experts)),
        Launch(SMALL, 3_000),
        Launch(EXPERT, round(40_000 * slower * experts)),
        Collective(SCATTER, 9_000),
    ]


def eager(*, slower: float = 1.0, experts: float = 1.0, before: tuple[Step, ...] = ()) -> Program:
    """Return iterations of eager layers whose launches the device follows."""
    steps: list[Step] = [*before, Host(20_000)]
    for _ in range(_LAYERS):
        steps += layer(slower, experts)
    return [[*steps, Launch(SMALL, 2_000), Sync()] for _ in range(_ITERATIONS)]


def small(*, graphs: bool, host: int = 25_000) -> Program:
    """Return iterations of many small kernels: replayed as one graph, or launched one by one."""
    kernels = [(EXPERT if index % 4 == 0 else SMALL, 3_000 + 10 * index) for index in range(60)]
    work: list[Step] = [Replay(tuple((kernel,) for kernel in kernels))]
    if not graphs:
        work = [step for name, ns in kernels for step in (Host(host), Launch(name, ns))]
    return [[Host(50_000), *work, Sync()] for _ in range(_ITERATIONS)]


def report(trace: Trace) -> Report:
    return api.report(trace, timeline=True, ranks=True)


def slugs(result: Report | Diff) -> set[str]:
    return {finding.slug for finding in result.findings}


def message(result: Report | Diff, slug: str) -> str:
    return next(finding.message for finding in result.findings if finding.slug == slug)


def test_a_rank_that_is_slower_in_gemms_is_named() -> None:
    # GIVEN four ranks of which one takes 15 % longer for each GEMM
    programs = {f"rank{rank}": eager(slower=1.15 if rank == 2 else 1.0) for rank in range(4)}
    # WHEN they are reported on
    found = report(simulated(run(programs)))
    # THEN it is named with the size of it, as the one that the others wait for
    slow = [finding for finding in found.findings if finding.slug == "slow-rank"]
    assert [finding.rank for finding in slow] == ["rank2"]
    assert "15.0 % longer" in slow[0].message
    assert [finding.rank for finding in found.findings if finding.slug == "straggler"] == ["rank2"]
    assert "experts-uneven" not in slugs(found)


def test_uneven_experts_are_told_apart_from_a_slow_rank() -> None:
    # GIVEN two ranks of which one has a fifth more expert work, and the same dense work
    programs = {"rank0": eager(), "rank1": eager(experts=1.2)}
    # WHEN they are reported on
    found = report(simulated(run(programs)))
    # THEN the experts are named, not the rank
    assert "20.0 % longer in expert GEMMs" in message(found, "experts-uneven")
    assert "slow-rank" not in slugs(found)


def test_equal_ranks_have_no_finding() -> None:
    # GIVEN ranks that do the same WHEN they are reported on THEN nothing is found of them
    found = report(simulated(run({"rank0": eager(), "rank1": eager()})))
    assert not slugs(found) & {"slow-rank", "experts-uneven", "straggler", "collectives-apart", "host-bound"}


def test_lost_graphs_are_named() -> None:
    # GIVEN an arm that replays a graph, and one that launches its kernels one by one, held up by the host
    base = report(simulated(run({"rank0": small(graphs=True)})))
    candidate = report(simulated(run({"rank0": small(graphs=False)})))
    # WHEN each is reported on and both are compared
    changed = api.diff(base, candidate)
    # THEN the host bounds the second one, and why is said
    assert "host-bound" not in slugs(base)
    assert "host-bound" in slugs(candidate)
    assert "graph launches per iteration 1 -> 0, launch calls 1 -> 60" in message(changed, "graphs-lost")
    # AND swapped arms have lost nothing
    assert "graphs-lost" not in slugs(api.diff(candidate, base))


def test_an_added_synchronisation_is_named() -> None:
    # GIVEN an arm that waits for the device once more in each iteration
    base = report(simulated(run({"rank0": eager()})))
    program = [[*steps[:20], Sync(), *steps[20:]] for steps in eager()]
    candidate = report(simulated(run({"rank0": program})))
    # WHEN both are compared
    changed = api.diff(base, candidate)
    # THEN it is counted, and its cost is the device's idle time
    assert "1 -> 2 per iteration" in message(changed, "synchronisation-added")
    parts = {part.state: part.difference_ns for part in changed.waterfall.parts if part.phase == "target"}  # type: ignore[union-attr]  # present
    assert parts["host_sync"] > 0


@pytest.mark.parametrize("swap", [False, True])
def test_a_waterfall_adds_up(swap: bool) -> None:
    # GIVEN an arm with one more all-reduce in each layer
    more: Program = [
        [part for step in steps for part in ((step, Collective(REDUCE, 12_000)) if _ends_layer(step) else (step,))]
        for steps in eager()
    ]
    arms = [report(simulated(run({"rank0": program, "rank1": program}))) for program in (eager(), more)]
    base, candidate = reversed(arms) if swap else arms
    # WHEN both are compared
    found = api.diff(base, candidate).waterfall
    # THEN its parts and the rest are the difference of the medians, to the ns
    assert found is not None
    walls = [[rank.per_iteration_ns.wall for rank in side.ranks] for side in (base, candidate)]
    assert [found.base_ns, found.candidate_ns] == [side[0].median if side[0] else None for side in walls]
    assert sum(part.difference_ns for part in found.parts) + found.rest_ns == found.difference_ns
    assert all(part.candidate_ns - part.base_ns == part.difference_ns for part in found.parts)
    # AND the all-reduces are the largest part
    largest = found.parts[0]
    assert (largest.state, largest.class_) == ("communication", "all_reduce")
    assert abs(largest.difference_ns) == _LAYERS * 12_000


def _ends_layer(step: Step) -> bool:
    return isinstance(step, Collective) and step.name == SCATTER


def test_only_equal_batches_are_compared() -> None:
    # GIVEN arms with different batches
    labels = [[f"execute_context_0(0)_generation_{size}({size})"] * _ITERATIONS for size in (8, 16)]
    arms = [report(simulated(run({"rank0": eager()}), labels={"rank0": names})) for names in labels]
    # WHEN they are compared THEN wall times are not explained, and times per token stand for them
    changed = api.diff(*arms)
    assert changed.waterfall is None
    assert "per scheduled token" in message(changed, "batches-differ")
    # AND each arm has its batch, with the time per token generated
    regime = arms[1].ranks[0].timeline.regimes[0]  # type: ignore[union-attr]  # asked for
    assert (regime.kind, regime.requests, regime.tokens) == ("decode", 16, 16)
    assert regime.per_generated_token_ns == regime.wall_ns.median / 16


def test_an_outlier_says_what_it_had_more_of() -> None:
    # GIVEN one iteration in which the host pauses
    program = eager()
    program[7] = [Host(2_000_000), *program[7]]
    # WHEN it is reported on
    timeline = report(simulated(run({"rank0": program}))).ranks[0].timeline
    # THEN it is named with its cause
    assert timeline is not None
    assert [one.iteration for one in timeline.outliers] == [7]
    assert timeline.outliers[0].parts[0].state in ("host_late", "host_sync")


def test_drift_is_seen() -> None:
    # GIVEN iterations that get longer, one after another
    program = [[Host(10_000 * number), *steps] for number, steps in enumerate(eager())]
    # WHEN they are reported on THEN the drift is a finding
    assert "iterations-drift" in slugs(report(simulated(run({"rank0": program}))))


def test_without_timelines_a_diff_has_no_waterfall() -> None:
    # GIVEN reports without timelines WHEN they are compared THEN nothing is explained
    plain = api.report(simulated(run({"rank0": eager()})))
    assert plain.ranks[0].timeline is None
    assert api.diff(plain, replace(plain)).waterfall is None
