"""The script of the composite action, run by bash as GitHub runs it, on the samples."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from scripts.add_collective import derive

ROOT = Path(__file__).parents[2]
STEP = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"][-1]
BASH = shutil.which("bash")


def act(folder: Path, **inputs: str) -> tuple[int, str, str]:
    """Run the step of the action in a folder: code, stdout and what it told GitHub."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "moeprof").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m moeprof "$@"\n')
    (programs / "moeprof").chmod(0o755)
    script = folder / "step.sh"
    script.write_text(STEP["run"])
    given = dict.fromkeys(STEP["env"], "") | {"SELF_TEST": "false", "JUNIT": "j.xml", "JSON": "r.json"} | inputs
    environ = {**os.environ, **given, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
    environ |= {
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "CI": "true",
    }
    assert BASH is not None
    done = subprocess.run(
        [BASH, "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        cwd=folder, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr, (folder / "output").read_text()


@pytest.mark.skipif(BASH is None, reason="no bash")
def test_the_action_passes_fails_and_refuses(tmp_path: Path) -> None:
    # GIVEN a baseline and a trace WHEN the action runs with its self-test THEN 0, with files and a summary
    shutil.copy(ROOT / "samples" / "moeprof-baseline.json", tmp_path)
    good = str(ROOT / "samples" / "h200" / "base")
    code, _, told = act(tmp_path, SUBJECT=good, ARM="h200-base", SELF_TEST="true")
    assert (code, told) == (0, "exit-code=0\n")
    assert (tmp_path / "j.xml").is_file()
    assert (tmp_path / "r.json").is_file()
    assert "moeprof gate" in (tmp_path / "summary.md").read_text()
    # WHEN a regression comes THEN 1 and an annotation; with none to fail on 0
    derive(Path(good), tmp_path / "worse; echo x")
    code, text, told = act(tmp_path, SUBJECT="worse; echo x", ARM="h200-base")
    assert (code, told.splitlines()[-1]) == (1, "exit-code=1")
    assert "::error file=moeprof-baseline.json" in text
    assert act(tmp_path, SUBJECT="worse; echo x", ARM="h200-base", FAIL_ON="none")[0] == 0
    # WHEN there is no baseline THEN 2
    assert act(tmp_path, SUBJECT=good, BASELINE="absent.json")[0] == 2
