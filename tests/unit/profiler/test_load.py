"""What is sent, when, and how the speculation counters are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moeprof.config.schema import Window, Workload
from moeprof.errors import ConfigError
from moeprof.profiler import speculation
from moeprof.profiler.load import Load, find_vocabulary, loads
from moeprof.profiler.long_requests import window_load
from moeprof.profiler.speculation import Counters

DECODE = Workload("decode", "decode", 64, 32, concurrency=(8, 2), seed=5)


def test_prompts_depend_on_seed_and_place_only() -> None:
    # GIVEN two loads with one seed, of different sizes
    small, large = Load(2, 16, 8, seed=1, vocabulary=50), Load(9, 16, 8, seed=1, vocabulary=50, concurrency=3)
    # THEN the same place has the same prompt, another place or seed another one, and all ids are in the vocabulary
    assert small.prompt(1) == large.prompt(1)
    assert small.prompt(0) != small.prompt(1)
    assert small.prompt(0) != Load(2, 16, 8, seed=2, vocabulary=50).prompt(0)
    assert len(small.prompt(0)) == 16 and set(large.prompt(8)) <= set(range(50))


def test_arrivals_keep_the_rate_exactly() -> None:
    # GIVEN an open loop THEN the last request is sent at prompts / rate, gaps differ, and the seed fixes them
    times = Load(20, 1, 1, rate=4.0).arrivals()
    assert times == sorted(times) and times[-1] == pytest.approx(5.0)
    assert len({round(b - a, 6) for a, b in zip(times, times[1:], strict=False)}) == 19
    assert times == Load(20, 1, 1, rate=4.0).arrivals() != Load(20, 1, 1, rate=4.0, seed=1).arrivals()
    assert Load(3, 1, 1, concurrency=2).arrivals() == [0.0, 0.0, 0.0]


def test_a_decode_workload_has_a_load_per_concurrency() -> None:
    assert loads(DECODE, vocabulary=9) == [
        Load(16, 64, 32, concurrency=8, seed=5, vocabulary=9),
        Load(4, 64, 32, concurrency=2, seed=5, vocabulary=9),
    ]


def test_a_prefill_workload_has_a_load_per_rate() -> None:
    # GIVEN a prefill workload THEN each rate sends its number of prompts; without one that is an error
    work = Workload("prefill", "prefill", 64, 1, rate=(0.5, 2.0), num_prompts=10, vocabulary=7)
    assert [(load.prompts, load.rate, load.vocabulary) for load in loads(work)] == [(10, 0.5, 7), (10, 2.0, 7)]
    with pytest.raises(ConfigError) as caught:
        loads(Workload("prefill", "prefill", 64, 1, rate=(1.0,)))
    assert caught.value.hint == "set workloads.prefill.num_prompts"


def test_the_window_takes_the_largest_concurrency_and_other_prompts() -> None:
    # GIVEN a window that says nothing THEN the workload does, but no prompt is the same as in a pass
    load = window_load(Window(output_len=500), DECODE, vocabulary=9)
    assert (load.prompts, load.concurrency, load.input_len, load.output_len) == (8, 8, 64, 500)
    assert load.prompt(0) != loads(DECODE, vocabulary=9)[0].prompt(0)
    with pytest.raises(ConfigError, match="has no concurrency"):
        window_load(Window(), Workload("p", "prefill", 64, 1, rate=(1.0,)), vocabulary=9)


def test_the_vocabulary_is_the_workloads_or_the_models(tmp_path: Path) -> None:
    # GIVEN a model folder, one with a nested configuration, and none
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": 1024}))
    nested = tmp_path / "nested"
    nested.mkdir()
    (nested / "config.json").write_text(json.dumps({"text_config": {"vocab_size": 77}}))
    # THEN the workload's figure comes first, then the model's, then an error with the key
    assert find_vocabulary(Workload("w", "decode", 1, 1, vocabulary=5), str(tmp_path)) == 5
    assert find_vocabulary(DECODE, str(tmp_path)) == 1024
    assert find_vocabulary(DECODE, str(nested)) == 77
    for model in (None, "org/model"):
        with pytest.raises(ConfigError) as caught:
            find_vocabulary(DECODE, model)
        assert caught.value.hint == "set workloads.decode.vocabulary"
    # AND a folder that is not there is the better reason
    with pytest.raises(ConfigError, match="the model is not there") as caught:
        find_vocabulary(DECODE, str(tmp_path / "none"))
    assert caught.value.path == str(tmp_path / "none")


METRICS = """# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 100.0
vllm:spec_decode_num_drafts_total{engine="1",model_name="m"} 20.0
vllm:spec_decode_num_draft_tokens_total{engine="0"} 300.0
vllm:spec_decode_num_draft_tokens_total{engine="1"} 60.0
vllm:spec_decode_num_accepted_tokens_total{engine="0"} 150.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="1"} 40.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="0"} 110.0
vllm:spec_decode_num_drafts_created{engine="0"} 1.79e+09
"""


def test_speculation_is_summed_over_engines_and_taken_as_a_difference() -> None:
    # GIVEN the counters of two engines before and after
    after = speculation.read(METRICS)
    assert after == Counters(120.0, 360.0, 150.0, {0: 110.0, 1: 40.0})
    # THEN the keys are vLLM's: the rate in percent, positions as shares of drafts
    assert speculation.difference(Counters(20.0, 60.0, 50.0, {0: 35.0, 1: 15.0}), after) == {
        "spec_decode_acceptance_rate": 100 / 300 * 100,
        "spec_decode_acceptance_length": 2.0,
        "spec_decode_num_drafts": 100,
        "spec_decode_draft_tokens": 300,
        "spec_decode_accepted_tokens": 100,
        "spec_decode_per_position_acceptance_rates": [0.75, 0.25],
    }


def test_no_counters_are_no_data() -> None:
    # GIVEN a server without drafts, one that did not answer, or a pass in which nothing was drafted THEN there are no keys
    assert speculation.read("vllm:generation_tokens_total 5\n") is None
    assert speculation.read(None) is None
    same = Counters(1.0, 3.0, 1.0)
    assert speculation.difference(None, same) == speculation.difference(same, same) == {}
