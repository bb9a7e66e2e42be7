"""Statistics as numpy computes them, and the checks of a pass."""

from __future__ import annotations

from typing import Any

import pytest

from moeprof.profiler.load import Load
from moeprof.profiler.results import percentile, problems, statistics

LOAD = Load(prompts=4, input_len=100, output_len=8, concurrency=2)
GOOD: dict[str, Any] = {
    "request_rate": "inf",
    "duration": 2.0,
    "completed": 4,
    "failed": 0,
    "total_input_tokens": 400,
    "total_output_tokens": 32,
    "request_throughput": 2.0,
    "output_throughput": 16.0,
    "total_token_throughput": 216.0,
    "mean_ttft_ms": 5.0,
    "median_ttft_ms": 5.0,
    "mean_tpot_ms": 1.0,
    "mean_e2el_ms": 12.0,
}


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([7.0], 99, 7.0),
        ([1.0, 3.0], 50, 2.0),
        ([4.0, 1.0, 3.0, 2.0], 90, 3.7),  # the values of numpy.percentile
        ([15.0, 20.0, 35.0, 40.0, 50.0], 40, 29.0),
        ([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0], 99, 123.52),
        ([3.0, 1.0, 2.0], 0, 1.0),
        ([3.0, 1.0, 2.0], 100, 3.0),
    ],
)
def test_percentile(values: list[float], percent: float, expected: float) -> None:
    # WHEN a percentile is taken THEN it lies linearly between the two nearest values
    assert percentile(values, percent) == pytest.approx(expected, rel=1e-12)


def test_statistics_have_the_names_of_vllm() -> None:
    # GIVEN four values in seconds WHEN they are summed up
    found = statistics("ttft", [0.001, 0.002, 0.003, 0.006])
    # THEN they are in ms, and the deviation is that of the population
    assert found == pytest.approx(
        {
            "mean_ttft_ms": 3.0,
            "median_ttft_ms": 2.5,
            "std_ttft_ms": 3.5**0.5,
            "p50_ttft_ms": 2.5,
            "p90_ttft_ms": 5.1,
            "p99_ttft_ms": 5.91,
        },
        rel=1e-12,
    )


def test_no_values_are_no_data() -> None:
    # WHEN nothing was measured THEN nothing is said
    assert set(statistics("itl", []).values()) == {None} and percentile([], 50) is None


def test_a_good_pass_has_no_problems() -> None:
    assert problems(GOOD, LOAD) == ()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"failed": 1, "completed": 3}, ["1 of 4 requests failed"]),
        ({"completed": 3}, ["3 requests completed and 0 failed, of 4"]),
        ({"duration": 0.0}, ["duration is 0.0 s"]),
        ({"total_output_tokens": 31}, ["31 output tokens instead of 32 (4 x 8)"]),
        ({"total_input_tokens": 401}, ["401 input tokens instead of 400 (4 x 100)"]),
        ({"mean_tpot_ms": float("nan")}, ["mean_tpot_ms is nan"]),
        ({"output_throughput": float("inf")}, ["output_throughput is inf"]),
        ({"mean_tpot_ms": None}, ["mean_tpot_ms is missing"]),
        ({"median_ttft_ms": None}, ["median_ttft_ms is missing"]),
        ({"request_rate": float("inf")}, []),
        ({"spec_decode_per_position_acceptance_rates": [0.5, float("nan")]},
         ["spec_decode_per_position_acceptance_rates is nan"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(change: dict[str, Any], expected: list[str]) -> None:
    # GIVEN a good pass WHEN one figure is changed THEN exactly that is the problem
    assert list(problems(GOOD | change, LOAD)) == expected


def test_a_request_that_may_stop_early_has_no_exact_output() -> None:
    # GIVEN requests that end at the end-of-sequence token THEN their output is not held against them
    load = Load(prompts=4, input_len=100, output_len=8, ignore_eos=False)
    assert problems(GOOD | {"total_output_tokens": 20}, load) == ()


@pytest.mark.parametrize(("given", "count"), [(392, 0), (408, 0), (409, 1), (391, 1)])
def test_text_prompts_may_be_off_by_two_tokens_each(given: int, count: int) -> None:
    # GIVEN a client that sends text THEN its input may differ by the tokenizer's rounding, and no more
    assert len(problems(GOOD | {"total_input_tokens": given}, LOAD, exact_input=False)) == count
