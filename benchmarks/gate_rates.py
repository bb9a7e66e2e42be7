"""How often the default gate rules cry wolf, and how often they see a true regression: a seeded simulation.

    python -m benchmarks.gate_rates [--repetitions 2000] [--seed 1]

Passes are made as in docs/statistics.md: log-normal values around a level per server start, a drift that runs evenly through the
whole session, and an offset of each server start. They go through the functions that `moeprof gate` itself uses. A regression is a
change of the candidate for the worse by the effect named; an alarm is a rule of a metric that ends as ``fail``.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from moeprof.analyzers.gates.evaluate import evaluate
from moeprof.analyzers.gates.observation import Observation
from moeprof.analyzers.gates.rules import GateRules
from moeprof.analyzers.serving.results import ArmSamples, Block, ServingSample, Workload

METRIC = "median_tpot_ms"
LEVEL = 10.0
PASS_S = 60.0
RESTART_S = 300.0


@dataclass(frozen=True, slots=True)
class World:
    """What the measurements suffer from.

    Attributes:
        name: For the table.
        cv: Coefficient of variation of a pass around its server's level.
        offset: Standard deviation of a server start's level.
        drift: Change from the first to the last pass of the session.
    """

    name: str
    cv: float
    offset: float = 0.0
    drift: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """Blocks of passes in time. `stored`: the A blocks are a baseline accepted earlier, whose starts share nothing with the run."""

    name: str
    blocks: tuple[tuple[str, int], ...]
    stored: bool = False


WORLDS = (
    World("cv 3 %", 0.03),
    World("cv 3 %, starts 3 %", 0.03, offset=0.03),
    World("cv 3 %, drift 6 %", 0.03, drift=0.06),
    World("cv 13 %", 0.13),
)
PLANS = (
    Plan("A3 B3", (("A", 3), ("B", 3))),
    Plan("A3 B3 A3", (("A", 3), ("B", 3), ("A", 3))),
    Plan("(A1 B1 B1 A1) x 2", (("A", 1), ("B", 1), ("B", 1), ("A", 1)) * 2),
    Plan("(A1 B1 B1 A1) x 3", (("A", 1), ("B", 1), ("B", 1), ("A", 1)) * 3),
    Plan("baseline A6, later B3", (("A", 6), ("B", 3)), stored=True),
)


def session(plan: Plan, world: World, effect: float, chance: random.Random) -> tuple[Observation, Observation]:
    """Return both arms of one session."""
    total = sum(passes for _, passes in plan.blocks)
    sigma = math.sqrt(math.log1p(world.cv**2))
    arms: dict[str, list[ServingSample]] = {"A": [], "B": []}
    now, place = 0.0, 0
    for number, (arm, passes) in enumerate(plan.blocks):
        start = math.exp(chance.gauss(0.0, world.offset))
        for index in range(passes):
            drifted = 1 + world.drift * place / max(total - 1, 1)
            value = LEVEL * start * drifted * math.exp(chance.gauss(0.0, sigma)) * (1 + effect if arm == "B" else 1)
            arms[arm].append(_sample(number, index, value, now))
            now += PASS_S
            place += 1
        now += RESTART_S
    return _arm("A", arms["A"]), _arm("B", arms["B"])


def _sample(block: int, number: int, value: float, started: float) -> ServingSample:
    return ServingSample(
        block,
        number,
        f"{block}.{number}",
        Workload(client="simulated"),
        {METRIC: value},
        started=1 + started,
        ended=started + PASS_S,
    )


def _arm(name: str, samples: Sequence[ServingSample]) -> Observation:
    blocks = tuple(Block(number, "f") for number in sorted({sample.block for sample in samples}))
    return Observation(name, name, samples=ArmSamples(name, name, tuple(samples), blocks))


def alarms(plan: Plan, world: World, effect: float, repetitions: int, seed: int) -> float:
    """Return the share of sessions in which the default rules fail.

    Args:
        plan: The blocks.
        world: Noise, offsets and drift.
        effect: True change of the candidate, for the worse; 0 makes every alarm a false one.
        repetitions: Number of sessions.
        seed: Of the random numbers; equal arguments give equal results.
    """
    chance = random.Random(f"{seed} {plan.name} {world.name} {effect}")
    rules = GateRules()
    fired = 0
    for _ in range(repetitions):
        base, candidate = session(plan, world, effect, chance)
        fired += "regression" in evaluate(base, candidate, rules, stored=plan.stored).happened()
    return fired / repetitions


def main(argv: list[str] | None = None) -> int:
    """Print the table of docs/ci.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--effect", type=float, default=0.10, help="true regression whose detection is counted")
    options = parser.parse_args(argv)
    print("| plan (passes per start) | " + " | ".join(world.name for world in WORLDS) + " |")
    print("| --- |" + " --- |" * len(WORLDS))
    for plan in PLANS:
        cells = []
        for world in WORLDS:
            false, seen = (
                alarms(plan, world, effect, options.repetitions, options.seed) for effect in (0.0, options.effect)
            )
            cells.append(f"{false * 100:.1f} % / {seen * 100:.0f} %")
        print(f"| {plan.name} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
