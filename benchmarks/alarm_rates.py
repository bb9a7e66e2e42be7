"""How often the default rule of a metric raises an alarm: without any effect, and when the candidate is 10 % slower.

Passes are log-normal around a level; a server start may have an offset of its own, and the machine may drift over the plan.

    python benchmarks/alarm_rates.py --repetitions 4000
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

from moeprof.analyzers.serving.design import halves
from moeprof.analyzers.serving.figures import figures
from moeprof.analyzers.serving.metrics import Metric
from moeprof.analyzers.serving.results import ServingSample, Workload
from moeprof.analyzers.serving.verdict import verdict

PLANS = {
    "A3 B3": ("A3", "B3"),
    "A3 B3 A3": ("A3", "B3", "A3"),
    "A B B A, twice": tuple(f"{arm}1" for arm in "ABBAABBA"),
}
_METRIC = Metric("median_tpot_ms", "ms", "lower", gates=True)
_LOAD = Workload()


@dataclass(frozen=True, slots=True)
class Noise:
    """What disturbs a value: coefficients of variation within and between starts, drift from the first pass to the last."""

    name: str
    within: float
    between: float = 0.0
    drift: float = 0.0


NOISES = (
    Noise("cv 3 %", 0.03),
    Noise("+ start offsets of 3 %", 0.03, between=0.03),
    Noise("+ drift of 6 %", 0.03, drift=0.06),
    Noise("cv 13 %", 0.13),
)


def alarm_rate(plan: Sequence[str], noise: Noise, effect: float, repetitions: int, seed: int) -> float:
    """Return the share of repetitions in which the metric regressed.

    Args:
        plan: Blocks in order, arm and number of passes.
        noise: What disturbs the values.
        effect: True change of the candidate.
        repetitions: How often.
        seed: Of the random numbers.
    """
    generator = random.Random(seed)
    alarms = 0
    for _ in range(repetitions):
        base, candidate, samples = _values(plan, noise, effect, generator)
        found = figures(base, candidate, halves(samples))
        alarms += verdict(_METRIC, found, "A/B only")[0] == "regressed"
    return alarms / repetitions


def _values(
    plan: Sequence[str], noise: Noise, effect: float, generator: random.Random
) -> tuple[list[float], list[float], list[ServingSample]]:
    total = sum(int(block[1:]) for block in plan)
    base: list[float] = []
    candidate: list[float] = []
    samples: list[ServingSample] = []
    place = 0
    for number, block in enumerate(plan):
        offset = exp(generator.gauss(0, noise.between)) if noise.between else 1.0
        for index in range(int(block[1:])):
            level = 10 * offset * (1 + noise.drift * place / max(1, total - 1))
            value = round(level * exp(generator.gauss(0, sqrt(log(1 + noise.within**2)))), 6)
            if block[0] == "A":
                base.append(value)
                samples.append(ServingSample(number, index, "", _LOAD, {}))
            else:
                candidate.append(round(value * (1 + effect), 6))
            place += 1
    return base, candidate, samples


def table(repetitions: int, seed: int) -> list[tuple[str, ...]]:
    """Return a row for each plan: its name, then false alarms and detections for each noise."""
    return [
        (
            name,
            *(
                " / ".join(f"{alarm_rate(plan, noise, effect, repetitions, seed):.1%}" for effect in (0.0, 0.10))
                for noise in NOISES
            ),
        )
        for name, plan in PLANS.items()
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("| plan |", " | ".join(noise.name for noise in NOISES), "|")
    print("| --- |" + " --- |" * len(NOISES))
    for row in table(options.repetitions, options.seed):
        print("|", " | ".join(row), "|")


if __name__ == "__main__":
    main()
