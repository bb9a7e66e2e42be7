"""A named pipe among the inputs is refused; nothing waits for its writer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import moeprof
from moeprof.errors import InputNotFoundError
from moeprof.pipes import is_pipe

SAMPLE = Path(__file__).parents[2] / "samples" / "cpu" / "base" / "dp0_pp0_tp0_dcp0_ep0_rank0.pt.trace.json.gz"
REFUSED = "moeprof: error[input-not-found]: a named pipe, not a file\n  at: {pipe}\n  try: write what it gives to a file, and name that\n"


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe.json"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("report", "{pipe}"),
        ("diff", "{sample}", "{pipe}"),
        ("report", "{sample}", "--rules", "{pipe}"),
        ("ingest", "{pipe}", "--arm", "x"),
        ("capture", "--arm", "x", "--config", "{pipe}"),
        ("claims", "{pipe}"),
    ],
)
def test_no_command_waits_for_a_pipe(pipe: Path, words: tuple[str, ...]) -> None:
    # GIVEN a pipe that nobody writes WHEN it is an input of a command THEN it is refused in a sentence
    done = subprocess.run(
        [sys.executable, "-m", "moeprof", *(word.format(pipe=pipe, sample=SAMPLE) for word in words)],
        cwd=pipe.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(moeprof.__file__).parents[1])},
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", REFUSED.format(pipe=pipe))


def test_python_does_not_wait_either(pipe: Path) -> None:
    # WHEN it is named, alone or with others THEN it is refused; through a link, too
    link = pipe.with_name("link.json")
    link.symlink_to(pipe)
    for path in (str(pipe), f"{SAMPLE},{pipe}", str(link)):
        with pytest.raises(InputNotFoundError, match="a named pipe"):
            moeprof.open_trace(path)


def test_a_pipe_in_a_folder_is_left_out(pipe: Path) -> None:
    # GIVEN a folder with a trace and a pipe with a trace's name
    (pipe.parent / SAMPLE.name).write_bytes(SAMPLE.read_bytes())
    os.mkfifo(pipe.parent / "dp1_rank1.pt.trace.json")
    # WHEN it is read THEN the pipe is left out, and a note says so
    trace = moeprof.open_trace(pipe.parent)
    assert len(trace.ranks) == 1
    assert any("a named pipe" in finding.message for finding in trace.findings if finding.slug == "left-out")


def test_what_is_no_pipe(tmp_path: Path) -> None:
    # GIVEN a file, a folder, nothing, and a text that is no path THEN none is a pipe
    (tmp_path / "file").write_text("")
    assert [is_pipe(each) for each in (tmp_path / "file", tmp_path, tmp_path / "none", "a\0b", "/dev/null")] == [
        False
    ] * 5
