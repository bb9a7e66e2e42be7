"""From an arm to its engines and ranks, and from what a block found to its manifest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from moeprof.config.schema import Arm, Config, Expect, Server
from moeprof.profiler.evidence import engines, manifest, point_name, ranks
from moeprof.profiler.gates import Evidence, judge
from moeprof.profiler.load import Load
from moeprof.profiler.log_facts import log_facts
from moeprof.profiler.order import Findings, Order, Seen
from moeprof.profiler.probe import Probe
from moeprof.profiler.window import WindowResult
from tests.unit.config.files import LEAST, load


def arm(*flags: str) -> Arm:
    """Return an arm with flags."""
    return Arm("base", flags, {}, Server(model="m"), Expect())


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), (1, 1)),
        (("--data-parallel-size", "2"), (2, 2)),
        (("-dp", "2", "-tp", "4"), (2, 8)),
        (("--data-parallel-size=4", "--tensor-parallel-size=2", "--pipeline-parallel-size=2"), (4, 16)),
        (("--tensor-parallel-size", "8"), (1, 8)),
        (("--data-parallel-size", "two"), (1, 1)),
    ],
)
def test_engines_and_ranks(flags: tuple[str, ...], expected: tuple[int, int]) -> None:
    # WHEN flags say how the server is split THEN engines count steps and ranks write traces
    assert (engines(arm(*flags)), ranks(arm(*flags))) == expected


@pytest.mark.parametrize(
    ("changes", "name"),
    [({"concurrency": 128}, "c128"), ({"rate": 2.5}, "r2.5"), ({"rate": 4.0}, "r4")],
)
def test_names_of_points(changes: dict[str, float], name: str) -> None:
    # WHEN a load is named THEN its concurrency or its rate tells it
    assert point_name(replace(Load(8, 4, 4), **changes)) == name  # type: ignore[arg-type]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return load(tmp_path, LEAST)


def order(config: Config, **changes: object) -> Order:
    """Return an order of the configuration's arm."""
    return replace(Order(config, config.arms["base"], config.workloads["decode"]), **changes)  # type: ignore[arg-type]


def test_a_block_that_got_nowhere(config: Config, tmp_path: Path) -> None:
    # GIVEN a block that failed at once WHEN its manifest is made
    built, failed = manifest(order(config), tmp_path, Findings("2026-11-30T20:37:30Z"), "2026-11-30T20:37:31Z")
    # THEN what is not known is absent, and the required gates have no data
    assert (built.argv, built.passes, built.window, built.log_facts) == ((), (), {}, {})
    told = {name: built.extra[name] for name in ("ready_s", "client", "per_iteration", "probe", "attached")}
    assert told == {"ready_s": None, "client": None, "per_iteration": None, "probe": None, "attached": False}
    assert [gate.name for gate in failed] == [
        name for name in config.gates.required if name != "expected-backend"
    ]  # of which it claims nothing
    assert {gate.outcome for gate in failed} == {"no-data"}


def test_what_was_seen_is_kept(config: Config, tmp_path: Path) -> None:
    # GIVEN a block that has looked at its traces, and a probe that gave nothing
    found = Findings("2026-11-30T20:37:30Z", seen=Seen({"moe_gemm/target": 84}, {"dp0": 20}, "moeprof"))
    found.probe = Probe((), "answered 400: no")
    # WHEN its manifest is made, with the other arm's kernels known
    wanted = order(config, other_kernels={"moe_gemm/target": 42})
    built, _ = manifest(wanted, tmp_path, found, "2026-11-30T20:37:31Z")
    # THEN kernels and the probe's reason are there, and the gates judge by them
    assert built.extra["per_iteration"] == {"moe_gemm/target": 84}
    assert built.extra["probe"] == {"seen": "answered 400: no", "tokens": 0, "finite": None}
    gates = {gate["name"]: (gate["outcome"], gate["message"]) for gate in built.gates}
    assert gates["finite-logprobs"] == ("no-data", "no log probabilities from the probe: the server answered 400: no")
    assert gates["markers-present"] == ("pass", "the trace is cut by markers of family moeprof")
    assert gates["arms-differ"][0] == "pass"


@pytest.mark.parametrize(
    ("held", "most", "outcome"), [(20, 20, "pass"), (20, None, "fail"), (17, 20, "fail"), (24, None, "pass")]
)
def test_a_profiler_that_stops_by_itself(config: Config, held: int, most: int | None, outcome: str) -> None:
    # GIVEN a log that counts 24 iterations until the window was closed
    lines = ["(APIServer pid=1) INFO 11-30 20:37:30 [api_router.py:23] Starting profiler..."]
    lines += [
        f"(EngineCore_DP0 pid=1) INFO 11-30 20:37:30 [core.py:419] Engine 000: Iteration({number}): 0 context requests, "
        "0 context tokens, 8 generation requests, 32 generation tokens, iteration elapsed time: 5.00 ms"
        for number in range(24)
    ]
    lines += ["(APIServer pid=1) INFO 11-30 20:37:31 [api_router.py:31] Stopping profiler..."]
    window = WindowResult(1.0, 2.0, 8, 8, 24, "iterations", ("a",))
    # WHEN the trace holds what the profiler recorded THEN no more than its limit is expected of it
    evidence = Evidence(
        config.workloads["decode"], window=window, iterations={"dp0": held}, ranks=1,
        log=log_facts("\n".join(lines)), most_iterations=most,
    )  # fmt: skip
    results = {item.name: item.outcome for item in judge(evidence, config.gates)}
    assert results["traces-complete"] == outcome


def test_what_not_all_arms_share_is_recorded_as_their_own(config: Config, tmp_path: Path) -> None:
    # GIVEN two arms with a seed in common, a back end each, and a variable that one of them sets
    arms = {
        "base": Arm("base", ("--seed", "0", "--moe-backend", "humming"), {}, Server(model="m"), Expect()),
        "mega": Arm("mega", ("--moe_backend=mega", "--seed", "0"), {"X": "1"}, Server(model="m"), Expect()),
    }
    ordered = order(replace(config, arms=arms))
    # WHEN a manifest is made THEN it names what makes an arm, whichever it is
    built, _ = manifest(ordered, tmp_path, Findings(started="2026-11-30T20:37:30Z"), "2026-11-30T20:40:00Z")
    assert built.extra["own"] == ["env.X", "flags.moe-backend"]
