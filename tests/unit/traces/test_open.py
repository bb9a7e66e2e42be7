from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import pytest

from moeprof.errors import (
    DuplicateRankError,
    InputNotFoundError,
    ManyDocumentsError,
    MoeprofError,
    NotATraceError,
    TraceEmptyError,
    TraceMalformedError,
    TraceTruncatedError,
    UnsupportedFormatError,
)
from moeprof.findings import Finding
from moeprof.traces.open import open_trace
from tests.builders import cpu_op, event, kernel, launch, marker, process_name, thread_name, trace_json

SMALL = [launch(1, correlation=1), kernel("k", 5, 1, correlation=1)]


def write(path: Path, *, events: object = None, **top: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(trace_json(SMALL if events is None else events, **top))  # type: ignore[arg-type]  # top-level keys by name
    return path


def info(rank: int, world_size: int | None = None) -> dict[str, object]:
    return {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world_size}}


def slugs(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.slug for finding in findings]


def test_a_single_file(tmp_path: Path) -> None:
    found = open_trace(write(tmp_path / "rank3.json"))
    assert found.ranks == ("rank3",)
    assert found["rank3"].source == "rank3.json"
    assert found.findings == ()


def test_a_folder_of_ranks_in_natural_order(tmp_path: Path) -> None:
    # GIVEN three ranks whose names sort otherwise as text
    for number in (10, 2, 1):
        write(tmp_path / f"rank{number}.json", events=[kernel("k", number, 1)])
    found = open_trace(str(tmp_path))
    assert found.ranks == ("rank1", "rank2", "rank10")
    assert [rank.kernels["start_ns"][0] for rank in found] == [1_000, 2_000, 10_000]
    assert found.source == str(tmp_path)


def test_ranks_of_several_folders_joined_by_commas(tmp_path: Path) -> None:
    # GIVEN two nodes, and a file by name
    write(tmp_path / "node0/rank0.json")
    write(tmp_path / "node1/rank1.json")
    extra = write(tmp_path / "rank2.json")
    # WHEN they are named together
    found = open_trace(f"{tmp_path}/node0, {tmp_path}/node1,{extra}")
    # THEN the ranks come together, and sources tell the folders apart
    assert [(rank.key, rank.source) for rank in found] == [
        ("rank0", "node0/rank0.json"),
        ("rank1", "node1/rank1.json"),
        ("rank2", "rank2.json"),
    ]


def test_a_path_that_holds_a_comma_is_one_path(tmp_path: Path) -> None:
    assert open_trace(write(tmp_path / "a,b" / "rank0.json").parent).ranks == ("rank0",)


@pytest.mark.parametrize("path", ["nowhere", "nowhere,elsewhere", ",", "x" * 5000])
def test_missing_paths(tmp_path: Path, path: str) -> None:
    with pytest.raises(InputNotFoundError) as caught:
        open_trace(path)
    assert caught.value.path


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a reader that meets a refusal of the operating system
    class Refusing:
        TraceFormatError = ZeroDivisionError

        def read_kineto(self, *_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied", "x")

    monkeypatch.setattr("moeprof.traces.kineto._reader", Refusing)
    with pytest.raises(InputNotFoundError, match="Permission denied"):
        open_trace(write(tmp_path / "rank0.json"))


@pytest.mark.parametrize(
    ("content", "error", "line", "byte"),
    [
        (b"", TraceEmptyError, None, None),
        (b" \n ", TraceEmptyError, None, None),
        (gzip.compress(b""), TraceEmptyError, None, None),
        (b'{"traceEvents": [\n{"ph": "X"', TraceTruncatedError, 2, 28),
        (b'{"traceEvents": [\n{"ph": "\\q"}]}', TraceMalformedError, 2, 26),
        (b'{"traceEvents": []}\n{"traceEvents": []}', ManyDocumentsError, 2, 20),
        (b'{"mean_ttft_ms": 5}', NotATraceError, None, None),
        (b'[{"file": "x"}]', NotATraceError, None, None),
    ],
)
def test_errors_carry_class_place_and_advice(
    tmp_path: Path, content: bytes, error: type[MoeprofError], line: int | None, byte: int | None
) -> None:
    # GIVEN a file that is no well-formed trace
    path = tmp_path / "rank0.json"
    path.write_bytes(content)
    # WHEN it is opened, THEN the error is of its class and says where and what to do
    with pytest.raises(error) as caught:
        open_trace(path)
    assert (caught.value.path, caught.value.line, caught.value.byte) == (str(path), line, byte)
    assert caught.value.hint
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"PAR1", "one table in Parquet or Arrow"),
        (b"ARROW1\x00\x00", "one table in Parquet or Arrow"),
        (b"\xff\xff\xff\xff\x10\x00", "one table in Parquet or Arrow"),
        (b"NVIDIA Tegra Profiler Report 9023@4@4@54-", "a report of Nsight Systems 9023.4"),
        (b"NVIDIA Nsight Systems Stream 2023.4.4.54-", "a stream of Nsight Systems 2023.4"),
    ],
)
def test_files_of_nsight_systems_that_only_nsys_reads_are_told_by_content(
    tmp_path: Path, head: bytes, said: str, compressed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN a machine without nsys, and such a file under the name of a trace
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("MOEPROF_NSYS", raising=False)
    path = tmp_path / "rank0.json"
    path.write_bytes(gzip.compress(head + b"rest") if compressed else head + b"rest")
    with pytest.raises(UnsupportedFormatError, match=said) as caught:
        open_trace(path)
    assert caught.value.exit_code == 2
    assert caught.value.hint


@pytest.mark.parametrize("compressed", [False, True])
def test_a_database_that_is_cut_is_told_by_content(tmp_path: Path, compressed: bool) -> None:
    path = tmp_path / "rank0.json"
    text = b"SQLite format 3\x00rest"
    path.write_bytes(gzip.compress(text) if compressed else text)
    with pytest.raises(TraceTruncatedError, match="ends inside the database"):
        open_trace(path)


def test_recover_marks_the_rank_as_partial(tmp_path: Path) -> None:
    # GIVEN a file cut inside its third event
    path = tmp_path / "rank0.json"
    path.write_bytes(trace_json([*SMALL, cpu_op("x", 1, 1)])[:-70])
    # WHEN it is read with recover
    found = open_trace(path, recover=True)["rank0"]
    # THEN what is whole is there and the loss is told
    assert found.partial
    assert found.kernels.height == 1
    assert slugs(found.findings) == ["truncated"]
    assert found.findings[0].severity == "warning"


def test_notices_become_findings_of_the_rank(tmp_path: Path) -> None:
    path = tmp_path / "rank4.json"
    path.write_bytes(b'{"traceEvents": [\n{"ph": "X", "ts": 1.0005, "name": "a\xff"},\n]}')
    found = open_trace(path)["rank4"].findings
    assert [
        (f.slug, f.severity, f.rank, f.evidence["count"], f.evidence["first_byte"], f.evidence["first_line"])
        for f in found
    ] == [
        ("sub-nanosecond", "note", "rank4", 1, 36, 2),
        ("invalid-utf8", "warning", "rank4", 1, 54, 2),
        ("trailing-comma", "note", "rank4", 1, 57, 2),
    ]
    assert found[1].message == "1 text is not valid UTF-8; the bad bytes were replaced (first at line 2, byte 54)"


def test_python_functions_are_counted_and_not_stored(tmp_path: Path) -> None:
    frame = event("python_function", "f.py(1): f", 1, 1, pid=1, tid=1)
    path = write(tmp_path / "rank0.json", events=[frame, frame, *SMALL])
    found = open_trace(path)["rank0"]
    assert found.event_counts == {"python_function": 2, "cuda_runtime": 1, "kernel": 1}
    assert found.events.height == 2
    # WHEN everything is asked for, THEN they are there
    assert open_trace(path, categories=("*",))["rank0"].events.height == 4


def test_categories_keeps_only_what_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "rank0.json", events=[cpu_op("a", 1, 1), *SMALL, thread_name("t")])
    found = open_trace(path, categories=["kernel"])["rank0"]
    # THEN events are numbered anew and the counts are those of the file
    assert found.events.select("event", "name").rows() == [(0, "k")]
    assert found.kernels.select("event", "device", "launch").rows() == [(0, 0, None)]
    assert found.event_counts == {"cpu_op": 1, "cuda_runtime": 1, "kernel": 1, "": 1}


def test_cache_changes_nothing_yet(tmp_path: Path) -> None:
    path = write(tmp_path / "rank0.json")
    assert open_trace(path, cache=False)["rank0"].kernels.equals(open_trace(path)["rank0"].kernels)
    assert [entry.name for entry in tmp_path.iterdir()] == ["rank0.json"]


def test_tracks_carry_the_names_of_processes_and_threads(tmp_path: Path) -> None:
    events = [cpu_op("a", 1, 1), process_name("VLLM::Worker_DP0"), thread_name("old"), thread_name("main")]
    found = open_trace(write(tmp_path / "rank0.json", events=events))["rank0"].tracks
    assert found.rows()[0] == (0, "4100", "4100", "VLLM::Worker_DP0", "main")


def test_metadata(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.json",
        distributedInfo={"backend": "nccl", "rank": "5", "world_size": 8},
        baseTimeNanoseconds=1_735_689_600_000_000_000,
        deviceProperties=[{"id": 0, "name": "A"}, {"id": 1, "name": ""}, {"name": "no id"}],
        cupti_version=130001,
        traceName="t.json",
    )
    found = open_trace(path)["rank5"].metadata
    assert (found.base_time_ns, found.base_time_known) == (1_735_689_600_000_000_000, True)
    assert (found.distributed_rank, found.world_size, found.backend) == (5, 8, "nccl")
    assert found.devices == {0: "A", 1: ""}
    assert found.versions == {"schemaVersion": "1", "cupti_version": "130001"}
    assert (found.trace_name, found.raw["traceName"]) == ("t.json", "t.json")


def test_a_bare_array_knows_neither_rank_nor_base_time(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(b'[{"ph": "X", "ts": 1, "dur": 1}]')
    found = open_trace(tmp_path / "t.json")
    assert found.ranks == (None,)
    assert not found[None].metadata.base_time_known
    assert [(f.slug, f.severity) for f in found.findings] == [("rank-unknown", "note")]


def test_one_rank_twice_is_an_error_that_names_both_files(tmp_path: Path) -> None:
    # GIVEN two capture windows of one rank, told apart by their time stamps only
    for stamp in (111, 222):
        write(tmp_path / f"dp0_pp0_tp0_dcp0_ep0_rank0.{stamp}.pt.trace.json")
    with pytest.raises(DuplicateRankError, match=r"2 files are dp0.*\.111\..*\.222\.") as caught:
        open_trace(tmp_path)
    assert "name one of the files" in (caught.value.hint or "")


def test_a_rank_by_name_and_by_metadata_is_the_same_rank(tmp_path: Path) -> None:
    write(tmp_path / "rank3.json")
    write(tmp_path / "other.json", **info(3))
    with pytest.raises(DuplicateRankError, match=r"2 files are rank3: other\.json, rank3\.json"):
        open_trace(tmp_path)


def test_files_without_any_rank_cannot_be_told_apart(tmp_path: Path) -> None:
    write(tmp_path / "a.json")
    write(tmp_path / "b.json")
    with pytest.raises(DuplicateRankError, match="2 files without a rank"):
        open_trace(tmp_path)


def test_the_same_file_named_twice_is_read_once(tmp_path: Path) -> None:
    path = write(tmp_path / "rank0.json")
    assert open_trace(f"{path},{path}").ranks == ("rank0",)


def test_a_merged_file_is_split_into_its_ranks(tmp_path: Path) -> None:
    # GIVEN two ranks in one file with the same correlation id, and an event of neither
    events = [
        launch(1, correlation=7, pid="[TP01] 2"),
        kernel("b", 9, 6, correlation=7) | {"pid": "[TP01] 0"},
        marker("m", 0, 5, pid="Spans"),
        launch(1, correlation=7, pid="[TP00] 1"),
        kernel("a", 9, 4, correlation=7) | {"pid": "[TP00] 0"},
    ]
    found = open_trace(write(tmp_path / "merged.json", events=events, **info(0, 2)))
    # THEN each rank has its own tables, numbered from 0, and one link
    assert found.ranks == ("tp0", "tp1")
    assert [rank.kernels.select("event", "name", "launch", "duration_ns").row(0) for rank in found] == [
        (1, "a", 0, 4_000),
        (1, "b", 0, 6_000),
    ]
    assert [rank.tracks.height for rank in found] == [2, 2]
    assert [(f.slug, f.rank, f.evidence) for rank in found for f in rank.findings] == [
        ("events-without-rank", "tp0", {"count": 1}),
        ("events-without-rank", "tp1", {"count": 1}),
    ]


def test_missing_ranks_are_told_where_files_agree_on_the_world(tmp_path: Path) -> None:
    for rank in (0, 2):
        write(tmp_path / f"rank{rank}.json", **info(rank, 4))
    (finding,) = open_trace(tmp_path).findings
    assert (finding.slug, finding.severity) == ("ranks-missing", "warning")
    assert finding.evidence == {"found": 2, "world_size": 4, "missing": [1, 3], "missing_count": 2}


@pytest.mark.parametrize("worlds", [(1, 1), (2, 4), (None, None)])
def test_no_rank_is_missed_where_the_world_is_unclear(tmp_path: Path, worlds: tuple[int | None, int | None]) -> None:
    # GIVEN engines that each call themselves rank 0 of 1, or disagree, or say nothing
    for number, world in enumerate(worlds):
        write(tmp_path / f"dp{number}_tp0_rank0.json", **info(0, world))
    assert open_trace(tmp_path).findings == ()


def test_sqlite_made_by_sqlite_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "report.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    with pytest.raises(NotATraceError, match="Nsight Systems did not write"):
        open_trace(path)
    with pytest.raises(NotATraceError):
        open_trace(tmp_path)


def test_copies_of_one_trace_under_two_names_are_refused(tmp_path: Path) -> None:
    # GIVEN one rank's file saved a second time under another rank's name
    text = trace_json([kernel("k", 1, 2)], trace_id="3A55")
    for name in ("rank0.json", "rank1.json"):
        (tmp_path / name).write_bytes(text)
    # THEN it is not counted twice
    with pytest.raises(DuplicateRankError, match="copies of one trace"):
        open_trace(tmp_path)


def test_a_loop_of_links_is_an_input_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "rank0.json").symlink_to(tmp_path / "rank0.json")
    with pytest.raises(InputNotFoundError):
        open_trace(tmp_path)
