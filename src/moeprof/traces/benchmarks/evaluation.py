"""Outputs of GSM8K evaluators as counts: the text of ``gsm8k_eval.py``, its JSON, and the JSON of lm-evaluation-harness."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from moeprof.errors import ResultError
from moeprof.traces.benchmarks.results import EvaluationResult

_RUNNING = re.compile(r"Running (?P<task>\S+) evaluation: (?P<total>\d+) questions(?:, (?P<shots>\d+)-shot)?", re.I)
_FIGURE = re.compile(r"^\s*(?P<label>Accuracy|Invalid responses|Total output tokens):\s*(?P<value>\S+)\s*$", re.I)
_DECIMAL = re.compile(r"[01](?:\.(?P<decimals>\d+))?|\.\d+")
_HARNESS_METRIC = re.compile(r"(?P<metric>exact_match|acc)(?:,(?P<filter>.+))?")
_MOST_DIGITS = 15
_MOST_QUESTIONS = 10_000_000


def is_text(text: str) -> bool:
    """Tell whether a text is the output of an evaluator."""
    return _RUNNING.search(text) is not None and re.search(r"^\s*Accuracy:", text, re.M) is not None


def is_json(value: Mapping[str, object]) -> bool:
    """Tell whether a JSON object is the result of an evaluator."""
    return ("accuracy" in value and "num_questions" in value) or _is_harness(value)


def from_text(text: str, path: str) -> tuple[EvaluationResult, ...]:
    """Return the evaluations of a text, in their order.

    Raises:
        ResultError: A figure is missing, printed twice with two values, or no share of the number of questions.
    """
    starts = list(_RUNNING.finditer(text))
    ends = [*(match.start() for match in starts[1:]), len(text)]
    return tuple(_section(match, text[match.end() : end], text, path) for match, end in zip(starts, ends, strict=True))


def from_json(value: Mapping[str, object], path: str) -> tuple[EvaluationResult, ...]:
    """Return the evaluations of a JSON object.

    Raises:
        ResultError: A figure is missing, or no share of the number of questions.
    """
    if _is_harness(value):
        return _harness(value, path)
    total = _count(value, "num_questions", path)
    outcomes = _outcomes(value.get("correct"))
    accuracy, invalid = _share(value.get("accuracy")), _share(value.get("invalid_rate"))
    if accuracy is None:
        raise ResultError("the evaluation has no accuracy between 0 and 1", path=path)
    correct = _counts(accuracy, total, path, "accuracy")
    unread = None if invalid is None else _counts(invalid, total, path, "invalid_rate")
    _refuse_too_many(correct, unread, total, path)
    if outcomes is not None and len(outcomes) == total and sum(outcomes) not in correct:
        raise ResultError(
            f"{sum(outcomes)} questions are marked as right, and the accuracy {accuracy} of {total} questions is another number",
            path=path,
        )
    return (
        EvaluationResult(
            task=str(value.get("task", "gsm8k")),
            total=total,
            correct=correct if outcomes is None or len(outcomes) != total else (sum(outcomes),),
            invalid=unread,
            accuracy=accuracy,
            shots=_optional_count(value.get("num_shots")),
            form="json",
            outcomes=outcomes if outcomes is not None and len(outcomes) == total else None,
            output_tokens=_optional_count(value.get("total_output_tokens")),
        ),
    )


def fitting(share: str, total: int, path: str, name: str = "accuracy") -> tuple[int, ...]:
    """Return the counts whose share of a total is written as the digits say, rounded either way at a tie.

    Args:
        share: A number from 0 to 1 as it was written.
        total: Number of questions.
        path: For the error.
        name: What the share is, for the error.

    Raises:
        ResultError: The share is no number from 0 to 1, or no count fits it.

    >>> fitting("0.853", 1319, "eval.txt"), fitting("0.917", 1319, "eval.txt")
    ((1125,), (1209, 1210))
    """
    if total > _MOST_QUESTIONS:
        raise ResultError(f"{total} questions are more than an evaluation asks", path=path)
    match = _DECIMAL.fullmatch(share)
    if match is None or Fraction(share) > 1:
        raise ResultError(f"{name} is {share}, and a share lies between 0 and 1", path=path)
    decimals = min(len(share.partition(".")[2]), _MOST_DIGITS)
    middle, half = Fraction(share), Fraction(1, 2 * 10**decimals)
    low = max(0, -(-((middle - half) * total).numerator // ((middle - half) * total).denominator))
    high = min(total, ((middle + half) * total).numerator // ((middle + half) * total).denominator)
    if low > high:
        raise ResultError(f"{name} {share} is no share of {total} questions", path=path)
    return tuple(range(low, high + 1))


def _section(match: re.Match[str], body: str, text: str, path: str) -> EvaluationResult:
    figures: dict[str, str] = {}
    for offset, line in enumerate(body.splitlines()):
        found = _FIGURE.match(line)
        if found is None:
            continue
        label, value = found["label"].lower(), found["value"]
        if figures.setdefault(label, value) != value:
            where = text.count("\n", 0, match.end()) + 1 + offset
            raise ResultError(
                f"{found['label']} is printed twice, as {figures[label]} and {value}", path=path, line=where
            )
    if "accuracy" not in figures:
        raise ResultError(
            "the evaluation has no accuracy", path=path, line=text.count("\n", 0, match.start()) + 1, hint="is it cut?"
        )
    total = int(match["total"])
    if total == 0:
        raise ResultError("the evaluation asked no question", path=path)
    invalid, tokens = figures.get("invalid responses"), figures.get("total output tokens", "")
    correct = fitting(figures["accuracy"], total, path)
    unread = None if invalid is None else fitting(invalid, total, path, "the share of invalid responses")
    _refuse_too_many(correct, unread, total, path)
    return EvaluationResult(
        task=match["task"].lower(),
        total=total,
        correct=correct,
        invalid=unread,
        accuracy=figures["accuracy"],
        shots=None if match["shots"] is None else int(match["shots"]),
        output_tokens=int(tokens) if tokens.isdigit() else None,
    )


def _refuse_too_many(correct: tuple[int, ...], invalid: tuple[int, ...] | None, total: int, path: str) -> None:
    """Refuse an evaluation in which more answers are right or could not be read than there were questions."""
    if invalid is not None and correct[0] + invalid[0] > total:
        raise ResultError(
            f"{correct[0]} right and {invalid[0]} unreadable answers are more than {total} questions", path=path
        )


def _is_harness(value: Mapping[str, object]) -> bool:
    results, counts = value.get("results"), value.get("n-samples")
    return isinstance(results, dict) and isinstance(counts, dict)


def _harness(value: Mapping[str, object], path: str) -> tuple[EvaluationResult, ...]:
    results, counts, shots = (_object(value.get(name)) for name in ("results", "n-samples", "n-shot"))
    found = []
    for task in sorted(results):
        total = _object(counts.get(task)).get("effective")
        for key, raw in sorted(_object(results[task]).items()):
            match, share = _HARNESS_METRIC.fullmatch(key), _share(raw)
            if match is None or share is None or not isinstance(total, int) or total <= 0:
                continue
            name = f"{task} {match['filter']}" if match["filter"] not in (None, "none") else task
            correct = _counts(share, total, path, key)
            found.append(EvaluationResult(name, total, correct, None, share, _optional_count(shots.get(task)), "json"))
    if not found:
        raise ResultError("no task of the evaluation has an accuracy and a number of questions", path=path)
    return tuple(found)


def _counts(share: str, total: int, path: str, name: str) -> tuple[int, ...]:
    """Return the one count whose quotient is this very number, else all that fit its digits."""
    near = round(float(share) * total) if 0 <= float(share) <= 1 and total <= _MOST_QUESTIONS else -1
    return (near,) if near >= 0 and near / total == float(share) else fitting(share, total, path, name)


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _share(value: object) -> str | None:
    """Return a JSON number as its shortest digits, without an exponent; None where it is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        return None
    text = repr(value)
    return f"{value:.{_MOST_DIGITS + 5}f}" if "e" in text else text


def _count(value: Mapping[str, object], name: str, path: str) -> int:
    found = _optional_count(value.get(name))
    if not found:
        raise ResultError(f"{name} is no number of questions", path=path)
    return found


def _optional_count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _outcomes(value: object) -> tuple[bool, ...] | None:
    if isinstance(value, list) and all(item in (0, 1, True, False) for item in value):
        return tuple(bool(item) for item in value)
    return None
