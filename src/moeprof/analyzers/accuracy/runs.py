"""What the runs of one arm say together. They ask the same questions, so n runs are not n times as many questions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median, stdev

from moeprof.analyzers.accuracy.proportions import wilson
from moeprof.analyzers.accuracy.results import ArmAccuracy, Evaluation
from moeprof.analyzers.durations import student


def arm_accuracy(runs: Sequence[Evaluation]) -> ArmAccuracy:
    """Return what at least one run of a task says.

    Example:
        >>> found = arm_accuracy([Evaluation("gsm8k", 1319, (1209, 1210), "a.txt")])
        >>> found.correct, round(found.median, 4), found.sd
        (((1209, 1210),), 0.917, None)
    """
    totals = {run.total for run in runs}
    values = tuple(_middle(run) / run.total for run in runs)
    sd = stdev(values) if len(values) > 1 else None
    return ArmAccuracy(
        runs=len(runs),
        questions=totals.pop() if len(totals) == 1 else None,
        correct=tuple((run.correct[0], run.correct[-1]) for run in runs),
        invalid=_invalid(runs),
        values=values,
        median=median(values),
        interval=_interval(runs, values),
        sd=sd,
        prediction=None if sd is None else _prediction(values, sd),
        sources=tuple(run.source for run in runs),
    )


def run_floor(base: int, candidate: int) -> float:
    """Return the least two-sided p that a rank test over so many runs could reach.

    >>> run_floor(1, 3)
    0.5
    """
    return min(1.0, 2 / math.comb(base + candidate, base))


def _middle(run: Evaluation) -> float:
    return (run.correct[0] + run.correct[-1]) / 2


def _invalid(runs: Sequence[Evaluation]) -> tuple[tuple[int, int], ...] | None:
    told = tuple((run.invalid[0], run.invalid[-1]) for run in runs if run.invalid is not None)
    return told if len(told) == len(runs) else None


def _interval(runs: Sequence[Evaluation], values: Sequence[float]) -> tuple[float, float]:
    """Return Wilson's interval of the run in the middle (the lower of two), over every count that it allows."""
    order = sorted(range(len(runs)), key=lambda index: (values[index], index))
    run = runs[order[(len(order) - 1) // 2]]
    return wilson(run.correct[0], run.total)[0], wilson(run.correct[-1], run.total)[1]


def _prediction(values: Sequence[float], sd: float) -> tuple[float, float]:
    count = len(values)
    half = student.critical(0.95, count - 1) * sd * math.sqrt(1 + 1 / count)
    return max(0.0, fmean(values) - half), min(1.0, fmean(values) + half)
