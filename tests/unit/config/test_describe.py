"""What an arm comes to, as text, without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from moeprof.config.describe import describe
from moeprof.errors import ConfigError

from .files import LEAST, load

TEXT = LEAST.replace('hub/model"', 'hub/model"\nserved_name = "glm"').replace(
    "[arms.base]",
    """\
[arms.base]
flags = ["--max-num-batched-tokens", "64", "--api-key", "abc", "--auth=xyz", "--url", "http://me:pw@host/x", "a b"]
env = { HF_TOKEN = "${HF_TOKEN}", PLAIN = "a b", HEADER = "Bearer abc.def", NAME = "hf_abcdefgh" }
expect = { moe_backend = "CPU", log = ["x+"], kernels = { "moe_gemm/target" = 3 } }""",
)


def test_an_arm_is_described_without_its_secrets(tmp_path: Path) -> None:
    # GIVEN an arm with secrets in variables, flags and addresses
    config = load(tmp_path, TEXT, {"HF_TOKEN": "very-secret"})
    # WHEN it is described THEN everything else is there
    assert (
        describe(config, "base")
        == f"""\
arm base of {tmp_path}/moeprof.toml
  backend      vllm, markers on
  command      vllm
  model        hub/model, served as glm
  address      127.0.0.1:a free port/health
  limits       ready 600 s, stop 15 s, stall 60 s
  flags        --max-num-batched-tokens 64
               --api-key <redacted>
               --auth <redacted>
               --url 'http://<redacted>@host/x' 'a b'
  environment  HEADER='<redacted>'
               HF_TOKEN=<redacted>
               NAME='<redacted>'
               PLAIN='a b'
  must prove   moe_backend CPU
               log x+
               3 x moe_gemm/target an iteration
  workloads    decode: decode, 64 + 32 tokens, concurrency 4 8, 2 prompts each, seed 0
  passes       1 warm-up, 3 timed, client auto, 1800 s each
  window       20 iterations or 10 s
  gates        no-failed-requests, token-counts, expected-backend, traces-complete, profile-apart
  store        {tmp_path}/.moeprof
"""
    )


def test_a_program_has_no_address_and_no_window(tmp_path: Path) -> None:
    # GIVEN a program of one's own WHEN it is described THEN what only a server has is left out
    text = '[server]\nbackend = "command"\ncommand = ["bench", "{traces}"]\n[arms.a]\n[gates]\nrequired = []\n'
    assert (
        describe(load(tmp_path, text), "a")
        == f"""\
arm a of {tmp_path}/moeprof.toml
  backend      command
  command      bench '{{traces}}'
  limits       ready 600 s, stop 15 s, stall 60 s
  gates        none required
  store        {tmp_path}/.moeprof
"""
    )


def test_an_arm_that_is_not_there_is_refused(tmp_path: Path) -> None:
    # WHEN an unknown arm is described THEN that is the error
    with pytest.raises(ConfigError, match="no arm 'mega'"):
        describe(load(tmp_path, LEAST), "mega")
