"""What a block says while it runs, what becomes of one that fails, and which errors it turns into which."""

from __future__ import annotations

import errno
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest

from moeprof.commands.capturing import TraceAnalysis, gates
from moeprof.commands.crash import describe
from moeprof.config.schema import Config
from moeprof.errors import (
    CaptureError,
    MoeprofError,
    ServerDiedError,
    StoreWriteError,
    TraceMalformedError,
    WindowFailedError,
)
from moeprof.profiler import failure
from moeprof.profiler.block import capture
from moeprof.profiler.order import Order, Seen
from moeprof.profiler.progress import Loading, log_text, pass_line
from moeprof.profiler.results import PassResult
from moeprof.profiler.signals import Terminated
from moeprof.store.folder import Store
from tests.unit.config.files import load
from tests.unit.store.runs import manifest

TRACES = Path(__file__).parents[3] / "samples" / "cpu" / "base"
PROGRAM = """\
[server]
backend = "command"
command = ["/bin/sh", "-c", "{script}", "{{traces}}"]

[arms.base]

[gates]
required = []
"""


class Looking:
    """An analysis that finds what it is told to, or fails.

    Args:
        error: What looking raises; None: nothing.
    """

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def look(self, traces: Path) -> Seen:
        if self.error is not None:
            raise self.error
        return Seen({}, {}, None)

    def table(self, columns: Mapping[str, list[Any]], path: Path) -> None:
        raise AssertionError("nothing is sampled")

    def normalise(self, traces: Path, events: Path) -> None:
        events.mkdir()


def program(folder: Path, script: str = "true") -> Order:
    """Return an order to run a shell script to its end."""
    config: Config = load(folder, PROGRAM.format(script=script))
    return Order(config, config.arms["base"], None)


def test_a_program_runs_to_its_end(tmp_path: Path) -> None:
    # GIVEN a program that writes a file into its folder for traces
    order = program(tmp_path, "echo done; echo x > $0/t")
    said: list[str] = []
    # WHEN a block of it is captured THEN the run holds its output and its traces
    run = capture(order, Store(tmp_path / "store"), Looking(), said.append)
    assert ((run.path / "server.log").read_text(), (run.path / "traces" / "t").read_text()) == ("done\n", "x\n")
    assert said == ["running /bin/sh", "reading the traces"]
    assert (run.manifest.outcome, sorted(run.manifest.files)) == ("complete", ["server.log", "traces/t"])


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (TraceMalformedError("unescaped quote", path="t", line=3), WindowFailedError,
         "the traces cannot be read: unescaped quote"),
        (OSError(errno.ENOSPC, "No space left on device", "f"), StoreWriteError,
         "cannot capture the block: the disk is full"),
        (CaptureError("as it is"), CaptureError, "as it is"),
    ],
)  # fmt: skip
def test_errors_while_capturing_have_code_3(
    tmp_path: Path, error: Exception, kind: type[MoeprofError], message: str
) -> None:
    # GIVEN an analysis that fails WHEN a block is captured THEN it fails as a capture, and is set aside with the reason
    store = Store(tmp_path / "store")
    with pytest.raises(CaptureError) as caught:
        capture(program(tmp_path), store, Looking(error), lambda _: None)
    assert (type(caught.value), caught.value.message, caught.value.exit_code) == (kind, message, 3)
    (failed,) = store.failed()
    assert (failed.reason, store.runs()) == (message, [])
    assert f"look at {failed.path}" in (caught.value.hint or "")


def test_a_bug_keeps_what_was_captured(tmp_path: Path) -> None:
    # GIVEN a bug in the analysis WHEN a block is captured THEN the bug shows, and the folder is kept
    store = Store(tmp_path / "store")
    with pytest.raises(ZeroDivisionError) as caught:
        capture(program(tmp_path), store, Looking(ZeroDivisionError("by 0")), lambda _: None)
    (failed,) = store.failed()
    assert failed.reason == "internal error: ZeroDivisionError: by 0"
    assert caught.value.__notes__ == [f"what the block left lies in {failed.path}"]


def test_a_program_that_fails_tells_its_last_words_without_secrets(tmp_path: Path) -> None:
    # GIVEN a program with a secret that it prints
    order = program(tmp_path, "echo ValueError: no $HF_TOKEN; exit 4")
    order = replace(order, arm=replace(order.arm, env={"HF_TOKEN": "correct horse"}))
    # WHEN it fails THEN sentence and log are shown, and the place is where the log is now
    with pytest.raises(ServerDiedError) as caught:
        capture(order, Store(tmp_path / "store"), Looking(), lambda _: None)
    error = caught.value
    assert error.message == "the server ended with exit code 4 instead of finishing: ValueError: no <redacted>"
    assert error.path is not None and Path(error.path).parent.parent == tmp_path / "store" / "failed"
    assert Path(error.path).exists()
    code, text = describe(error, debug=False)
    assert (code, text.splitlines()[-1]) == (3, "  | ValueError: no <redacted>")


def test_failures_that_are_not_kept(tmp_path: Path) -> None:
    # GIVEN an order to keep nothing WHEN the block fails THEN nothing is left, and no place is named that is gone
    store = Store(tmp_path / "store")
    with pytest.raises(ServerDiedError) as caught:
        capture(replace(program(tmp_path, "exit 4"), keep_failed=False), store, Looking(), lambda _: None)
    assert (caught.value.path, store.failed(), store.leftovers()) == (None, [], [])


def test_a_folder_that_cannot_be_set_aside(tmp_path: Path) -> None:
    # GIVEN a file where the folder of failed blocks belongs
    store = Store(tmp_path / "store")
    store.root.mkdir()
    (store.root / "failed").write_text("")
    # WHEN a block fails THEN its own reason is the one told, and the other one is a note
    with pytest.raises(ServerDiedError) as caught:
        capture(program(tmp_path, "exit 4"), store, Looking(), lambda _: None)
    assert caught.value.message == "the server ended with exit code 4 instead of finishing"
    assert caught.value.__notes__[-1].startswith(
        "what the block left could not be kept: cannot set the failed run aside"
    )
    assert list((store.root / "runs").glob("*/*")) == []


def test_secrets_leave_an_error() -> None:
    # GIVEN an error with secrets everywhere WHEN they are taken out THEN none is left
    error = CaptureError("told horse1", hint="try horse1")
    error.add_note("a line with horse1 and hf_0123456789abc")
    failure.redact_error(error, ["horse1"])
    assert (error.message, error.hint) == ("told <redacted>", "try <redacted>")
    assert error.__notes__ == ["a line with <redacted> and <redacted>"]


def test_the_sample_traces_are_seen() -> None:
    # GIVEN the sample of a CPU WHEN the analysis looks THEN kernels, iterations and markers are those
    seen = TraceAnalysis().look(TRACES)
    assert (dict(seen.iterations), seen.family) == (
        {"dp0_pp0_tp0_dcp0_ep0_rank0": 2, "dp1_pp0_tp0_dcp0_ep1_rank0": 2}, "vllm",
    )  # fmt: skip
    assert seen.kernels and all(isinstance(count, int) for count in seen.kernels.values())


def test_loading_is_told_when_it_changes() -> None:
    # GIVEN looks at a log that stands still for a while
    said: list[str] = []
    loading = Loading(said.append)
    line = "(EngineCore_DP0 pid=7) INFO 11-30 20:37:30 [core.py:12] Loading weights"
    # WHEN it is looked at THEN a line is told once, without its prefix, and no longer than the screen
    for passed, text in ((5.2, line), (10.2, line), (15.2, ""), (20.2, line), (25.2, "x" * 200)):
        loading(passed, text)
    assert said == ["5 s: Loading weights", "25 s: " + "x" * 82 + "..."]
    assert len("moeprof: " + said[1]) == 100


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("INFO 11-30 20:37:30 [core.py:12] text", "text"),
        ("(APIServer pid=1) WARNING 11-30 20:37:30 [a/b.py:12] two words", "two words"),
        ("INFO:     Started server process [1]", "Started server process [1]"),
        ("Loading shards: 50%", "Loading shards: 50%"),
        ("[1/2] linking", "[1/2] linking"),
    ],
)
def test_the_text_of_a_log_line(line: str, text: str) -> None:
    assert log_text(line) == text


@pytest.mark.parametrize(
    ("raw", "failed", "line"),
    [
        ({"output_throughput": 301.04, "p50_tpot_ms": 20.68}, 0, "c8 pass 2: 301.0 tok/s, TPOT p50 20.7 ms"),
        ({"output_throughput": 9, "median_tpot_ms": 5.0}, 0, "c8 pass 2: 9.0 tok/s, TPOT p50 5.0 ms"),
        ({"output_throughput": 9, "p50_tpot_ms": None, "p50_ttft_ms": 7}, 1,
         "c8 pass 2: 9.0 tok/s, TTFT p50 7.0 ms, 1 request failed"),
        ({}, 3, "c8 pass 2: 3 requests failed"),
        ({}, 0, "c8 pass 2: no figures"),
    ],
)  # fmt: skip
def test_the_line_of_a_pass(raw: dict[str, float], failed: int, line: str) -> None:
    assert pass_line("c8", 1, PassResult(raw, "bench/x.json", "builtin", failed)) == line


def test_the_summary_of_gates() -> None:
    # GIVEN gates of every outcome THEN those without data are named
    outcomes = {"a": "pass", "b": "pass", "c": "fail", "d": "no-data", "e": "no-data"}
    told = manifest(gates=tuple({"name": name, "outcome": outcome} for name, outcome in outcomes.items()))
    assert gates(told) == "2 passed; 1 failed; no data for d, e"
    assert gates(manifest(gates=({"name": "a", "outcome": "pass"},))) == "1 passed"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_who_was_asked_to_end_says_so(number: signal.Signals, code: int) -> None:
    # WHEN a signal ended the run THEN the code is the shell's for it; Ctrl-C keeps its own
    assert describe(Terminated(number), debug=False) == (code, f"moeprof: ended by {number.name}\n")
    assert describe(KeyboardInterrupt(), debug=False) == (130, "moeprof: interrupted\n")


def test_an_interrupted_block_says_what_became_of_it(tmp_path: Path) -> None:
    # GIVEN a block that was begun WHEN it is interrupted THEN its folder is set aside, and the one line says where
    ended = Terminated(signal.SIGTERM)
    with Store(tmp_path).begin("base", 0) as writer:
        failure.interrupted(writer, ended, keep=True)
    (folder,) = (tmp_path / "failed").iterdir()
    said = f"moeprof: ended by SIGTERM; nothing was stored; what the block left lies in {folder}\n"
    assert describe(ended, debug=False) == (143, said)
    # AND one that click wrapped says it as well
    wrapped = click.Abort()
    wrapped.__cause__ = ended
    assert describe(wrapped, debug=False) == (143, said)
    # GIVEN one that was not begun, or whose folder is gone THEN nothing is kept, and only that is said
    for keep in (False, True):
        early = KeyboardInterrupt()
        with Store(tmp_path / "other").begin("base", 0) as writer:
            if keep:
                writer.discard()
            failure.interrupted(writer, early, keep=keep)
        assert describe(early, debug=False) == (130, "moeprof: interrupted; nothing was stored\n")


def test_notes_cannot_steer_the_terminal() -> None:
    # GIVEN an error with log lines that hold an escape sequence THEN it is written out
    error = CaptureError("m")
    error.add_note("one\ntwo\x1b[2J")
    assert describe(error, debug=False) == (3, "moeprof: error[capture-failed]: m\n  | one\n  | two\\x1b[2J\n")
