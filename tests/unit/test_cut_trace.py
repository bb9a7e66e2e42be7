"""The script that cuts sample traces keeps whole iterations and every digit."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from scripts.cut_trace import main, squeeze

MARKERS = [("1000.100", "5.001"), ("2000.200", "5"), ("3000.300", "5"), ("4000.400", "5")]


def trace(*, device: bool = True) -> str:
    """Return a trace of four markers; each iteration launches one kernel after its marker ended, on the marker's thread."""
    rows = ['{ "name": "process_name", "ph": "M", "ts": 1.5, "pid": 7, "tid": 0, "args": { "name": "a  \\" b" } }']
    for number, (start, length) in enumerate(MARKERS):
        ts = f'"ts": {start}, "dur": {length}'
        later = start.replace("00.", "99.")
        rows += [
            f'{{"ph": "X", "cat": "user_annotation", "name": "execute_context_0(0)_generation_1(4)", "pid": 7, "tid": 7, {ts}}}',
            f'{{"ph": "X", "cat": "cpu_op", "name": "op{number}", "pid": 7, "tid": 7, "ts": {later}, "dur": 1}}',
            f'{{"ph": "X", "cat": "python_function", "name": "f", "pid": 7, "tid": 7, "ts": {later}, "dur": 1}}',
        ]
        if device:
            link = f'"args": {{"correlation": {number}}}'
            call = f'"cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": {later}, "dur": 1'
            rows += [
                f'{{"ph": "X", {call}, {link}}}',
                f'{{"ph": "s", "id": {number}, "cat": "ac2g", "name": "ac2g", "pid": 7, "tid": 7, "ts": {later}}}',
                f'{{"ph": "X", "cat": "kernel", "name": "k{number}", "pid": 0, "tid": 1, "ts": 9{later}, "dur": 0.100, {link}}}',
                f'{{"ph": "X", "cat": "gpu_user_annotation", "name": "g", "pid": 0, "tid": 1, "ts": {later}, "dur": 1}}',
            ]
    return '{"schemaVersion": 1, "traceEvents": [' + ",\n".join(rows) + '], "traceName": "t"}'


def cut(tmp_path: Path, text: str, iterations: str) -> tuple[int, str]:
    """Cut a trace; return the exit code and the text of the result."""
    source, target = tmp_path / "in.json", tmp_path / "out" / "out.json.gz"
    source.write_text(text, encoding="utf-8")
    code = main([str(source), str(target), "--iterations", iterations])
    return code, gzip.decompress(target.read_bytes()).decode() if target.exists() else ""


def test_it_does_not_tell_the_machine(tmp_path: Path) -> None:
    # GIVEN a header with the host's name and a path of its disk
    text = (
        trace()
        .replace('"schemaVersion": 1', '"schemaVersion": 1, "host_name": "box"')
        .replace('"t"}', '"/tmp/x.json"}')
    )
    # WHEN it is cut THEN the one is gone and the other is the file's name
    header = json.loads(cut(tmp_path, text, "1..2")[1])
    assert (header.get("host_name"), header["traceName"]) == (None, "in.json")


def names(text: str, category: str) -> list[str]:
    return [event["name"] for event in json.loads(text)["traceEvents"] if event.get("cat") == category]


def test_it_keeps_what_the_chosen_iterations_launched(tmp_path: Path) -> None:
    # GIVEN four iterations whose kernels run long after their launch
    # WHEN the middle two are cut out
    code, text = cut(tmp_path, trace(), "1..2")
    # THEN their markers, launches and kernels are there, and nothing else of the window
    assert code == 0
    assert names(text, "kernel") == ["k1", "k2"]
    assert len(names(text, "user_annotation")) == 2
    assert len(names(text, "cuda_runtime")) == 2
    assert [names(text, c) for c in ("ac2g", "gpu_user_annotation", "python_function", "cpu_op")] == [[], [], [], []]


def test_it_keeps_operators_where_there_is_no_device(tmp_path: Path) -> None:
    # GIVEN a trace without device rows
    # WHEN one iteration is cut out
    _, text = cut(tmp_path, trace(device=False), "1")
    # THEN its operators are there
    assert names(text, "cpu_op") == ["op1"]


def test_it_keeps_digits_metadata_and_says_what_it_did(tmp_path: Path) -> None:
    # GIVEN times with trailing zeros
    # WHEN an iteration is cut out
    _, text = cut(tmp_path, trace(), "0..0")
    # THEN the digits are those of the file, the metadata and the other keys are there, and the header says what was cut
    assert '"ts":1000.100,"dur":5.001' in text
    assert '"dur":0.100' in text
    assert '"name":"a  \\" b"' in text
    whole = json.loads(text)
    assert (whole["schemaVersion"], whole["traceName"]) == (1, "in.json")
    assert whole["moeprof_cut"]["from"] == "in.json"
    assert whole["moeprof_cut"]["iterations"] == "0..0 of 0..3, by launch"


@pytest.mark.parametrize("iterations", ["3", "2..3", "9"])
def test_it_refuses_an_iteration_whose_end_is_not_on_record(
    tmp_path: Path, iterations: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # GIVEN a file whose last iteration has no successor
    # WHEN it is asked for
    code, text = cut(tmp_path, trace(), iterations)
    # THEN nothing is written, and the reason is
    assert (code, text) == (2, "")
    assert "the file has 4" in capsys.readouterr().err


def test_white_space_goes_only_between_tokens() -> None:
    # GIVEN JSON with white space inside and between strings
    # WHEN it is squeezed
    # THEN strings are as they were
    assert squeeze('{ "a b" :\n [ 1.50 , "c \\" d" ] }') == '{"a b":[1.50,"c \\" d"]}'
