"""From what an evaluator wrote to a run of an arm."""

from __future__ import annotations

from collections.abc import Iterable

from moeprof.analyzers.accuracy.results import Evaluation
from moeprof.traces.benchmarks.results import EvaluationResult


def evaluations_of(found: Iterable[tuple[str, EvaluationResult]]) -> tuple[Evaluation, ...]:
    """Return evaluations, each given with where it came from, as runs of an arm."""
    return tuple(
        Evaluation(item.task, item.total, item.correct, source, item.invalid, item.shots, item.outcomes)
        for source, item in found
    )
