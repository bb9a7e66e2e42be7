"""The command line: streams, codes, options, and what is loaded when. The library below it is replaced."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from moeprof.analyzers.results import Diff, PairChange, StructureRow, Verdict
from moeprof.cli import main
from moeprof.commands import analysis, fail_on, options, streams
from moeprof.errors import TraceMalformedError, UsageError
from moeprof.findings import Finding
from moeprof.reports.render import FORMATS

from .reports import samples


def call(*argv: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(argv, out, err)
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the library: every path is the base arm, every comparison base against mega."""
    for name in ("NO_COLOR", "FORCE_COLOR", "_MOEPROF_COMPLETE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(analysis, "report_of", lambda path, reading, **_: samples.report(1))
    monkeypatch.setattr(analysis, "diff_of", lambda *_, **__: samples.diff())
    rule = SimpleNamespace(class_="moe_gemm", rule="humming", pattern="^humming<", backend=None, source="built-in")
    monkeypatch.setattr(analysis, "explanation_of", lambda name, rules: rule)


def compare_as(monkeypatch: pytest.MonkeyPatch, result: Diff) -> None:
    monkeypatch.setattr(analysis, "diff_of", lambda *_, **__: result)


def fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def refuse(path: str, reading: object, **_: object) -> None:
        raise error

    monkeypatch.setattr(analysis, "report_of", refuse)


def test_help_and_version_end_with_0() -> None:
    # WHEN help or the version is asked for THEN it is on stdout, with code 0
    code, out, err = call("--help")
    assert (code, err) == (0, "")
    assert out.startswith("Usage: moeprof ")
    code, out, err = call("--version")
    assert (code, err) == (0, "")
    assert out.startswith("moeprof 0.")


def test_no_subcommand_is_a_usage_error_with_help() -> None:
    # WHEN nothing is asked for THEN help is on stderr, with code 2
    code, out, err = call()
    assert (code, out) == (2, "")
    assert err.startswith("Usage: moeprof ")


@pytest.mark.parametrize("command", ["report", "diff"])
def test_help_of_a_command_groups_options_and_has_two_examples(command: str) -> None:
    # WHEN a command's help is shown
    code, out, _ = call(command, "--help")
    # THEN options stand under headings, other ones last, and two examples end it
    assert code == 0
    assert out.index("\nReading:") < out.index("\nOutput:") < out.index("\nOther:") < out.index("\nExamples:")
    assert out[out.index("Examples:") :].count("  $ moeprof ") == 2
    assert max(map(len, out.splitlines())) <= 100


def test_the_list_of_commands_says_what_each_help_says_first() -> None:
    # GIVEN that short helps are known without importing commands WHEN both are shown THEN they agree in kind
    _, out, _ = call("--help")
    for command in ("report", "diff"):
        line = next(line for line in out.splitlines() if line.strip().startswith(f"{command} "))
        first = call(command, "--help")[1].splitlines()[2].strip()
        assert line.split(maxsplit=1)[1].split()[0] == first.split()[0]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["dif"], "no such command 'dif'"),
        (["report", "--fromat", "json"], "no such option '--fromat'"),
        (["report", "x", "--format", "yaml"], "'yaml' is not one of 'text', 'json', 'markdown'"),
        (["report"], "no trace was named"),
        (["diff", "a"], "missing argument 'CANDIDATE'"),
        (["report", "x", "--output", "json"], "--output json is not FORMAT=PATH"),
        (["report", "x", "--output", "yaml=y"], "no format 'yaml'"),
        (["report", "x", "--format", "json", "--output", "text=-"], "two formats go to stdout"),
        (["report", "x", "--output", "json=-", "--output", "text=-"], "two formats go to stdout"),
        (["report", "x", "--output", "json=a", "--output", "text=a"], "two outputs go to the same file a"),
        (["report", "x", "--explain-class", "k"], "--explain-class needs no path"),
        (["report", "--explain-class", "k", "--format", "markdown"], "formats text and json only"),
        (["report", "x", "--marker", "("], "not a regular expression"),
        (["report", "x", "--marker-family", "user"], "needs a pattern"),
        (["report", "x", "--marker", "a", "--marker-family", "vllm"], "exclude each other"),
        (["diff", "a", "b", "--fail-on", "regresion"], "no such word: regresion"),
        (["diff", "a", "b", "--fail-on", "none,gate"], "none stands alone"),
        (["diff", "a", "b", "--fail-on", ","], "needs a word"),
    ],
)
def test_usage_errors(argv: list[str], message: str) -> None:
    # WHEN the command line makes no sense THEN one sentence says so on stderr, with code 2
    code, out, err = call(*argv)
    assert (code, out) == (2, "")
    assert err.startswith("moeprof: error[usage]: ")
    assert message in err.splitlines()[0]


def test_an_error_says_what_where_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a trace that is damaged at a known place
    error = TraceMalformedError("unescaped quote in a string", path="t.json", line=7, byte=123, hint="use --recover")
    fail_with(monkeypatch, error)
    # WHEN it is reported on THEN three lines on stderr tell
    assert call("report", "t.json") == (
        2,
        "",
        "moeprof: error[trace-malformed]: unescaped quote in a string\n  at: t.json:7 (byte 123)\n  try: use --recover\n",
    )


def test_an_error_cannot_steer_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a path with an escape sequence in its name WHEN it is in an error THEN it is written out
    fail_with(monkeypatch, TraceMalformedError("bad", path="a\x1b[2J\nb"))
    assert call("report", "x")[2].splitlines()[1] == r"  at: a\x1b[2J\nb"


class Panic(BaseException):
    """Stands for pyo3's PanicException, which derives from BaseException."""


@pytest.mark.parametrize("error", [ValueError("boom"), RecursionError("boom"), Panic("boom")])
def test_a_bug_is_an_internal_error(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    # WHEN something unforeseen is raised THEN the code is 2, without a traceback, and --debug is named
    fail_with(monkeypatch, error)
    code, out, err = call("report", "x")
    assert (code, out) == (2, "")
    assert err.startswith(f"moeprof: error[internal]: internal error: {type(error).__name__}: boom\n  try: ")
    assert "--debug" in err
    assert "Traceback" not in err


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    # WHEN --debug is given THEN the traceback goes before the message
    fail_with(monkeypatch, ValueError("boom"))
    code, _, err = call("report", "x", "--debug")
    assert code == 2
    assert err.index("Traceback (most recent call last)") < err.index("moeprof: error[internal]")


def test_an_error_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    # WHEN a file cannot be opened THEN reason and path are told, with code 2
    fail_with(monkeypatch, PermissionError(errno.EACCES, "Permission denied", "t.json"))
    assert call("report", "x") == (2, "", "moeprof: error[io]: Permission denied\n  at: t.json\n")


def test_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    # WHEN the run is interrupted THEN the code is 130
    fail_with(monkeypatch, KeyboardInterrupt())
    assert call("report", "x") == (130, "", "moeprof: interrupted\n")


@pytest.mark.parametrize("error", [SystemExit(5), GeneratorExit()])
def test_what_must_pass_passes(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    # WHEN SystemExit or GeneratorExit is raised below THEN main does not swallow it
    fail_with(monkeypatch, error)
    with pytest.raises(type(error)):
        call("report", "x")


def test_a_report_on_stdout() -> None:
    # WHEN a trace is reported on THEN stdout has the report and stderr nothing
    code, out, err = call("report", "x")
    assert (code, err) == (0, "")
    assert out.startswith("moeprof report\n")
    assert "\x1b" not in out


def test_several_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    # WHEN two paths are given THEN both are read, in order
    seen: list[str] = []

    def remember(path: str, reading: object, **_: object) -> object:
        seen.append(path)
        return samples.report(1)

    monkeypatch.setattr(analysis, "report_of", remember)
    code, out, _ = call("report", "b", "a", "--format", "json")
    assert (code, seen) == (0, ["b", "a"])
    assert json.loads(out)["schema"] == "moeprof.reports/1"


def test_reading_options_reach_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    # WHEN reading options are given THEN the library gets them
    seen: list[object] = []

    def remember(path: str, reading: object, **_: object) -> object:
        seen.append(reading)
        return samples.report(1)

    monkeypatch.setattr(analysis, "report_of", remember)
    call("report", "x", "--recover", "--rules", "r.toml", "--marker", "step", "--marker-family", "user")
    assert seen == [options.Reading(recover=True, rules="r.toml", marker="step", marker_family="user")]


def test_files_and_stdout_in_one_run(tmp_path: Path) -> None:
    # WHEN two files are asked for, one in a folder that does not exist
    first, second = tmp_path / "new" / "r.json", tmp_path / "r.md"
    code, out, _ = call("report", "x", "--output", f"json={first}", "--output", f"markdown={second}")
    # THEN both are written, no temporary file is left, and stdout has the text
    assert code == 0
    assert json.loads(first.read_text())["schema"] == "moeprof.report/1"
    assert second.read_text().startswith("## moeprof report\n")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["new", "r.json", "r.md"]
    assert out.startswith("moeprof report\n")


def test_output_to_stdout_takes_the_place_of_text() -> None:
    # WHEN a format is sent to - THEN stdout has it alone
    assert json.loads(call("report", "x", "--output", "json=-")[1])["schema"] == "moeprof.report/1"


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    # WHEN the path is a folder THEN the code is 2 and stdout stays empty
    code, out, err = call("report", "x", "--output", f"json={tmp_path}")
    assert (code, out) == (2, "")
    assert err.startswith("moeprof: error[io]: Is a directory\n")


def test_a_device_is_written_to_and_not_replaced() -> None:
    # WHEN the path is a device THEN it is still one afterwards
    assert call("report", "x", "--output", f"json={os.devnull}")[0] == 0
    assert not Path(os.devnull).is_file()


def test_explain_class() -> None:
    # WHEN a kernel name is explained THEN the rule and its source are told
    code, out, _ = call("report", "--explain-class", "humming<x>")
    assert code == 0
    assert [line.split() for line in out.splitlines()[2:]] == [
        ["name", "humming<x>"],
        ["class", "moe_gemm"],
        ["rule", "humming"],
        ["pattern", "^humming<"],
        ["backend", "none"],
        ["source", "built-in"],
    ]
    value = json.loads(call("report", "--explain-class", "humming<x>", "--format", "json")[1])
    assert (value["class"], value["backend"]) == ("moe_gemm", None)


def changed(verdict: Verdict, **changes: object) -> Diff:
    return replace(samples.same_diff(), verdict=verdict, **changes)  # type: ignore[arg-type]  # fields by name


def measured(result: Diff) -> Diff:
    """Return a diff that holds serving metrics."""
    return replace(result, serving=(samples.serving_row(),))


ALL_WORDS = ",".join(fail_on.WORDS)
ONE_MORE = (StructureRow("copy", "target", 1, 2, "more"),)
LOST = replace(samples.same_diff().pairs, ag_rs=PairChange(45, None))


@pytest.mark.parametrize(
    ("result", "words", "code", "because"),
    [
        (samples.diff(), "none", 0, "because --fail-on none"),
        (samples.diff(), "structure", 1, "because --fail-on structure"),
        (measured(samples.diff()), "regression,structure", 1, "because --fail-on structure"),
        (measured(samples.diff()), "regression", 0, "because nothing of --fail-on regression happened"),
        (changed("regressed"), "regression", 1, "because --fail-on regression"),
        (changed("regressed", structure=ONE_MORE), "structure", 1, "because --fail-on structure"),
        (changed("inconclusive"), "inconclusive", 1, "because --fail-on inconclusive"),
        (changed("unchanged", pairs=LOST), "missing", 1, "because --fail-on missing"),
        (changed("unchanged", findings=(Finding("gate-failed", "error", "x"),)), "gate", 1, "because --fail-on gate"),
        (measured(changed("unchanged")), ALL_WORDS, 0, f"because nothing of --fail-on {ALL_WORDS} happened"),
    ],
)
def test_fail_on(monkeypatch: pytest.MonkeyPatch, result: Diff, words: str, code: int, because: str) -> None:
    # WHEN a diff ends in an outcome THEN the code, the last line and the JSON agree on it
    compare_as(monkeypatch, result)
    got, out, err = call("diff", "a", "b", "--fail-on", words)
    assert (got, err) == (code, "")
    assert out.splitlines()[-1].startswith(f"verdict: {result.verdict}")
    assert f"; exit {code} {because}" in out.splitlines()[-1]
    assert json.loads(call("diff", "a", "b", "--fail-on", words, "--format", "json")[1])["exit_code"] == code


def test_nothing_comparable_is_an_error_that_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN two sides without anything in common
    why = Finding("not-comparable", "error", "base has no iterations")
    compare_as(monkeypatch, changed("not_comparable", findings=(why,)))
    # WHEN they are compared THEN the code is 2 with the reason, and the page is still there
    code, out, err = call("diff", "a", "b")
    assert code == 2
    assert err.startswith("moeprof: error[nothing-to-compare]: base has no iterations\n")
    assert out.endswith("verdict: not_comparable; exit 2 because nothing could be compared\n")


@pytest.mark.parametrize("words", ["regression", "gate", "inconclusive", "regression,gate", "structure,regression"])
def test_words_that_paths_cannot_answer_are_not_green_in_silence(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    # GIVEN a diff of paths, which carries no serving metrics
    compare_as(monkeypatch, changed("unchanged"))
    # WHEN it is to fail on what only these metrics tell
    code, out, err = call("diff", "a", "b", "--fail-on", words)
    # THEN the last line and a warning say what could not be judged
    unknown = " and ".join(word for word in words.split(",") if word != "structure")
    said = f"{unknown} could not be judged: neither side carries serving metrics"
    because = " because nothing of --fail-on structure happened" if "structure" in words else ""
    assert out.splitlines()[-1] == f"verdict: unchanged; exit 0{because}; {said}"
    assert (code, err) == (0, f"moeprof: warning: --fail-on: {said}\n")


@pytest.mark.parametrize(
    "text", ['{"traceEvents": []}', '{"traceEvents": [{"ph": "M", "name": "x", "pid": 1, "args": {}}]}']
)
def test_a_copy_is_as_unchanged_as_the_trace_itself(tmp_path: Path, text: str) -> None:
    # GIVEN a trace in which nothing is countable, and its copy
    one, copy = tmp_path / "one.json", tmp_path / "copy.json"
    one.write_text(text)
    copy.write_text(text)
    # WHEN it is compared with either THEN the code is 0
    assert [call("diff", str(one), str(other))[0] for other in (one, copy)] == [0, 0]


@pytest.mark.parametrize(
    ("choice", "environ", "terminal", "wanted"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"FORCE_COLOR": "1", "TERM": "dumb"}, False, True),
        ("auto", {"FORCE_COLOR": ""}, False, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_colour(choice: str, environ: dict[str, str], terminal: bool, wanted: bool) -> None:
    # WHEN option, environment and stream disagree THEN the documented one wins
    stream = io.StringIO()
    stream.isatty = lambda: terminal  # type: ignore[method-assign]  # a terminal for the test
    assert streams.use_color(choice, stream, environ) is wanted


def test_colour_always_reaches_stdout() -> None:
    # WHEN --color always is given THEN stdout has escape sequences
    assert "\x1b[1m" in call("report", "x", "--color", "always")[1]


def test_a_stream_without_unicode_gets_ascii() -> None:
    # GIVEN a stdout that takes ASCII only WHEN a report is written THEN nothing is lost or raised
    buffer = io.BytesIO()
    out = io.TextIOWrapper(buffer, encoding="ascii", write_through=True)
    assert main(["report", "x"], out, io.StringIO()) == 0
    assert buffer.getvalue().isascii()
    assert b"---" in buffer.getvalue()


@pytest.mark.parametrize(
    ("text", "encoding", "as_json", "shown"),
    [
        ("é", "utf-8", False, "é"),
        ("é", "ascii", False, r"\xe9"),
        ('"é😀"', "ascii", True, r'"\u00e9\ud83d\ude00"'),
        ('"\udc80"', "utf-8", True, r'"\udc80"'),
    ],
)
def test_characters_that_an_encoding_lacks(text: str, encoding: str, as_json: bool, shown: str) -> None:
    # WHEN a character cannot be encoded THEN it is escaped, and JSON stays the same JSON
    assert streams.fitted(text, encoding, as_json=as_json) == shown
    if as_json:
        assert json.loads(shown) == json.loads(text)


class Gone(io.StringIO):
    """A pipe whose reader has left."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


class Full(io.StringIO):
    """A disk that is full."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["report", "x"], 0),
        (["diff", "a", "b", "--fail-on", "structure"], 1),
        (["--help"], 0),
        (["report", "--help"], 0),
    ],
)
def test_a_closed_pipe_is_quiet_and_keeps_the_code(argv: list[str], code: int) -> None:
    # WHEN the reader of stdout has gone THEN nothing is said and the code is that of the verdict
    err = io.StringIO()
    assert main(argv, Gone(), err) == code
    assert err.getvalue() == ""


def test_a_full_disk_is_an_error() -> None:
    # WHEN stdout cannot take the result THEN the code is 2
    err = io.StringIO()
    assert main(["report", "x"], Full(), err) == 2
    assert err.getvalue() == "moeprof: error[io]: No space left on device\n"


def test_stderr_that_fails_does_not_hide_the_code() -> None:
    # WHEN the error itself cannot be told THEN the code still tells
    assert main(["dif"], io.StringIO(), Full()) == 2


def test_formats_are_those_of_the_renderer() -> None:
    # GIVEN that help names formats without loading renderers THEN both lists agree
    assert options.FORMATS == FORMATS


def test_parse_of_fail_on() -> None:
    # WHEN words are repeated and spaced THEN each counts once, in the documented order
    assert fail_on.parse("gate, structure,gate") == ("structure", "gate")
    assert fail_on.parse("none") == ()
    with pytest.raises(UsageError):
        fail_on.parse("")


HEAVY = ("polars", "pyarrow", "rich", "torch", "vllm", "pandas", "ray", "numpy", "scipy", "moeprof._native")
PROBE = "import sys; from moeprof.cli import main; code = main(sys.argv[1:]); print(code, sorted(set({heavy!r}) & set(sys.modules)))"


def fresh(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROBE.format(heavy=HEAVY), *argv], capture_output=True, text=True, check=True
    )


@pytest.mark.parametrize("argv", [["--help"], ["report", "--help"], ["diff", "--help"], [], ["dif"]])
def test_help_loads_nothing_heavy(argv: list[str]) -> None:
    # WHEN a fresh interpreter shows help THEN no heavy module is loaded
    code = 0 if "--help" in argv else 2
    assert fresh(*argv).stdout.splitlines()[-1] == f"{code} []"


def test_the_module_runs() -> None:
    # WHEN python -m moeprof is run THEN it is the program, and its code that of main
    done = subprocess.run([sys.executable, "-m", "moeprof", "dif"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("moeprof: error[usage]: no such command 'dif'")


def test_completion_knows_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    # WHEN a shell asks how to go on THEN the subcommands are offered
    for name, value in (("_MOEPROF_COMPLETE", "bash_complete"), ("COMP_WORDS", "moeprof re"), ("COMP_CWORD", "1")):
        monkeypatch.setenv(name, value)
    buffer = io.BytesIO()
    assert main([""], io.TextIOWrapper(buffer, encoding="utf-8"), io.StringIO()) == 0
    assert buffer.getvalue() == b"plain,report\n"


def test_an_output_never_replaces_an_input(tmp_path: Path) -> None:
    # GIVEN a trace
    trace = tmp_path / "a.json"
    text = b'{"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0}]}'
    trace.write_bytes(text)
    # WHEN the result is to be written over it, under another spelling of its path
    out, err = io.StringIO(), io.StringIO()
    code = main(["report", str(trace), "--output", f"json={tmp_path}/./a.json"], out, err)
    # THEN it is refused, and the trace is as it was
    assert (code, out.getvalue()) == (2, "")
    assert "would replace an input" in err.getvalue()
    assert trace.read_bytes() == text
