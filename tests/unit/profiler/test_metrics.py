"""The Prometheus text of /metrics."""

from __future__ import annotations

import pytest

from moeprof.profiler.metrics import Progress, progress

TWO_ENGINES = r"""# HELP vllm:num_requests_running Number of requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a }\" 9"} 3.0
vllm:num_requests_running{engine="1",model_name="b"} 5.0 1735689600000
vllm:num_requests_waiting{engine="0"} 0.0
vllm:num_requests_waiting{engine="1"} 2.0
vllm:num_requests_waiting_by_reason{reason="capacity"} 40.0
vllm:generation_tokens_total{engine="0"} 1.2e+03
vllm:generation_tokens_created{engine="0"} 1.7e+09
vllm:generation_tokens_total{engine="1"} 34
vllm:iteration_tokens_total_bucket{engine="0",le="+Inf"} 77.0
vllm:iteration_tokens_total_count{engine="0"} 7.0
vllm:iteration_tokens_total_count{engine="1"} 8.0
vllm:iteration_tokens_total_sum{engine="1"} 800.0
"""


def test_values_are_summed_over_engines() -> None:
    # GIVEN the text of two engines, with near names and quotes in labels
    # WHEN it is read THEN only the wanted names count, over both engines
    assert progress(TWO_ENGINES) == Progress(running=8, waiting=2, generated_tokens=1234, engine_steps=15)


def test_a_missing_name_is_none_and_a_present_zero_is_zero() -> None:
    # GIVEN a text with one gauge of value 0
    # WHEN it is read THEN the others are unknown
    assert progress("vllm:num_requests_waiting 0\n") == Progress(None, 0, None, None)


def test_the_older_name_of_the_token_counter_is_known() -> None:
    # GIVEN a counter without the suffix WHEN it is read THEN it is found
    assert progress('vllm:generation_tokens{engine="0"} 5.0').generated_tokens == 5


@pytest.mark.parametrize(
    "line", ["vllm:num_requests_running", "vllm:num_requests_running{ 3", "vllm:num_requests_running x", "\x00"]
)
def test_a_line_that_cannot_be_read_is_passed_over(line: str) -> None:
    # GIVEN a broken line before a sound one WHEN the text is read THEN the sound one counts
    assert progress(f"{line}\nvllm:num_requests_running 4\n") == Progress(4, None, None, None)


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf"])
def test_a_value_that_is_no_number_is_no_data(value: str) -> None:
    # GIVEN such a value WHEN it is read THEN nothing is known
    assert progress(f"vllm:num_requests_running {value}") == Progress(None, None, None, None)


@pytest.mark.parametrize(
    ("running", "waiting", "busy"), [(0, 0, False), (None, None, False), (1, 0, True), (0, 1, True), (None, 2, True)]
)
def test_busy(running: int | None, waiting: int | None, busy: bool) -> None:
    # GIVEN counts of requests THEN a server with any request is busy
    assert Progress(running, waiting, None, None).busy is busy
