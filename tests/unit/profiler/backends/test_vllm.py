"""The command line of a vLLM arm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moeprof.config.schema import Arm, Server, Window
from moeprof.errors import ConfigError
from moeprof.profiler.backends.base import CommandLine, is_serving
from moeprof.profiler.backends.plugin import PLUGIN_PATH, plugin_environment
from moeprof.profiler.backends.vllm import VllmBackend
from moeprof.profiler.find_backend import find_backend
from tests.unit.profiler.backends.arms import arm

PROFILER = (
    '{"profiler":"torch","torch_profiler_dir":"/run/traces","ignore_frontend":true,"max_iterations":20,'
    '"torch_profiler_with_stack":false}'
)


def compose(subject: Arm, port: int = 8264) -> CommandLine:
    """Return the command line of an arm."""
    return VllmBackend().command(subject, port=port, traces=Path("/run/traces"), window=Window(), inherited={})


def test_the_whole_command_line() -> None:
    # GIVEN an arm with two flags, one with a value
    # WHEN its command line is composed THEN ours and the arm's stand in a fixed order
    assert compose(arm("--enforce-eager", "--moe-backend", "humming", env={"A": "1"})) == CommandLine(
        (
            *("vllm", "serve", "m", "--host", "127.0.0.1", "--port", "8264", "--served-model-name", "m"),
            *("--enforce-eager", "--moe-backend", "humming"),
            *("--enable-logging-iteration-details", "--profiler-config", PROFILER),
        ),
        {"PYTHONUNBUFFERED": "1", "A": "1"},
        None,
    )


def test_a_command_may_be_several_words_and_may_say_serve() -> None:
    # GIVEN two ways to write the command THEN serve stands there once
    words = ("python", "-m", "vllm.entrypoints.cli.main")
    assert compose(arm(server=Server(command=words, model="m"))).argv[:5] == (*words, "serve", "m")
    assert compose(arm(server=Server(command=("vllm", "serve"), model="m"))).argv[:3] == ("vllm", "serve", "m")


@pytest.mark.parametrize(
    "flags",
    [
        ("--host", "127.0.0.1"),
        ("--host=127.0.0.1",),
        ("--port", "8264"),
        ("--served-model-name", "glm"),
        ("--served_model_name=glm",),
        ("--enable-logging-iteration-details",),
        ("--enable_logging_iteration_details",),
        ("--profiler-config", '{"torch_profiler_record_shapes":true}'),
        ("--profiler_config={}",),
    ],
)
def test_a_flag_of_the_arm_is_not_given_twice(flags: tuple[str, ...]) -> None:
    # GIVEN an arm that gives one of ours, in any spelling
    argv = compose(arm(*flags)).argv
    # WHEN the command line is composed THEN each name stands there once
    names = [word.partition("=")[0].replace("_", "-") for word in argv if word.startswith("--")]
    assert sorted(names) == [
        "--enable-logging-iteration-details",
        "--host",
        "--port",
        "--profiler-config",
        "--served-model-name",
    ]


def test_further_keys_of_the_profiler_are_kept() -> None:
    # GIVEN an arm that wants shapes and stacks, with a short flag after them
    argv = compose(
        arm("--profiler-config", '{"torch_profiler_record_shapes":true,"torch_profiler_with_stack":true}', "-tp", "2")
    ).argv
    # WHEN the command line is composed THEN they join ours, and the next flag stays
    assert json.loads(argv[-1]) == {
        "profiler": "torch",
        "torch_profiler_dir": "/run/traces",
        "ignore_frontend": True,
        "max_iterations": 20,
        "torch_profiler_with_stack": True,
        "torch_profiler_record_shapes": True,
    }
    assert argv[argv.index("-tp") : argv.index("-tp") + 2] == ("-tp", "2")


def test_a_relative_folder_of_traces_becomes_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # GIVEN a relative folder WHEN the command line is composed THEN the server gets an absolute one
    monkeypatch.chdir(tmp_path)
    line = VllmBackend().command(arm(), port=1, traces=Path("t"), window=Window(iterations=3), inherited={})
    config = json.loads(line.argv[-1])
    assert (config["torch_profiler_dir"], config["max_iterations"]) == (str(tmp_path / "t"), 3)


@pytest.mark.parametrize(
    ("subject", "message"),
    [
        (arm(server=Server()), "arm mega has no model"),
        (arm(server=Server(command=(), model="m")), "arm mega has no server command"),
        (
            arm(server=Server(model="m", host="0.0.0.0")),
            "arm mega binds host 0.0.0.0, and a server under profile must stay on loopback",
        ),
        (arm("--host", "0.0.0.0"), "arm mega gives --host 0.0.0.0, but server.host makes it 127.0.0.1"),
        (arm("--port=1"), "arm mega gives --port 1, but server.port makes it 8264"),
        (
            arm("--profiler-config.profiler=cuda"),
            "arm mega gives --profiler-config.profiler, which would replace what moeprof says in --profiler-config",
        ),
        (arm("--profiler-config", "{"), "arm mega gives --profiler-config a value that is no JSON: "),
        (arm("--profiler-config", "[]"), "arm mega gives --profiler-config a value that is no JSON object"),
        (
            arm("--profiler-config", '{"torch_profiler_dir":"/x"}'),
            "arm mega sets torch_profiler_dir in --profiler-config, which is moeprof's to set",
        ),
        (
            arm("--no-enable-logging-iteration-details"),
            "arm mega gives --no-enable-logging-iteration-details, but the iterations in the log prove those in the trace",
        ),
        (arm("--api_key", "k"), "arm mega gives --api_key, but a loopback server needs no key, and requests send none"),
        (arm("--uds", "/s"), "arm mega gives --uds, but moeprof reaches the server over a loopback port"),
        (arm("--model", "x"), "arm mega gives --model as a flag"),
        (
            arm("--served-model-name", "x", server=Server(model="m", served_name="y")),
            "arm mega names its model y and, in --served-model-name, x",
        ),
    ],
)
def test_what_fights_with_ours_is_refused(subject: Arm, message: str) -> None:
    # GIVEN an arm that says what moeprof must say WHEN its command line is composed THEN one sentence tells which
    with pytest.raises(ConfigError) as caught:
        compose(subject)
    assert caught.value.message.startswith(message)
    assert "\n" not in caught.value.message


def test_names_and_addresses() -> None:
    # GIVEN arms that name their model in three ways, and a host of the sixth version
    backend = find_backend(arm())
    assert is_serving(backend)
    assert backend.served_name(arm()) == "m"
    assert backend.served_name(arm("--served-model-name", "a", "b")) == "a"
    assert backend.served_name(arm("--served-model-name", "a", "b", server=Server(model="m", served_name="b"))) == "b"
    # THEN addresses are such as a client takes
    six = arm(server=Server(model="m", host="::1", health="ready"))
    assert backend.address(six, 5) == "http://[::1]:5"
    assert backend.health(six, "http://[::1]:5") == "http://[::1]:5/ready"


@pytest.mark.parametrize(
    ("env", "inherited", "expected"),
    [
        ({}, {}, {"MOEPROF_MARKERS": "1", "PYTHONPATH": str(PLUGIN_PATH)}),
        (
            {"VLLM_PLUGINS": "a, b"},
            {},
            {"MOEPROF_MARKERS": "1", "PYTHONPATH": str(PLUGIN_PATH), "VLLM_PLUGINS": "a,b,moeprof_markers"},
        ),
        (
            {"VLLM_PLUGINS": "moeprof_markers"},
            {"PYTHONPATH": "/p"},
            {"MOEPROF_MARKERS": "1", "PYTHONPATH": f"/p:{PLUGIN_PATH}", "VLLM_PLUGINS": "moeprof_markers"},
        ),
        (
            {"PYTHONPATH": f"/q:{PLUGIN_PATH}"},
            {"PYTHONPATH": "/p", "VLLM_PLUGINS": ""},
            {"MOEPROF_MARKERS": "1", "PYTHONPATH": f"/q:{PLUGIN_PATH}", "VLLM_PLUGINS": "moeprof_markers"},
        ),
    ],
)
def test_the_environment_of_the_plugin(
    env: dict[str, str], inherited: dict[str, str], expected: dict[str, str]
) -> None:
    # GIVEN what the arm sets and what it inherits WHEN markers are on THEN both are completed, and an unset list stays unset
    assert plugin_environment(arm(env=env, markers=True), inherited) == expected


def test_without_markers_the_environment_is_the_arms() -> None:
    # GIVEN an arm without markers THEN nothing is added
    assert plugin_environment(arm(env={"VLLM_PLUGINS": "a"}), {}) == {}
