"""Accuracy of two arms: what the counts allow one to say about a drop, in every reading of them.

A reading is one count for each side: a share that was printed rounded fits several, and an arm may have several runs. What is said
must hold in all readings; where they disagree it is "cannot tell". That no drop was shown never means that there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from moeprof.analyzers.accuracy import proportions
from moeprof.analyzers.accuracy.results import (
    AccuracyLabel,
    AccuracyReason,
    AccuracyRow,
    ArmAccuracy,
    Evaluation,
    NeededQuestions,
    NonInferiority,
    Pairing,
    Reading,
)
from moeprof.analyzers.accuracy.runs import arm_accuracy, run_floor
from moeprof.analyzers.accuracy.sentences import notes, sentence

_LEVEL = 0.05
_MARGINS = (0.01, 0.02, 0.03)


def compare_accuracy(
    base: Sequence[Evaluation], candidate: Sequence[Evaluation], *, margin: float | None = None
) -> tuple[AccuracyRow, ...]:
    """Compare the evaluations of two arms, task by task.

    Args:
        base: Runs of the base arm, of any tasks.
        candidate: Runs of the other arm.
        margin: The largest drop that is acceptable, as a difference of shares (0.02 is 2 points); None: none was stated.

    Returns:
        A row for each task of either side, by name.

    Example:
        >>> before = [Evaluation("gsm8k", 1319, (1125,), "base.txt")]
        >>> (row,) = compare_accuracy(before, [Evaluation("gsm8k", 1319, (1140,), "mega.txt")], margin=0.02)
        >>> row.label, round(row.difference, 4), row.noninferiority.shown
        ('no drop shown', 0.0114, True)
    """
    tasks = sorted({run.task for run in (*base, *candidate)})
    sides = ([[run for run in arm if run.task == task] for arm in (base, candidate)] for task in tasks)
    return tuple(_row(task, before, after, margin) for task, (before, after) in zip(tasks, sides, strict=True))


def _row(task: str, base: Sequence[Evaluation], candidate: Sequence[Evaluation], margin: float | None) -> AccuracyRow:
    before, after = (arm_accuracy(runs) if runs else None for runs in (base, candidate))
    if before is None or after is None:
        return _one_sided(task, before, after)
    readings = _readings(base, candidate)
    least, most = readings[0], readings[-1]
    pairings = _pairings(base, candidate)
    label, reason = _label(base, candidate, readings, pairings)
    assert before.median is not None and after.median is not None  # both sides have runs
    share = before.median
    stated = None if margin is None else _noninferiority(base, candidate, share, margin)
    row = AccuracyRow(
        metric="accuracy",
        task=task,
        base=before,
        candidate=after,
        difference=after.median - before.median,
        interval=(least.interval[0], most.interval[1]),
        least_favourable=least,
        most_favourable=most,
        paired=pairings,
        noninferiority=stated,
        needed=() if margin is not None else tuple(_needed(share, one) for one in _MARGINS),
        p_floor=run_floor(len(base), len(candidate)),
        label=label,
        reason=reason,
        text="",
    )
    return _told(row, _shots(base, candidate))


def _one_sided(task: str, base: ArmAccuracy | None, candidate: ArmAccuracy | None) -> AccuracyRow:
    reason: AccuracyReason = "no_data_base" if base is None else "no_data_candidate"
    row = AccuracyRow(
        "accuracy", task, base, candidate, None, None, None, None, (), None, (), None, "cannot tell", reason, ""
    )
    return _told(row, None)


def _told(row: AccuracyRow, shots: str | None) -> AccuracyRow:
    return replace(row, text=sentence(row), notes=notes(row, shots))


def _readings(base: Sequence[Evaluation], candidate: Sequence[Evaluation]) -> list[Reading]:
    """Return the readings at the ends of what was written, of every pair of runs; least favourable to the candidate first."""
    readings = [
        Reading(
            base=before,
            candidate=after,
            difference=after / candidate_total - before / base_total,
            interval=proportions.newcombe(before, base_total, after, candidate_total),
            score_interval=proportions.score_interval(before, base_total, after, candidate_total),
        )
        for before, base_total, after, candidate_total in _counts(base, candidate)
    ]
    return sorted(readings, key=lambda reading: (reading.difference, reading.interval))


def _pairings(base: Sequence[Evaluation], candidate: Sequence[Evaluation]) -> tuple[Pairing, ...]:
    """Return every pair of runs whose outcomes are known question by question."""
    found = []
    for one, other in product(base, candidate):
        if one.outcomes is None or other.outcomes is None or len(one.outcomes) != len(other.outcomes):
            continue
        outcomes = list(zip(one.outcomes, other.outcomes, strict=True))
        base_only = outcomes.count((True, False))
        candidate_only = outcomes.count((False, True))
        p = proportions.mcnemar(base_only, candidate_only)
        found.append(Pairing(one.source, other.source, base_only, candidate_only, p))
    return tuple(found)


def _label(
    base: Sequence[Evaluation],
    candidate: Sequence[Evaluation],
    readings: Sequence[Reading],
    pairings: Sequence[Pairing],
) -> tuple[AccuracyLabel, AccuracyReason]:
    if len({run.total for run in (*base, *candidate)}) > 1 or _shots(base, candidate) is not None:
        return "cannot tell", "questions_differ"
    reason: AccuracyReason = "interval"
    if len(pairings) == len(base) * len(candidate):
        # The same questions, one by one, tell far more than two shares.
        drops = {pair.p < _LEVEL and pair.base_only > pair.candidate_only for pair in pairings}
        reason = "paired"
    else:
        drops = {reading.interval[1] < 0 for reading in readings}
    if len(drops) > 1:
        return "cannot tell", "readings_disagree"
    return ("drop shown" if drops == {True} else "no drop shown"), reason


def _shots(base: Sequence[Evaluation], candidate: Sequence[Evaluation]) -> str | None:
    """Return the numbers of examples where runs that tell them were given different ones."""
    told = sorted({run.shots for run in (*base, *candidate) if run.shots is not None})
    return " and ".join(str(shots) for shots in told) if len(told) > 1 else None


def _noninferiority(
    base: Sequence[Evaluation],
    candidate: Sequence[Evaluation],
    share: float,
    margin: float,
) -> NonInferiority:
    counts = _counts(base, candidate)
    tests = [proportions.noninferiority(*reading, margin) for reading in counts]
    shown = {p < _LEVEL for p in tests}
    return NonInferiority(
        margin=margin,
        p=max(tests),
        p_equivalence=max(proportions.equivalence(*reading, margin) for reading in counts),
        shown=shown.pop() if len(shown) == 1 else None,
        questions_needed=proportions.questions_needed(share, margin),
    )


def _counts(base: Sequence[Evaluation], candidate: Sequence[Evaluation]) -> list[tuple[int, int, int, int]]:
    """Return right answers and questions of both sides: the ends of what was written, of every pair of runs."""
    found = {
        (before, one.total, after, other.total)
        for one, other in product(base, candidate)
        for before, after in product((one.correct[0], one.correct[-1]), (other.correct[0], other.correct[-1]))
    }
    return sorted(found)


def _needed(share: float, margin: float) -> NeededQuestions:
    return NeededQuestions(margin, proportions.questions_needed(share, margin))
