"""The sentences that evaluations carry, and those that they do not: parity least of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moeprof.analyzers.accuracy.results import AccuracyRow
from moeprof.analyzers.accuracy.sentences import in_points
from moeprof.analyzers.claims.results import ClaimRow

_NEVER = "never"


def accuracy_claims(rows: Sequence[AccuracyRow]) -> tuple[ClaimRow, ...]:
    """Return what may be said of the tasks of a comparison, then what may not."""
    said = [claim for row in rows for claim in _said(row)]
    unsaid = [claim for row in rows for claim in _unsaid(row)]
    return (*said, *unsaid)


def _said(row: AccuracyRow) -> Iterator[ClaimRow]:
    if row.label == "cannot tell" or row.difference is None or row.base is None or row.candidate is None:
        return
    asked = f"{row.base.questions} questions, {row.base.runs} v {row.candidate.runs} runs"
    if row.label == "drop shown":
        text = f"{row.task} accuracy fell by {in_points(round(-row.difference, 4))}"
    else:
        text = f"no drop of {row.task} accuracy was shown at {asked}"
    yield ClaimRow(text, row.label, _figures(row, asked), "sentence", row.metric, row.task)
    if row.noninferiority is not None and row.noninferiority.shown:
        margin = in_points(row.noninferiority.margin)
        because = f"one-sided score test at the stated margin, p = {row.noninferiority.p:.3g} ({asked})"
        yield ClaimRow(
            f"{row.task} accuracy drops by less than {margin}", row.label, because, "sentence", row.metric, row.task
        )


def _unsaid(row: AccuracyRow) -> Iterator[ClaimRow]:
    if row.label == "cannot tell":
        text = f"anything about a drop of {row.task} accuracy"
        yield ClaimRow(text, _NEVER, row.text.partition(": ")[2], "not-said", row.metric, row.task)
        return
    shown = row.noninferiority is not None and row.noninferiority.shown
    if row.label == "no drop shown" and not shown and row.interval is not None:
        worst = in_points(round(max(0.0, -row.interval[0]), 4))
        stated = "no margin was stated" if row.noninferiority is None else "the stated margin was not shown"
        because = f"{stated}, and a drop of {worst} is not excluded"
        yield ClaimRow(f"parity of {row.task} accuracy", _NEVER, because, "not-said", row.metric, row.task)


def _figures(row: AccuracyRow, asked: str) -> str:
    if row.reason == "paired":
        tests = "; ".join(f"{pair.base_only} to {pair.candidate_only}, p = {pair.p:.3g}" for pair in row.paired)
        return f"questions that only one side answered rightly: {tests} ({asked})"
    low, high = row.interval if row.interval is not None else (0.0, 0.0)
    return f"95 % interval of the difference {low * 100:+.2f} .. {high * 100:+.2f} points over all readings ({asked})"
