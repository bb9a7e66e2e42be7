"""``moeprof gate`` and ``moeprof baseline`` as a person and a CI job meet them."""

from __future__ import annotations

import io
import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from moeprof.cli import main
from scripts.add_collective import derive

SAMPLES = Path(__file__).parents[2] / "samples"
BASE = str(SAMPLES / "h200" / "base")
CI = ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "GITHUB_STEP_SUMMARY")


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Be no CI, in an empty folder without a configuration above it."""
    for name in CI:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> tuple[int, str, str]:
    """Run the program."""
    out, err = io.StringIO(), io.StringIO()
    return main(list(arguments), out, err), out.getvalue(), err.getvalue()


def accept(*more: str) -> tuple[int, str, str]:
    """Accept the sample as a baseline."""
    return run("baseline", "accept", BASE, "--reason", "first", "--date", "2026-11-30", *more)


def test_accept_then_gate_then_regress(tmp_path: Path) -> None:
    # GIVEN an accepted trace WHEN the same trace is gated THEN 0, and the file is beside, without a path of this machine
    assert accept()[0] == 0
    stored = (tmp_path / "moeprof-baseline.json").read_text(encoding="utf-8")
    assert str(SAMPLES) not in stored
    assert run("gate", BASE)[0] == 0
    # WHEN one collective per layer more is launched THEN 1, and the annotation says it
    derive(Path(BASE), tmp_path / "worse")
    code, out, _ = run("gate", "worse", "--format", "github")
    assert code == 1
    assert "::error file=moeprof-baseline.json," in out
    assert "all_reduce launches in target 0 -> 42" in out
    # WHEN the change is accepted with a reason THEN it passes
    keys = ("all_reduce/target", "all_reduce/draft")
    flags = [word for key in keys for word in ("--structure", key)]
    assert (
        run("baseline", "accept", "worse", "--arm", "base", "--reason", "needed", "--date", "2026-12-01", *flags)[0]
        == 0
    )
    assert run("gate", "worse")[0] == 0
    code, out, _ = run("baseline", "show")
    assert code == 0
    assert "structure all_reduce/target accepted 2026-12-01: needed" in out


def test_accepting_twice_gives_equal_bytes(tmp_path: Path) -> None:
    # GIVEN one trace WHEN it is accepted into two files THEN they are equal
    accept("--baseline", "a.json")
    accept("--baseline", "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


@pytest.mark.parametrize("variable", ["CI", "GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE"])
def test_ci_never_accepts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str) -> None:
    # GIVEN the environment of a CI WHEN a baseline is accepted THEN 2, and nothing is written
    monkeypatch.setenv(variable, "true")
    code, _, err = accept()
    assert code == 2
    assert variable in err
    assert not (tmp_path / "moeprof-baseline.json").exists()


def test_json_obeys_its_schema() -> None:
    # GIVEN a gate and a self-test WHEN rendered as JSON THEN each obeys the shipped schema and tells its exit code
    accept()
    for arguments, kind, code in (
        (("gate", str(SAMPLES / "h200" / "triton")), "gate", 1),
        (("gate", "--self-test"), "self-test", 0),
    ):
        found, out, _ = run(*arguments, "--format", "json")
        schema = json.loads(files("moeprof.reports").joinpath(f"schemas/{kind}-1.json").read_text(encoding="utf-8"))
        value = json.loads(out)
        jsonschema.Draft202012Validator(schema).validate(value)
        assert found == value["exit_code"] == code


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gate", BASE), "there is no baseline"),
        (("gate",), "there is no baseline"),
        (("gate", "absent", "--baseline", "garbage.json"), "the baseline is not JSON"),
        (("gate", BASE, "--baseline", "empty.json"), "the baseline is empty"),
        (("gate", BASE, "--baseline", "a", "--against", "b"), "exclude each other"),
        (("gate", BASE, "--fail-on", "sometimes"), "no such word: sometimes"),
        (("gate", "--against", BASE), "--against needs the run"),
        (("gate", BASE, "--against", f"{BASE}/."), "is held against itself"),
        (("gate", BASE, "--accuracy-margin", "2"), "makes no sense"),
        (("baseline", "accept", BASE, "--reason", " "), "needs a reason"),
        (("baseline", "accept", BASE, "--reason", "x", "--date", "today"), "is no day"),
        (("baseline", "accept", BASE, "--reason", "x", "--metric", "y"), "has no arm 'base'"),
        (("baseline", "accept", "empty.json", "--reason", "x"), "error["),
        (("baseline", "show"), "there is no baseline"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    # GIVEN something that cannot be WHEN it is asked for THEN 2 and one error
    (tmp_path / "garbage.json").write_text("{nope")
    (tmp_path / "empty.json").write_text("")
    code, _, err = run(*arguments)
    assert code == 2
    assert said in err
    assert err.count("moeprof: error[") == 1


def test_a_broken_baseline_is_not_written_over(tmp_path: Path) -> None:
    # GIVEN a file that is no baseline WHEN something is accepted into it THEN 2, and the file stays
    (tmp_path / "moeprof-baseline.json").write_text("{}")
    assert accept()[0] == 2
    assert (tmp_path / "moeprof-baseline.json").read_text() == "{}"


def test_a_configuration_moves_and_relaxes(tmp_path: Path) -> None:
    # GIVEN rules that allow what changes between the backends WHEN the other backend is gated from a folder below THEN 0
    rules = '"copy/*" = "any"\n"elementwise/*" = "any"\n"quant/*" = "any"\n"backend/moe_gemm/*" = "any"\n'
    (tmp_path / "moeprof.toml").write_text(f'[gate]\nbaseline = "perf/b.json"\n[gate.structure]\n{rules}')
    assert accept()[0] == 0
    assert (tmp_path / "perf" / "b.json").is_file()
    assert run("gate", str(SAMPLES / "h200" / "triton"))[0] == 0
    # AND a typo does not switch it off
    (tmp_path / "moeprof.toml").write_text('[gate.structure]\n"copi/*" = "any"\n')
    code, _, err = run("gate", BASE)
    assert (code, "moeprof.toml:2" in err) == (2, True)


def test_the_step_summary_gets_the_markdown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # GIVEN GitHub's file for summaries WHEN github is the format THEN the page is appended; otherwise it is not
    accept()
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    run("gate", BASE)
    assert not (tmp_path / "summary.md").exists()
    run("gate", BASE, "--format", "github")
    run("gate", BASE, "--format", "github")
    assert (tmp_path / "summary.md").read_text(encoding="utf-8").count("## moeprof gate") == 2
    # AND one that would be too long leaves a sentence
    (tmp_path / "summary.md").write_bytes(b"x" * 900_000)
    run("gate", BASE, "--format", "github")
    assert (tmp_path / "summary.md").read_bytes().endswith(b"too long for this summary\n\n")


def test_a_missing_rank_is_missing() -> None:
    # GIVEN one rank of two WHEN gated THEN missing, 1
    accept()
    code, out, _ = run("gate", f"{BASE}/dp0_pp0_tp0_dcp0_ep0_rank0.pt.trace.json.gz", "--arm", "base")
    assert code == 1
    assert "1 of 2 ranks of the baseline have counts: dp1_pp0_tp0_dcp0_ep1_rank0 missing" in out
