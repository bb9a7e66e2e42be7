"""Evaluations of an arm and the rows that a comparison makes of them. Shares are fractions; None is "no data", never 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

AccuracyLabel: TypeAlias = Literal["no drop shown", "drop shown", "cannot tell"]
AccuracyReason: TypeAlias = Literal[
    "interval",
    "paired",
    "readings_disagree",
    "questions_differ",
    "no_data_base",
    "no_data_candidate",
]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One run of an evaluator.

    Attributes:
        task: What was asked.
        total: Number of questions.
        correct: Every number of right answers that agrees with what was written, ascending.
        source: Where it came from.
        invalid: The same for answers that could not be read; None: not told.
        shots: Examples before each question; None: not told.
        outcomes: Whether each question, in their order, was answered rightly; None: not told.
    """

    task: str
    total: int
    correct: tuple[int, ...]
    source: str
    invalid: tuple[int, ...] | None = None
    shots: int | None = None
    outcomes: tuple[bool, ...] | None = None


@dataclass(frozen=True, slots=True)
class ArmAccuracy:
    """All runs of one task by an arm. They ask the same questions, so they are never added up.

    Attributes:
        runs: Number of runs.
        questions: Of each run; None where the runs differ.
        correct: Of each run, least and greatest count that agrees with what was written.
        invalid: Likewise; None where a run does not tell.
        values: Share of right answers of each run, in the middle of what agrees.
        median: Of the values; None without any.
        interval: Wilson 95 % interval of the run in the middle: what other questions would give.
        sd: Standard deviation from run to run (ddof 1): what the same questions give again; None for fewer than two runs.
        prediction: 95 % interval for one more run, from mean and `sd`; None likewise.
        sources: Of each run.
    """

    runs: int
    questions: int | None
    correct: tuple[tuple[int, int], ...]
    invalid: tuple[tuple[int, int], ...] | None
    values: tuple[float, ...]
    median: float | None
    interval: tuple[float, float] | None
    sd: float | None
    prediction: tuple[float, float] | None
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """One count of the base arm against one of the candidate, of equally many questions or not.

    Attributes:
        base, candidate: Right answers.
        difference: Of the shares, candidate less base.
        interval: Newcombe's 95 % interval of the difference.
        score_interval: Miettinen and Nurminen's 90 % interval: its lower end decides on non-inferiority.
    """

    base: int
    candidate: int
    difference: float
    interval: tuple[float, float]
    score_interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Pairing:
    """Two runs of the same questions, question by question.

    Attributes:
        base_run, candidate_run: Sources.
        base_only, candidate_only: Questions that only this side answered rightly.
        p: Exact McNemar test.
    """

    base_run: str
    candidate_run: str
    base_only: int
    candidate_only: int
    p: float


@dataclass(frozen=True, slots=True)
class NonInferiority:
    """Whether the candidate is shown to be worse by less than a margin that was stated.

    Attributes:
        margin: The largest drop that is acceptable.
        p: One-sided score test in the least favourable reading.
        p_equivalence: Of both one-sided tests, that the difference lies within the margin either way.
        shown: Below 5 % in every reading: true; in none: false; None: it depends on the reading.
        questions_needed: For each arm, to show it with 80 % power if the arms are equal.
    """

    margin: float
    p: float
    p_equivalence: float
    shown: bool | None
    questions_needed: int


@dataclass(frozen=True, slots=True)
class NeededQuestions:
    """How many questions an arm needs to show non-inferiority at a margin with 80 % power, if the arms are equal."""

    margin: float
    questions: int


@dataclass(frozen=True, slots=True)
class AccuracyRow:
    """One task on both sides: a row of `accuracy[]`.

    Attributes:
        metric, task: ``accuracy`` and what was asked.
        base, candidate: The runs; None where a side has none.
        difference: Of the medians, candidate less base, as a difference of shares; None without both.
        interval: 95 % interval of the difference over all readings: from the least favourable one's lower end to the most
            favourable one's upper end.
        least_favourable, most_favourable: Readings: the counts that the written shares allow, in every pair of runs.
        paired: Runs compared question by question, where the outcomes are known.
        noninferiority: At the stated margin; None where none was stated.
        needed: For some margins, where none was stated.
        p_floor: Least p that a rank test over runs could reach with so many of them.
        label, reason: What may be said, and what it rests on.
        text: The sentence.
        notes: What else a reader must know.
    """

    metric: str
    task: str
    base: ArmAccuracy | None
    candidate: ArmAccuracy | None
    difference: float | None
    interval: tuple[float, float] | None
    least_favourable: Reading | None
    most_favourable: Reading | None
    paired: tuple[Pairing, ...]
    noninferiority: NonInferiority | None
    needed: tuple[NeededQuestions, ...]
    p_floor: float | None
    label: AccuracyLabel
    reason: AccuracyReason
    text: str
    notes: tuple[str, ...] = ()
