"""What a probe request tells: finite numbers, others, or why there are none."""

from __future__ import annotations

import json
import math

import pytest

from moeprof.config.schema import Workload
from moeprof.profiler.gates import Evidence, judge
from moeprof.profiler.load import Load
from moeprof.profiler.probe import Probe, parse, probe
from tests.fakes.running import fake_server

LOAD = Load(prompts=1, input_len=8, output_len=8, vocabulary=100)
WORKLOAD = Workload("w", "decode", 8, 8, concurrency=(1,))


def answer(logprobs: object) -> str:
    """Return a completion's body."""
    return json.dumps({"choices": [{"index": 0, "text": "t", "logprobs": logprobs}]})


@pytest.mark.parametrize(
    ("body", "logprobs", "finite", "seen"),
    [
        (answer({"token_logprobs": [-0.5, 0, -1e9]}), (-0.5, 0.0, -1e9), True, "gave 3 log probabilities"),
        (answer({"token_logprobs": [-0.5, -math.inf]}), (-0.5, -math.inf), False, "gave 2 log probabilities"),
        (answer({"token_logprobs": []}), (), None, "answered without log probabilities"),
        (answer({"tokens": ["t"]}), (), None, "answered without log probabilities"),
        (answer(None), (), None, "answered without log probabilities"),
        (answer({"token_logprobs": 7}), (), None, "answered without a completion"),
        ('{"choices": []}', (), None, "answered without a completion"),
        ("[1]", (), None, "answered without a completion"),
        ("<html>", (), None, "answered without a completion"),
    ],
)
def test_an_answer(body: str, logprobs: tuple[float, ...], finite: bool | None, seen: str) -> None:
    # WHEN an answer is read THEN numbers, verdict and words are these
    found = parse(body)
    assert (found.logprobs, found.finite, found.seen) == (logprobs, finite, seen)
    assert found.to_dict() == {"seen": seen, "tokens": len(logprobs), "finite": finite}


@pytest.mark.parametrize("value", [None, math.nan, "x"])
def test_what_is_no_number_is_not_finite(value: object) -> None:
    # GIVEN an answer that holds something else among its numbers THEN it counts, and not as finite
    found = parse(answer({"token_logprobs": [-0.5, value]}))
    assert (len(found.logprobs), found.finite) == (2, False)
    assert math.isnan(found.logprobs[1])


@pytest.mark.parametrize(
    ("fail", "finite", "seen"),
    [
        ("", True, "gave 8 log probabilities"),
        ("nan-logprobs", False, "gave 8 log probabilities"),
        ("500", None, "answered 500: EngineCore encountered an issue."),
    ],
)
def test_a_server_is_asked(fail: str, finite: bool | None, seen: str) -> None:
    # GIVEN a server WHEN it is probed THEN eight tokens come, or its own words say why not
    with fake_server("--fail", fail) as address:
        found = probe(address, "model", LOAD, 30)
    assert (found.finite, found.seen) == (finite, seen)


def test_a_server_that_is_not_there() -> None:
    assert probe("http://127.0.0.1:9", "model", LOAD, 30) == Probe((), "refused the connection")


@pytest.mark.parametrize(
    ("seen", "message"),
    [
        ("answered 500: no", "no log probabilities from the probe: the server answered 500: no"),
        (None, "no probe request was made"),
    ],
)
def test_the_gate_says_why_there_is_no_data(seen: str | None, message: str) -> None:
    # GIVEN a probe without numbers WHEN the gates are judged THEN the reason is in the gate's message
    from moeprof.config.schema import Gates

    results = {item.name: item for item in judge(Evidence(WORKLOAD, probe_seen=seen), Gates())}
    gate = results["finite-logprobs"]
    assert (gate.outcome, gate.message) == ("no-data", message)
