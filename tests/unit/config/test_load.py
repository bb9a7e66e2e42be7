"""What a file comes to, and what is said about one that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from moeprof.analyzers.tables import CLASSES as CLASSES_OF_ANALYSIS
from moeprof.config.keys import CLASSES
from moeprof.config.load import find_arm, find_workload
from moeprof.config.schema import Arm, Config, Expect, Gates, Passes, Sampler, Server, Window, Workload
from moeprof.errors import ConfigError

from .files import LEAST, load, refusal

FULL = """\
[server]
backend = "vllm"
command = ["python", "-m", "vllm.entrypoints.cli.main"]
model = "./model"
served_name = "tiny"
host = "::1"
port = 8264
health = "/ready"
ready_s = 30
stop_s = 2.5
stall_s = 5
[arms.base]
flags = ["--a", "1"]
markers = false
[arms.base.expect]
moe_backend = "CPU"
all2all = "allgather_reducescatter"
model_runner = "V1"
log = ["a+", "b"]
kernels = { moe_gemm = 6, "moe_gemm/draft" = 3 }
[workloads.decode]
kind = "decode"
input_len = 64
output_len = 32
concurrency = 8
prompts_per_concurrency = 3
seed = 7
vocabulary = 1000
temperature = 0.5
ignore_eos = false
[workloads.fill]
kind = "prefill"
input_len = 128
output_len = 1
rate = [1, 2.5]
num_prompts = 12
[passes]
timed = 1
warmup = 0
client = "builtin"
timeout_s = 60
[window]
iterations = 5
seconds = 3
concurrency = 4
input_len = 16
output_len = 100
start_s = 1
stop_s = 2
traces_s = 3
min_bytes = 0
[gates]
required = ["token-counts"]
clock_tolerance = 0.1
allow_cotenants = true
[sampler]
period_s = 1
enabled = false
[store]
path = "runs"
"""


def test_every_key_reaches_its_field(tmp_path: Path) -> None:
    # GIVEN a file with every key WHEN it is loaded THEN each value is where it belongs, in its type
    assert load(tmp_path, FULL) == Config(
        source=str(tmp_path / "moeprof.toml"),
        arms={
            "base": Arm(
                name="base",
                flags=("--a", "1"),
                env={},
                server=Server(
                    backend="vllm",
                    command=("python", "-m", "vllm.entrypoints.cli.main"),
                    model=str(tmp_path / "model"),
                    served_name="tiny",
                    host="::1",
                    port=8264,
                    health="/ready",
                    ready_s=30.0,
                    stop_s=2.5,
                    stall_s=5.0,
                ),
                expect=Expect(
                    moe_backend="CPU",
                    all2all="allgather_reducescatter",
                    model_runner="V1",
                    log=("a+", "b"),
                    kernels={"moe_gemm": 6, "moe_gemm/draft": 3},
                ),
                markers=False,
            )
        },
        workloads={
            "decode": Workload(
                name="decode",
                kind="decode",
                input_len=64,
                output_len=32,
                concurrency=(8,),
                prompts_per_concurrency=3,
                seed=7,
                vocabulary=1000,
                temperature=0.5,
                ignore_eos=False,
            ),
            "fill": Workload(name="fill", kind="prefill", input_len=128, output_len=1, rate=(1.0, 2.5), num_prompts=12),
        },
        passes=Passes(timed=1, warmup=0, client="builtin", timeout_s=60.0),
        window=Window(5, 3.0, 4, 16, 100, 1.0, 2.0, 3.0, 0),
        gates=Gates(("token-counts",), 0.1, True),
        sampler=Sampler(1.0, False),
        store=str(tmp_path / "runs"),
    )


def test_what_is_not_said_has_its_default(tmp_path: Path) -> None:
    # GIVEN the least that loads WHEN it is loaded THEN the rest is the schema's, and the store is beside the file
    config = load(tmp_path, LEAST)
    assert config.arms["base"] == Arm("base", (), {}, Server(model="hub/model"), Expect())
    assert config.workloads["decode"] == Workload("decode", "decode", 64, 32, (4, 8))
    assert (config.passes, config.window, config.gates, config.sampler) == (Passes(), Window(), Gates(), Sampler())
    assert config.store == str(tmp_path / ".moeprof")


def test_classes_are_those_of_the_analysis() -> None:
    # GIVEN the classes that an arm may prove THEN the analysis has the same
    assert set(CLASSES) == set(CLASSES_OF_ANALYSIS)


@pytest.mark.parametrize(
    ("old", "new", "message", "line", "hint"),
    [
        (
            "concurrency",
            "concurency",
            "unknown key 'concurency' in [workloads.decode]",
            9,
            "did you mean 'concurrency'?",
        ),
        ("[server]", "[sever]", "unknown key 'sever' in the file", 1, "did you mean 'server'?"),
        (
            "[arms.base]",
            "[arms.base]\n[arms.base.expect]\nmoe-backend = 'X'",
            "unknown key 'moe-backend' in [arms.base.expect]",
            6,
            "did you mean 'moe_backend'?",
        ),
        (
            "[arms.base]",
            "[arms.base]\nzzz = 1",
            "unknown key 'zzz' in [arms.base]",
            5,
            "known here: extends, flags, env, expect, server, markers",
        ),
        ("64", "0", "input_len in [workloads.decode] must be a whole number of at least 1, not 0", 7, None),
        ("64", "true", "input_len in [workloads.decode] must be a whole number of at least 1, not true", 7, None),
        (
            "64",
            "64.0",
            "input_len in [workloads.decode] must be a whole number of at least 1, not a number (64.0)",
            7,
            None,
        ),
        (
            "[4, 8]",
            "[4, 0]",
            "concurrency in [workloads.decode] must be a list in which each is a whole number of at least 1, not 0",
            9,
            None,
        ),
        ("[4, 8]", "[4, 4]", "concurrency in [workloads.decode] must be a list without repetition", 9, None),
        ("[4, 8]", "[]", "concurrency in [workloads.decode] must be a list with something in it", 9, None),
        (
            "input_len = 64\n",
            "",
            "[workloads.decode] lacks input_len, which a decode workload needs",
            6,
            None,
        ),
        (
            "output_len = 32",
            "output_len = 32\nrate = [1]",
            "rate in [workloads.decode] says nothing about a decode workload",
            9,
            None,
        ),
        (
            "input_len = 64",
            "input_len = 64\nkind = 'prefill'",
            "concurrency in [workloads.decode] says nothing about a prefill workload",
            10,
            None,
        ),
        (
            'model = "hub/model"',
            'model = "m"\nready_s = 0',
            "ready_s in [server] must be a number above 0, not 0",
            3,
            None,
        ),
        ('model = "hub/model"', 'model = "m"\nstop_s = inf', "stop_s in [server] must be a number above 0, not inf", 3, None),
        (
            'model = "hub/model"',
            'model = "m"\nport = 65536',
            "port in [server] must be a whole number 0 to 65535, not 65536",
            3,
            None,
        ),
        (
            'model = "hub/model"',
            'model = "m"\nbackend = "sglang"',
            'backend in [server] must be "vllm" or "command", not "sglang"',
            3,
            None,
        ),
        (
            'model = "hub/model"',
            'model = "m"\ncommand = "python -m vllm"',
            'command in [server] must be a list of words, as in ["python", "-m", "vllm"], not one text',
            3,
            None,
        ),
        (
            'model = "hub/model"',
            'model = "m"\nhost = "0.0.0.0"',
            "host '0.0.0.0' of arm 'base' is no loopback address; the profiler's routes have no password",
            3,
            'use "127.0.0.1", or write allow_remote = true beside it',
        ),
        ('model = "hub/model"', "", "arm 'base' has no model", 4, 'write model = "NAME or folder" in [server]'),
        (
            'model = "hub/model"',
            'backend = "command"',
            "arm 'base' has backend command and no command",
            2,
            'write command = ["torchrun", ...]',
        ),
        ("[arms.base]", "", "no arm is defined", None, "write [arms.base] with its flags; moeprof init shows how"),
        ("[arms.base]", "[arms]\nbase = 1", "base in [arms] must be a table, not a whole number (1)", 5, None),
        (
            "[arms.base]",
            '[arms."../x"]',
            "'../x' cannot be a name in [arms]",
            4,
            "letters, digits and ._+- after the first letter or digit, 64 at most",
        ),
        ("[arms.base]", "[gates]\nrequired = 'A b'\n[arms.base]", "required in [gates] must be a list in which each is a name such as token-counts, not 'A b'", 5, None),
        ("[arms.base]", f"[window]\nseconds = 1{'0' * 400}\n[arms.base]", "seconds in [window] must be a number above 0, and not one so large", 5, None),
        ("[arms.base]", "[store]\npath = ' '\n[arms.base]", "path in [store] must be text with something in it", 5, None),
        ("[arms.base]", "[window]\nseconds = 2026-01-01\n[arms.base]", "seconds in [window] must be a number above 0, not a date or time", 5, None),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_key_table_line_and_cure(
    tmp_path: Path, old: str, new: str, message: str, line: int | None, hint: str | None
) -> None:
    # GIVEN the least that loads, changed in one place
    assert LEAST.count(old) >= 1
    # WHEN it is loaded THEN the error says what, where and what to do
    assert refusal(tmp_path, LEAST.replace(old, new, 1)) == (message, line, hint)


def test_no_workload_is_an_error_of_a_server_only(tmp_path: Path) -> None:
    # GIVEN files without workloads
    server = LEAST[: LEAST.index("[workloads")]
    program = '[server]\nbackend = "command"\ncommand = ["./bench", "{traces}"]\nmodel = "m"\n[arms.base]\n'
    # WHEN the backend is a server THEN it is refused; a program needs none, and has no model
    assert refusal(tmp_path, server)[0] == "no workload is defined"
    config = load(tmp_path, program)
    assert config.workloads == {}
    assert config.arms["base"].server.command == (str(tmp_path / "bench"), "{traces}")
    assert config.arms["base"].server.model is None


def test_another_address_needs_consent(tmp_path: Path) -> None:
    # GIVEN a host that is not loopback, with consent WHEN it is loaded THEN it is kept
    config = load(tmp_path, LEAST.replace("[server]", '[server]\nhost = "0.0.0.0"\nallow_remote = true'))
    assert (config.arms["base"].server.host, config.arms["base"].server.allow_remote) == ("0.0.0.0", True)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "localhost"])
def test_loopback_needs_none(tmp_path: Path, host: str) -> None:
    # GIVEN an address of this machine WHEN it is loaded THEN it is kept
    assert load(tmp_path, LEAST.replace("[server]", f'[server]\nhost = "{host}"')).arms["base"].server.host == host


def test_paths_count_from_the_file_and_hub_names_stay(tmp_path: Path) -> None:
    # GIVEN a model that is a folder beside the file, and one that is none
    (tmp_path / "org").mkdir()
    (tmp_path / "org" / "here").mkdir()
    for model, expected in [
        ("org/here", str(tmp_path / "org" / "here")),
        ("org/there", "org/there"),
        ("./there", str(tmp_path / "there")),
        ("/models/x", "/models/x"),
    ]:
        # WHEN it is loaded THEN only the folder became absolute
        assert load(tmp_path, LEAST.replace("hub/model", model)).arms["base"].server.model == expected


def test_arms_and_workloads_are_found_by_name(tmp_path: Path) -> None:
    # GIVEN a configuration
    config = load(tmp_path, LEAST)
    # WHEN names are looked up THEN known ones are there, the first workload is the default, others are refused
    assert find_arm(config, "base") is config.arms["base"]
    assert find_workload(config) is find_workload(config, "decode")
    with pytest.raises(ConfigError, match="no arm 'bse'") as caught:
        find_arm(config, "bse")
    assert caught.value.hint == "did you mean 'base'?"
    with pytest.raises(ConfigError, match="no workload 'x'") as caught:
        find_workload(config, "x")
    assert caught.value.hint == "known here: decode"
