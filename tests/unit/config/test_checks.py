"""Traps that load: each is found, and not found where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from moeprof.config.checks import check
from moeprof.config.init import TEMPLATES, template

from .files import load

CLEAN = """\
[server]
model = "m"
[arms.base]
flags = [
  "--data-parallel-size", "2", "-ep", "--all2all-backend", "allgather_reducescatter", "--max-num-seqs", "32",
  "--no-enable-prefix-caching", "--cudagraph-capture-sizes", "16", "128",
  "--speculative-config", '{"num_speculative_tokens":3}',
]
env = { VLLM_USE_V2_MODEL_RUNNER = 1, VLLM_PLUGINS = "a, moeprof_markers" }
[workloads.w]
input_len = 1
output_len = 1
concurrency = [8, 64]
"""


def slugs(folder: Path, text: str) -> list[tuple[str, str]]:
    return [(finding.slug, finding.severity) for finding in check(load(folder, text))]


def test_a_clean_configuration_has_no_findings(tmp_path: Path) -> None:
    # GIVEN flags without a trap WHEN they are checked THEN nothing is found
    assert slugs(tmp_path, CLEAN) == []


@pytest.mark.parametrize(
    ("old", "new", "slug", "severity"),
    [
        (
            '"--data-parallel-size", "2", ',
            '"--max-num-seqs", "64", "--enforce-eager", ',
            "all-to-all-without-effect",
            "warning",
        ),
        ('"-ep", ', "", "all-to-all-without-effect", "warning"),
        ('"-ep", ', '"--no-enable-expert-parallel", ', "all-to-all-without-effect", "warning"),
        ('"-ep", ', '"-ep", "--profiler-config.profiler=torch", ', "profiler-config-twice", "warning"),
        ('"-ep", ', '"-ep", "--profiler-config", "{}", ', "stacks-recorded", "warning"),
        (
            '"-ep", ',
            """"-ep", "--profiler-config", '{"torch_profiler_with_stack":true}', """,
            "stacks-recorded",
            "warning",
        ),
        ("VLLM_USE_V2_MODEL_RUNNER = 1, ", "", "runner-unset", "warning"),
        ('"--no-enable-prefix-caching", ', "", "prefix-caching-on", "warning"),
        ('"--no-enable-prefix-caching"', '"--enable_prefix_caching"', "prefix-caching-on", "warning"),
        ("a, moeprof_markers", "a,b", "marker-plugin-left-out", "note"),
        ('"--max-num-seqs", "32"', '"--max-num-seqs", "31"', "too-few-sequences", "warning"),
        ('"16", "128"', '"16", "256"', "capture-size-missing", "warning"),
        ('"num_speculative_tokens":3', '"num_speculative_tokens":2', "capture-size-missing", "warning"),
        ("[8, 64]", "[8, 62, 64]", "capture-size-missing", "warning"),
    ],
)
def test_a_trap_is_found(tmp_path: Path, old: str, new: str, slug: str, severity: str) -> None:
    # GIVEN the clean flags, changed in one place
    assert old in CLEAN
    text = CLEAN.replace(old, new, 1)
    if slug == "all-to-all-without-effect":
        text = text.replace('"--max-num-seqs", "32"', '"--max-num-seqs", "64"')
    # WHEN they are checked THEN this trap is found, and no other
    assert slugs(tmp_path, text) == [(slug, severity)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"-ep", ', """"-ep", "--profiler-config", '{"torch_profiler_with_stack":false}', """),
        ('"16", "128"', '"8", "16", "128"'),
        ('"16", "128"', '"16", "--enforce-eager"'),
        ('"--cudagraph-capture-sizes", "16", "128",', ""),
        ("env = {", "markers = false\nenv = {"),
        ('"--data-parallel-size", "2"', '"-dp=2"'),
    ],
)
def test_what_is_no_trap_is_not_found(tmp_path: Path, old: str, new: str) -> None:
    # GIVEN the clean flags, changed where it does no harm WHEN they are checked THEN nothing is found
    assert old in CLEAN
    assert slugs(tmp_path, CLEAN.replace(old, new, 1)) == []


def test_markers_off_need_no_plugin(tmp_path: Path) -> None:
    # GIVEN an arm without markers that restricts the plugins WHEN it is checked THEN nothing is found
    assert (
        slugs(tmp_path, CLEAN.replace("a, moeprof_markers", "a").replace("env = {", "markers = false\nenv = {")) == []
    )


def test_the_message_names_the_sizes_that_are_missing(tmp_path: Path) -> None:
    # GIVEN three concurrencies over two ranks, four tokens a request, and one size
    text = CLEAN.replace('"16", "128"', '"64"').replace("[8, 64]", "[7, 8, 64]")
    # WHEN it is checked
    (finding,) = check(load(tmp_path, text))
    # THEN requests a rank are rounded up, and each size is named once
    assert finding.evidence == {"arm": "base", "missing": [16, 128], "tokens_per_request": 4}
    assert "lacks 16, 128: requests a rank times 4 tokens a step" in finding.message


def test_the_window_counts_as_load(tmp_path: Path) -> None:
    # GIVEN a window with more requests than any workload WHEN it is checked THEN its requests are too many
    text = CLEAN + "[window]\nconcurrency = 66\n"
    found = {finding.slug: finding.evidence for finding in check(load(tmp_path, text))}
    assert found["too-few-sequences"] == {
        "arm": "base", "max_num_seqs": 32, "per_rank": 33, "concurrency": 66,
    }  # fmt: skip


def test_requests_that_the_model_does_not_take_are_found(tmp_path: Path) -> None:
    # GIVEN a limit that the workload fits and the window, whose outputs are 900 tokens, does not
    text = CLEAN.replace('"-ep", ', '"-ep", "--max-model-len", "900", ')
    # WHEN it is checked THEN the window is named; with a shorter one nothing is
    (finding,) = check(load(tmp_path, text))
    assert finding.slug == "requests-too-long"
    assert finding.message == (
        "the window of workload w sends requests of 901 tokens, and --max-model-len of arm base allows 900"
    )
    assert slugs(tmp_path, text + "[window]\noutput_len = 899\n") == []
    # WHEN the limit is below the workload too THEN both are named
    assert [slug for slug, _ in slugs(tmp_path, text.replace('"900"', '"1"'))] == ["requests-too-long"] * 2


def test_two_arms_that_are_one_are_found_however_they_are_written(tmp_path: Path) -> None:
    # GIVEN a child without anything of its own, and one that writes a flag in another way
    same = CLEAN + "[arms.same]\nextends = 'base'\nflags = ['--max_num_seqs=32']\n"
    # WHEN they are checked THEN they are named
    (finding,) = check(load(tmp_path, same))
    assert (finding.slug, finding.evidence) == ("arms-identical", {"arms": ["base", "same"]})
    # WHEN they differ in a flag, a variable, the model or the markers THEN they are two arms
    for own in ("flags = ['--x']", "env = { X = 1 }", "server = { model = 'n' }", "markers = false"):
        assert slugs(tmp_path, CLEAN + f"[arms.same]\nextends = 'base'\n{own}\n") == []


def test_a_program_of_ones_own_has_only_equal_arms(tmp_path: Path) -> None:
    # GIVEN a command that is no server WHEN it is checked THEN vLLM's traps are not looked for
    text = '[server]\nbackend = "command"\ncommand = ["x"]\n[arms.a]\n[arms.b]\nextends = "a"\n'
    assert slugs(tmp_path, text) == [("arms-identical", "warning")]


@pytest.mark.parametrize("name", TEMPLATES)
def test_an_example_loads_and_has_no_traps(tmp_path: Path, name: str) -> None:
    # GIVEN an example WHEN it is loaded, with nothing set, and checked THEN it is usable and nothing is found
    config = load(tmp_path, template(name))  # type: ignore[arg-type]
    assert {"base", "mega"} <= set(config.arms)
    assert check(config) == ()
