"""Secrets are found by name and by look; figures and plain words stay."""

from __future__ import annotations

import json
from string import ascii_letters, digits

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moeprof.store import redact

DUMMY = "hf_dummy_value_0123456789"
GONE = redact.REDACTED
SECRET_NAMES = ("HF_TOKEN", "API_KEY", "my-secret", "DB_PASSWORD", "passwd", "AWS_CREDENTIALS", "X-Auth", "Set-Cookie")
HARMLESS = [
    "vllm", "serve", "/models/tiny", "--served-model-name", "glm", "--max-num-batched-tokens", "8192", "--tokenizer", "/models/tok",
    "--tokenizer-mode=auto", "--speculative-config", '{"method":"mtp","num_speculative_tokens":3}', "--port=8000", "-tp", "2",
    "--enable-auto-tool-choice", "TOKENIZERS_PARALLELISM=false", "--hf-overrides", '{"hf_config": 1}', "http://127.0.0.1:8000/v1", "task-force-one",
]  # fmt: skip


def test_harmless_words_stay() -> None:
    # GIVEN a command line without secrets THEN it is stored word for word
    assert redact.argv(HARMLESS) == HARMLESS


@pytest.mark.parametrize(
    ("words", "clean"),
    [
        (["--api-key", "x"], ["--api-key", GONE]),
        (["--api-key=x"], [f"--api-key={GONE}"]),
        (["--api-key", "a", "b", "--seed", "0"], ["--api-key", GONE, GONE, "--seed", "0"]),
        (["--api-key", "-x", "-tp", "2"], ["--api-key", GONE, "-tp", "2"]),
        (["--hf-token", "--seed", "0"], ["--hf-token", "--seed", "0"]),
        (["env", f"HF_TOKEN={DUMMY}", "vllm"], ["env", f"HF_TOKEN={GONE}", "vllm"]),
        (["--config", '{"api_key": "x", "n": 1}'], ["--config", '{"api_key": "<redacted>", "n": 1}']),
        (['--kv={"a":{"secret":["p","q"]}}'], ['--kv={"a": {"secret": ["<redacted>", "<redacted>"]}}']),
        (["-H", "Authorization: Bearer abcdefgh"], ["-H", f"Authorization: {GONE}"]),
        (["https://me:pw@host/x"], [f"https://{GONE}@host/x"]),
        (["https://tok@host/x"], [f"https://{GONE}@host/x"]),
        (["postgres://me:p/w@host/x"], [f"postgres://{GONE}@host/x"]),
        ([DUMMY, "sk-abcdef123456", "ghp_abcdef123456"], [GONE, GONE, GONE]),
        (["--max-tokens", "5x"], ["--max-tokens", GONE]),
        (["PASSWORD=123456"], [f"PASSWORD={GONE}"]),
    ],
)
def test_words_of_a_command_line(words: list[str], clean: list[str]) -> None:
    # WHEN a word, or the option before it, tells a secret THEN only its value is taken out
    assert redact.argv(words) == clean


@pytest.mark.parametrize(
    ("line", "clean"),
    [
        (f"login with {DUMMY} ok", f"login with {GONE} ok"),
        ("args: {'api_key': ['k1', 'k2'], 'seed': 0}", f"args: {{'api_key': {GONE}, 'seed': 0}}"),
        ("token: 'abc', port: 5", f"token: '{GONE}', port: 5"),
        ('{"password": "a b c", "n": 1}', f'{{"password": "{GONE}", "n": 1}}'),
        ("GET /x?access_token=abc&n=1", f"GET /x?access_token={GONE}&n=1"),
        ("Cookie: a=1; b=2", f"Cookie: {GONE}"),
        ("run --api-key abc --seed 0", f"run --api-key {GONE} --seed 0"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nx", f"{GONE}\nx"),
        ("key AKIAABCDEFGHIJKLMNOP used", f"key {GONE} used"),
        ("max_num_batched_tokens=8192, pad_token_id=0", "max_num_batched_tokens=8192, pad_token_id=0"),
        ("KeyError: 'hf_config'", "KeyError: 'hf_config'"),
        ("Avg generation throughput: 5.0 tokens/s, Running: 1 reqs", "Avg generation throughput: 5.0 tokens/s, Running: 1 reqs"),
    ],
)  # fmt: skip
def test_lines_of_a_log(line: str, clean: str) -> None:
    # WHEN a log line holds a secret THEN it is taken out, and the rest stays readable
    assert redact.text(line) == clean


def test_an_environment() -> None:
    # GIVEN variables, one of which repeats the secret of another under a harmless name
    given = {
        "HF_TOKEN": DUMMY,
        "B": f"x {DUMMY}",
        "A": "1",
        "PASSPHRASE": "12345678",
        "URL": "http://a/12345678",
        "KEY": "",
    }
    # THEN the secret is in none of the values, names are sorted, and what is empty stays empty
    assert redact.env(given) == {
        "A": "1", "B": f"x {GONE}", "HF_TOKEN": GONE, "KEY": "", "PASSPHRASE": GONE, "URL": f"http://a/{GONE}",
    }  # fmt: skip
    assert list(redact.env(given)) == sorted(given)


def test_figures_of_a_result_stay() -> None:
    # GIVEN a result whose keys hold "token" THEN its numbers are kept, and texts under such keys go
    result = {"total_output_tokens": 32768, "output_throughput": 5.5, "auth": {"token": "abc"}, "key": None}
    clean = {**result, "auth": {"token": GONE}}
    assert redact.value(json.loads(json.dumps(result))) == clean


SECRET = st.text(ascii_letters + digits + "+/._-!$%", min_size=8, max_size=40).map(lambda text: "Zq9" + text)


@given(st.sampled_from(SECRET_NAMES), SECRET, st.lists(st.sampled_from(HARMLESS), max_size=4))
def test_no_secret_survives_in_a_command_line(name: str, secret: str, words: list[str]) -> None:
    # GIVEN a secret in any of the usual places WHEN the words are cleaned THEN it is nowhere
    for place in (
        [f"--{name}", secret],
        [f"--{name}={secret}"],
        [f"{name}={secret}"],
        [json.dumps({"a": {name: secret}})],
    ):
        assert secret not in " ".join(redact.argv([*words, *place]))


@given(st.sampled_from(SECRET_NAMES), SECRET, st.text(max_size=20))
def test_no_secret_survives_in_an_environment(name: str, secret: str, other: str) -> None:
    # GIVEN a secret that is also part of another variable THEN it is in no value
    clean = redact.env({name: secret, "OTHER": f"{other}{secret}"})
    assert [value for value in clean.values() if secret in value] == []


@given(
    st.sampled_from(("hf_", "sk-", "ghp_")),
    st.text(ascii_letters + digits, min_size=12, max_size=40),
    st.text(max_size=20),
)
def test_what_looks_like_a_token_goes(prefix: str, body: str, before: str) -> None:
    # GIVEN a token of a known look after any text THEN it is gone
    assert prefix + body not in redact.text(f"{before} {prefix}{body}")


@given(st.text(max_size=200))
def test_cleaning_twice_changes_nothing(text: str) -> None:
    # GIVEN any text THEN what is clean stays as it is
    once = redact.text(text)
    assert redact.text(once) == once


@given(st.lists(st.text(max_size=20), max_size=6))
def test_no_word_is_lost(words: list[str]) -> None:
    # GIVEN any words THEN as many come out
    assert len(redact.argv(words)) == len(words)
