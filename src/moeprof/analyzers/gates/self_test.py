"""Prove that the alarm can fire: break a good run in every way a regression would, and see whether the gate notices."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import cast

from moeprof.analyzers.gates.evaluate import evaluate
from moeprof.analyzers.gates.faults import Fault, faults, gating, worsened
from moeprof.analyzers.gates.metrics import metric_rows, serving_of
from moeprof.analyzers.gates.observation import Observation
from moeprof.analyzers.gates.results import GateResult
from moeprof.analyzers.gates.rules import GateRules
from moeprof.analyzers.plain import to_json
from moeprof.analyzers.serving.metrics import Metric
from moeprof.findings import JsonValue

_MOST = 0.9  # a metric that must lose nine tenths before the gate sees it is not gated
_STEPS = 12


@dataclass(frozen=True, slots=True)
class Trial:
    """One fault and what became of it.

    Attributes:
        fault: What was broken.
        caught: Whether the gate failed because of it.
        because: The rule that saw it, or why none did.
        must_fire: False for the unbroken copy, which must pass.
    """

    fault: str
    caught: bool
    because: str
    must_fire: bool = True


@dataclass(frozen=True, slots=True)
class Reach:
    """The least worsening of a metric that fires with the noise and the number of passes of the baseline; None: none up to nine tenths."""

    metric: str
    workload: str
    threshold: float
    least: float | None


@dataclass(frozen=True, slots=True)
class SelfTest:
    """The outcome: `moeprof.self-test/1`."""

    source: str
    trials: tuple[Trial, ...]
    reach: tuple[Reach, ...]

    @property
    def missed(self) -> tuple[Trial, ...]:
        """Return the trials that went wrong: a fault that was not seen, or an alarm without one."""
        return tuple(trial for trial in self.trials if trial.caught is not trial.must_fire)

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the JSON object."""
        body = cast("dict[str, JsonValue]", to_json(self))
        return {"schema": "moeprof.self-test/1", **body, "missed": len(self.missed)}


def self_test(good: Observation, rules: GateRules, words: Collection[str]) -> SelfTest:
    """Break a run in every way that its data allow, and gate each copy against it.

    Args:
        good: A run or a baseline; it is its own baseline here.
        rules: The rules under test.
        words: Of ``--fail-on``: a fault counts as caught when the gate would fail because of it.
    """
    unbroken = evaluate(good, good, rules)
    trials = [_unbroken(unbroken, words)]
    trials += [_trial(good, fault, rules, words) for fault in faults(good, rules)]
    reach = [
        Reach(metric.name, point, metric.threshold, _least(good, point, metric, rules))
        for point, metric in gating(good, rules)
    ]
    return SelfTest(good.source, tuple(trials), tuple(reach))


def _unbroken(result: GateResult, words: Collection[str]) -> Trial:
    fired = [row for row in result.rules if row.word is not None and row.word in words]
    because = fired[0].message if fired else "passes, as it must"
    return Trial("nothing (the same run again)", bool(fired), because, must_fire=False)


def _trial(good: Observation, fault: Fault, rules: GateRules, words: Collection[str]) -> Trial:
    result = evaluate(good, fault.broken, rules)
    about = [row for row in result.rules if any(_names(rule, row.rule) for rule in fault.rules)]
    fired = [row for row in about if row.word is not None and row.word in words]
    if fired:
        return Trial(fault.name, True, f"{fired[0].verdict}: {fired[0].message}")
    if not about:
        return Trial(fault.name, False, "no rule looks at it")
    return Trial(fault.name, False, f"{about[0].verdict}: {about[0].message}")


def _names(rule: str, name: str) -> bool:
    return name.startswith(rule[:-1]) if rule.endswith("*") else name == rule


def _least(good: Observation, point: str, metric: Metric, rules: GateRules) -> float | None:
    """Return the least worsening that fires, to a thousandth, by halving."""
    if not _fires(good, point, metric, rules, _MOST):
        return None
    low, high = 0.0, _MOST
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _fires(good, point, metric, rules, middle):
            high = middle
        else:
            low = middle
    return round(high, 3)


def _fires(good: Observation, point: str, metric: Metric, rules: GateRules, share: float) -> bool:
    found = serving_of(good, worsened(good, point, metric, share), rules, stored=True)
    wanted = f"metric/{point}/{metric.name}"
    return any(row.rule == wanted and row.verdict == "fail" for row in metric_rows(found, rules))
