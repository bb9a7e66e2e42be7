"""Whatever bytes a result file holds, reading it ends in a result, in "something else", or in an error of the catalogue."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from moeprof.analyzers.claims.written import claim_of
from moeprof.analyzers.serving.compare import compare_serving
from moeprof.analyzers.serving.metrics import load_metrics
from moeprof.analyzers.serving.results import ArmSamples
from moeprof.analyzers.serving.samples import sample_of
from moeprof.errors import MoeprofError
from moeprof.traces.benchmarks.reading import recognise

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
TEXTS = [
    (SAMPLES / name).read_bytes()
    for name in ("decode/base0_pass0.txt", "bench/rs.txt", "gsm8k/decode_base.txt", "bench/py.json")
]
KEYS = ("duration", "completed", "failed", "output_throughput", "request_rate", "date", "steady_state", "accuracy",
        "num_questions", "invalid_rate", "results", "n-samples", "max_concurrency", "num_prompts", "correct")  # fmt: skip
NUMBERS = st.integers() | st.floats() | st.sampled_from([10**400, -(10**400), 1e308, 5e-324, 0])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
NEEDED = (
    {"duration": NUMBERS, "completed": NUMBERS, "output_throughput": NUMBERS},
    {"accuracy": NUMBERS, "num_questions": NUMBERS},
    {"results": VALUES, "n-samples": VALUES},
)
OTHERS = dict.fromkeys(("failed", "request_rate", "date", "steady_state", "num_prompts", "max_concurrency"), VALUES)


def look(content: bytes) -> None:
    """Read bytes, and compare what they hold with itself."""
    try:
        found = recognise(content, "x")
    except MoeprofError:
        return
    if found is None or not found.passes:
        return
    samples = tuple(sample_of(item, block=0, number=n, source="x") for n, item in enumerate(found.passes))
    arm = ArmSamples(None, "x", samples)
    json.dumps([row.change for row in compare_serving(arm, arm, load_metrics()).rows], allow_nan=False)


@settings(max_examples=150)
@given(st.sampled_from(TEXTS), st.integers(0, 20_000), st.binary(max_size=6), st.integers(0, 40))
def test_damaged_outputs(text: bytes, at: int, put: bytes, gone: int) -> None:
    # GIVEN an output with bytes replaced, or cut THEN nothing but an error of ours comes of it
    place = at % (len(text) + 1)
    look(text[:place] + put + text[place + gone :])
    look(text[:place])


@settings(max_examples=300)
@given(st.one_of(*(st.fixed_dictionaries(needed, optional=OTHERS) for needed in NEEDED), VALUES))
def test_any_json(value: object) -> None:
    # GIVEN any JSON with what makes it a client's or an evaluator's
    look(json.dumps(value).encode())


@given(st.dictionaries(st.sampled_from(("text", "metric", "value", "arm", "block", "statistic", "x")), VALUES) | VALUES)
def test_any_claim(table: object) -> None:
    # GIVEN any table THEN it is a claim or refused
    try:
        claim_of(table, 1, load_metrics(), "x")
    except MoeprofError:
        return
