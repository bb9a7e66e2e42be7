from __future__ import annotations

from pathlib import Path

import pytest

from moeprof.errors import NotATraceError, TraceEmptyError, TraceTruncatedError
from moeprof.traces.open import open_trace
from tests.builders import kernel, trace_json


def fill(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(trace_json([kernel("k", 1, 1)]))
    return folder


def left_out(folder: Path) -> dict[object, object]:
    found = open_trace(folder)
    assert all((f.slug, f.severity) == ("left-out", "note") for f in found.findings)
    return {f.evidence["reason"]: f.evidence["names"] for f in found.findings}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("server_23383.async_llm.17.pt.trace.json.gz", "trace of the API server"),
        ("graph_capture_rank_0.17.pt.trace.json.gz", "graph-capture trace"),
        ("case.kernels.json", "kernel summary"),
        ("profiler_out_0.txt", "no trace by its name"),
        ("README.md", "no trace by its name"),
        ("report.parquet", "an export of another profiler"),
        ("report.arrow", "an export of another profiler"),
    ],
)
def test_what_is_no_rank_is_named_and_left_out(tmp_path: Path, name: str, reason: str) -> None:
    # GIVEN one rank and another file beside it
    assert left_out(fill(tmp_path, "rank0.json", name)) == {reason: [name]}


@pytest.mark.parametrize(("sub", "reason"), [("capture_traces", "graph-capture traces"), ("old", "a sub-folder")])
def test_sub_folders_beside_traces_are_named_and_left_out(tmp_path: Path, sub: str, reason: str) -> None:
    assert left_out(fill(tmp_path, "rank0.json", f"{sub}/rank0.json")) == {reason: [f"{sub}/"]}


def test_a_json_file_that_is_no_trace_is_left_out_beside_traces(tmp_path: Path) -> None:
    (fill(tmp_path, "rank0.json") / "bench.json").write_text('{"output_throughput": 5.0}')
    assert list(left_out(tmp_path).values()) == [["bench.json"]]


def test_a_json_file_that_is_no_trace_is_an_error_alone(tmp_path: Path) -> None:
    (tmp_path / "bench.json").write_text('{"output_throughput": 5.0}')
    with pytest.raises(NotATraceError):
        open_trace(tmp_path)


def test_many_names_of_one_reason_are_one_finding(tmp_path: Path) -> None:
    names = [f"note{i}.txt" for i in range(9)]
    (finding,) = open_trace(fill(tmp_path, "rank0.json", *names)).findings
    assert finding.evidence["names"] == names
    assert finding.message.endswith("note0.txt, note1.txt, note2.txt, note3.txt, note4.txt and 4 more")


@pytest.mark.parametrize("name", ["rank1.pt.trace.json.tmp", "rank1.pt.trace.json.gz.tmp"])
def test_a_leftover_of_a_killed_writer_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(TraceTruncatedError) as caught:
        open_trace(fill(tmp_path, "rank0.json", name))
    assert caught.value.path == str(tmp_path / name)


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(TraceEmptyError, match="no trace in the folder"):
        open_trace(tmp_path)


def test_traces_in_sub_folders_only_are_named_not_searched(tmp_path: Path) -> None:
    # GIVEN a folder of arms and one folder without traces
    fill(tmp_path, "base/rank0.json", "mega/rank0.json", "logs/server.log")
    with pytest.raises(TraceEmptyError, match=r"its sub-folders hold traces: base, mega$"):
        open_trace(tmp_path)
