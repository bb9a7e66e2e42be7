"""Evaluations as counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moeprof.errors import ResultError
from moeprof.traces.benchmarks.evaluation import fitting
from moeprof.traces.benchmarks.reading import parse_results, read_results
from moeprof.traces.benchmarks.results import EvaluationResult

SAMPLES = Path(__file__).resolve().parents[3] / "samples" / "gsm8k"


def evaluations(content: str) -> tuple[EvaluationResult, ...]:
    return parse_results(content.encode(), "eval").evaluations


def test_a_printed_share_fits_several_counts() -> None:
    # GIVEN outputs with three decimals THEN every count that prints so is kept
    names = ("decode_base", "decode_mega_run1", "decode_mega_run2", "decode_mega_run3")
    found = [read_results(SAMPLES / f"{name}.txt").evaluations[0] for name in names]
    assert [item.correct for item in found] == [(1209, 1210), (1197, 1198), (1205, 1206), (1212,)]
    assert [item.invalid for item in found] == [(0,), (0,), (0,), (1,)]
    assert {(item.total, item.shots, item.task) for item in found} == {(1319, 5, "gsm8k")}


@given(st.integers(1, 3000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))), st.integers(0, 6))
def test_the_true_count_is_among_those_that_fit(count: tuple[int, int], decimals: int) -> None:
    # GIVEN any count WHEN its share is printed THEN it fits, and so does everything that prints alike, by brute force
    correct, total = count
    text = f"{correct / total:.{decimals}f}"
    found = fitting(text, total, "x")
    assert correct in found
    assert {k for k in range(total + 1) if f"{k / total:.{decimals}f}" == text} <= set(found)
    assert found == tuple(range(found[0], found[-1] + 1))


def test_json_is_exact() -> None:
    # GIVEN the evaluator's JSON at full precision THEN the count is one
    value = {"accuracy": 1125 / 1319, "invalid_rate": 0.0, "num_questions": 1319, "num_shots": 5, "latency": 60.0}
    (found,) = evaluations(json.dumps(value))
    assert (found.correct, found.invalid, found.total, found.shots) == ((1125,), (0,), 1319, 5)
    assert found.exact


def test_the_harness_names_its_tasks() -> None:
    # GIVEN a result of lm-evaluation-harness THEN each filter is an evaluation
    value = {
        "results": {"gsm8k": {"exact_match,strict-match": 0.5, "exact_match_stderr,strict-match": 0.01, "alias": "x"}},
        "n-samples": {"gsm8k": {"original": 1319, "effective": 200}},
        "n-shot": {"gsm8k": 5},
    }
    (found,) = evaluations(json.dumps(value))
    assert (found.task, found.total, found.correct, found.shots) == ("gsm8k strict-match", 200, (100,), 5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("Running GSM8K evaluation: 10 questions, 5-shot\nAccuracy: 1.200\n", "lies between 0 and 1"),
        ("Running GSM8K evaluation: 10 questions, 5-shot\nAccuracy: 0.333\n", "no share of 10 questions"),
        ("Running GSM8K evaluation: 10 questions, 5-shot\nAccuracy: 0.3\nAccuracy: 0.4\n", "printed twice"),
        ("Running GSM8K evaluation: 0 questions, 5-shot\nAccuracy: 0.3\n", "asked no question"),
        ('{"accuracy": 0.5, "num_questions": 0}', "num_questions is no number of questions"),
        ('{"accuracy": "half", "num_questions": 10}', "no accuracy"),
    ],
)
def test_a_wrong_evaluation_is_refused(content: str, message: str) -> None:
    # WHEN the figures cannot be THEN the error says why
    with pytest.raises(ResultError, match=message):
        evaluations(content)
