"""Sentences about accuracy: what may be said at these counts, and what else a reader must know."""

from __future__ import annotations

from collections.abc import Iterator

from moeprof.analyzers.accuracy.results import AccuracyRow, ArmAccuracy, NonInferiority
from moeprof.wording import plural


def sentence(row: AccuracyRow) -> str:
    """Return the sentence on a row whose label is set."""
    what = f"{row.task} {row.metric}: {row.label}"
    base, candidate = row.base, row.candidate
    if base is None or candidate is None:
        missing = "base" if base is None else "candidate"
        return f"{what}: {missing} was not evaluated"
    if row.reason == "questions_differ":
        return f"{what}: the runs did not ask the same questions in the same way"
    asked = f"{base.questions} questions; {base.runs} v {plural(candidate.runs, 'run')}"
    if row.reason == "readings_disagree":
        return f"{what}: it depends on which run, or which count behind a rounded share, is taken ({asked})"
    words = (
        f"{what} at these n ({asked}): {_points(row)}"
        if row.label == "no drop shown"
        else f"{what} ({asked}): {_points(row)}"
    )
    return f"{words}{_margin(row.noninferiority)}"


def notes(row: AccuracyRow, shots: str | None) -> tuple[str, ...]:
    """Return what else a reader must know.

    Args:
        row: The row.
        shots: Numbers of examples where they differ, else None.
    """
    return tuple(_notes(row, shots))


def in_points(share: float) -> str:
    """Return a difference of shares in percentage points.

    >>> in_points(0.01), in_points(0.025)
    ('1 point', '2.5 points')
    """
    points = f"{share * 100:g}"
    return f"{points} point{'' if points == '1' else 's'}"


def _notes(row: AccuracyRow, shots: str | None) -> Iterator[str]:
    if shots is not None:
        yield f"examples before a question: {shots}"
    sides = [(name, side) for name, side in (("base", row.base), ("candidate", row.candidate)) if side is not None]
    for name, side in sides:
        if side.questions is None:
            yield f"{name}: the runs asked different numbers of questions"
        yield from _rounded(name, side)
        yield from _invalid(name, side)
        if side.sd is not None and side.prediction is not None:
            low, high = side.prediction
            yield (
                f"{name}: from run to run sd {side.sd * 100:.2f} points; one more run is expected between {low:.3f} and {high:.3f}"
            )
    if row.p_floor is not None and max(side.runs for _, side in sides) > 1:
        yield f"by runs no p below {row.p_floor:.2g} could be reached; runs of the same questions are not added up"
    if len(sides) == 2:
        yield "intervals are over questions: what other questions would give; runs vary on the same questions as well"
    if row.needed:
        told = ", ".join(f"{one.questions} for {in_points(one.margin)}" for one in row.needed)
        yield f"no margin was stated, so nothing is said about how small a drop may be; questions needed for each arm: {told}"


def _rounded(name: str, side: ArmAccuracy) -> Iterator[str]:
    if any(low != high for low, high in side.correct):
        told = ", ".join(_range(low, high) for low, high in side.correct)
        yield f"{name}: right answers, as far as the rounded shares tell: {told}"


def _invalid(name: str, side: ArmAccuracy) -> Iterator[str]:
    if side.invalid is None:
        yield f"{name}: how many answers could not be read is not told; they count as wrong"
    elif any(high for _, high in side.invalid):
        told = ", ".join(_range(low, high) for low, high in side.invalid)
        yield f"{name}: answers that could not be read, or requests that failed, and count as wrong: {told}"


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _points(row: AccuracyRow) -> str:
    if row.difference is None or row.interval is None:
        return "no difference is known"
    low, high = row.interval
    return (
        f"{row.difference * 100:+.2f} points, 95 % interval {low * 100:+.2f} .. {high * 100:+.2f}; "
        f"a drop of {max(0.0, -low) * 100:.2f} points is not excluded"
    )


def _margin(stated: NonInferiority | None) -> str:
    if stated is None:
        return ""
    points = in_points(stated.margin)
    if stated.shown:
        return f"; shown to drop by less than {points} (p = {stated.p:.3g})"
    how = "not shown" if stated.shown is False else "shown in some readings only"
    needed = f"{stated.questions_needed} questions an arm would be needed"
    return f"; a drop of less than {points} is {how} (p = {stated.p:.3g}), {needed}"
