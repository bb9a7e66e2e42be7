"""Which processes of an nsys export are ranks, what they are called, and what their rows become."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from moeprof.errors import UnsupportedFormatError
from moeprof.traces import schema
from moeprof.traces.open import open_trace
from moeprof.traces.trace import RankTrace
from tests.nsys_files import PROCESS, THREAD, write_tables

WORDS = [(1, "cudaLaunchKernel_v7000"), (2, "cudaGraphLaunch_v10000"), (3, "gemm"), (4, "step")]


def kernel(
    start: int, end: int, correlation: int | None, *, process: int | None = PROCESS, device: int = 0
) -> tuple[Any, ...]:
    return (start, end, device, 7, correlation, process, 3, 3, None)


def call(start: int, correlation: int, *, thread: int = THREAD, name: int = 1) -> tuple[Any, ...]:
    return (start, start + 4, 0, thread, correlation, name, 0)


def nvtx(start: int, end: int | None, text: str | None, **given: Any) -> tuple[Any, ...]:
    row = {"type": 59, "thread": THREAD, "string": None, "domain": 0} | given
    return (start, end, row["type"], text, row["thread"], None, row["string"], row["domain"])


def export(path: Path, **tables: Any) -> Path:
    names = {
        "kernels": "CUPTI_ACTIVITY_KIND_KERNEL", "copies": "CUPTI_ACTIVITY_KIND_MEMCPY", "fills": "CUPTI_ACTIVITY_KIND_MEMSET",
        "calls": "CUPTI_ACTIVITY_KIND_RUNTIME", "nvtx": "NVTX_EVENTS",
    }  # fmt: skip
    return write_tables(path, {"StringIds": WORDS, **{names[name]: rows for name, rows in tables.items()}})


def only(path: Path) -> RankTrace:
    (rank,) = open_trace(path)
    return rank


def slugs(rank: RankTrace) -> list[str]:
    return [finding.slug for finding in rank.findings]


def other(number: int) -> tuple[int, int]:
    process = PROCESS + (number << 24)
    return process, process | (4100 + number)


def test_tables_have_the_fixed_columns(tmp_path: Path) -> None:
    rank = only(export(tmp_path / "a.sqlite", kernels=[kernel(10, 20, 1)], calls=[call(1, 1)], nvtx=[nvtx(0, 9, "a")]))
    for name in ("events", "kernels", "launches", "markers", "tracks", "invalid", "collectives"):
        assert schema.conforms(getattr(rank, name), getattr(schema, name.upper())), name


def test_copies_and_fills_are_named_as_torch_names_them(tmp_path: Path) -> None:
    copies = [
        (10, 20, 0, 7, 1, PROCESS, 64, kind, source, target)
        for kind, source, target in ((1, 1, 2), (8, 2, 2), (2, 2, 0))
    ]
    fills = [(30, 40, 0, 7, 2, PROCESS, 0, 32, 2)]
    rank = only(export(tmp_path / "a.sqlite", copies=copies, fills=fills, calls=[call(1, 1)]))
    assert sorted(rank.kernels["name"].cast(pl.String)) == [
        "Memcpy DtoD (Device -> Device)", "Memcpy DtoH (Device -> Pageable)", "Memcpy HtoD (Pinned -> Device)", "Memset (Device)",
    ]  # fmt: skip
    assert dict(rank.kernels["activity"].cast(pl.String).value_counts().iter_rows()) == {"memcpy": 3, "memset": 1}


def test_texts_in_place_and_registered_strings_are_the_same(tmp_path: Path) -> None:
    rows = [nvtx(0, 9, "step"), nvtx(10, 19, None, string=4), nvtx(20, 29, None, string=99), nvtx(30, 39, None)]
    rank = only(export(tmp_path / "a.sqlite", nvtx=rows))
    assert rank.markers["name"].to_list() == ["step", "step", "<string 99>", ""]
    assert "missing-strings" in slugs(rank)


def test_domains_are_those_of_the_process(tmp_path: Path) -> None:
    # GIVEN domain 1, which is another one in each process, and one without a name
    _, thread = other(1)
    rows = [
        nvtx(0, None, "vllm", type=75, domain=1), nvtx(0, None, "moeprof", type=75, domain=1, thread=thread),
        nvtx(1, 2, "a", domain=1), nvtx(1, 2, "b", domain=1, thread=thread), nvtx(3, 4, "c", domain=5),
    ]  # fmt: skip
    found = open_trace(export(tmp_path / "a.sqlite", nvtx=rows))
    told = {
        name: category
        for rank in found
        for name, category in rank.events.select(pl.col("name", "category").cast(pl.String)).iter_rows()
    }
    assert told == {"a": "nvtx:vllm", "b": "nvtx:moeprof", "c": "nvtx"}


def test_ranges_without_an_end_and_ranges_that_run_backwards(tmp_path: Path) -> None:
    rows = [nvtx(0, None, "open"), nvtx(20, 10, "back"), nvtx(30, 40, "good"), nvtx(35, None, "mark", type=34)]
    rank = only(export(tmp_path / "a.sqlite", nvtx=rows))
    assert rank.markers.select("name", "end_ns").rows() == [("open", None), ("back", None), ("good", 40)]
    assert {"open-ranges", "invalid-ranges"} <= set(slugs(rank))


def test_the_newest_of_several_tables_of_ranges_is_read(tmp_path: Path) -> None:
    columns = "start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER"
    tables = {
        f"NVTX_EVENTS{suffix}": [(0, 9, 59, text, THREAD)]
        for suffix, text in (("", "old"), ("_V9", "nine"), ("_V10", "ten"))
    }
    path = write_tables(tmp_path / "a.sqlite", tables, dict.fromkeys(tables, columns))
    assert only(path).markers["name"].to_list() == ["ten"]


def test_kernels_that_name_no_process_belong_to_the_only_one(tmp_path: Path) -> None:
    rank = only(export(tmp_path / "a.sqlite", kernels=[kernel(10, 20, 1, process=None)], calls=[call(1, 1)]))
    assert rank.kernels["launch"].to_list() == [0]


def test_one_process_with_two_devices_is_one_rank(tmp_path: Path) -> None:
    rows = [kernel(10, 20, 1), kernel(10, 20, 2, device=1)]
    rank = only(export(tmp_path / "a.sqlite", kernels=rows, calls=[call(1, 1), call(6, 2)]))
    assert rank.key is None
    assert sorted(rank.kernels["device"]) == [0, 1]


@pytest.mark.parametrize(
    ("devices", "name", "keys"),
    [
        ((0, 1), "run.sqlite", ("device0", "device1")),
        ((0, 0), "run.sqlite", ("pid4100", "pid4101")),
        ((0, 1), "node_rank3.sqlite", ("rank3_device0", "rank3_device1")),
    ],
)
def test_keys_of_several_processes(tmp_path: Path, devices: tuple[int, int], name: str, keys: tuple[str, ...]) -> None:
    process, thread = other(1)
    rows = [kernel(10, 20, 1, device=devices[0]), kernel(10, 30, 1, process=process, device=devices[1])]
    path = export(tmp_path / name, kernels=rows, calls=[call(1, 1), call(1, 1, thread=thread)])
    # THEN correlation ids are those of the process
    found = open_trace(path)
    assert found.ranks == keys
    assert [rank.kernels["launch"].to_list() for rank in found] == [[0], [0]]


def test_workers_are_called_as_the_engine_calls_them(tmp_path: Path) -> None:
    process, thread = other(1)
    tables = {
        "StringIds": WORDS,
        "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(10, 20, 1), kernel(10, 20, 1, process=process)],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [call(1, 1), call(1, 1, thread=thread)],
        "PROCESSES": [(PROCESS, 4100, "VLLM::Worker_DP0_TP1_EP1"), (process, 4101, "VLLM::Worker_DP1_TP0_EP2")],
    }
    path = write_tables(tmp_path / "a.sqlite", tables, {"PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT"})
    assert open_trace(path).ranks == ("dp0_tp1_ep1", "dp1_tp0_ep2")


def test_several_exports_with_the_same_devices_are_kept_apart(tmp_path: Path) -> None:
    # GIVEN two nodes, each with two processes on devices 0 and 1
    process, thread = other(1)
    rows = [kernel(10, 20, 1), kernel(10, 30, 1, process=process, device=1)]
    for node in ("node_a", "node_b"):
        export(tmp_path / f"{node}.sqlite", kernels=rows, calls=[call(1, 1), call(1, 1, thread=thread)])
    # THEN the keys tell the file
    assert open_trace(tmp_path).ranks == ("node_a_device0", "node_a_device1", "node_b_device0", "node_b_device1")


def test_a_front_end_without_launches_is_left_out(tmp_path: Path) -> None:
    _, thread = other(1)
    rows = [nvtx(0, 9, "tokenize", thread=thread)]
    rank = only(export(tmp_path / "a.sqlite", kernels=[kernel(10, 20, 1)], calls=[call(1, 1)], nvtx=rows))
    (finding,) = [finding for finding in rank.findings if finding.slug == "left-out"]
    assert finding.evidence["names"] == ["process 4101"]
    assert finding.evidence["ranges"] == 1


@pytest.mark.parametrize("script", ["exit 3", "echo NVIDIA Nsight Systems version 2021.1.1"])
def test_a_report_that_the_nsys_here_cannot_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    # GIVEN a report of 2023.4, and an nsys that is too old or fails
    program = tmp_path / "nsys"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("MOEPROF_NSYS", str(program))
    monkeypatch.setenv("MOEPROF_CACHE", str(tmp_path / "cache"))
    report = tmp_path / "run.nsys-rep"
    report.write_bytes(b"NVIDIA Tegra Profiler Report 2023@4@4@54-1")
    # THEN the error says so, and names the command
    with pytest.raises(UnsupportedFormatError) as caught:
        open_trace(report)
    assert "nsys export --type sqlite run.nsys-rep" in str(caught.value.hint)


def test_a_report_is_exported_by_the_nsys_here_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN an nsys that exports, and counts how often
    made = export(tmp_path / "made.db", kernels=[kernel(10, 20, 1)], calls=[call(1, 1)])
    program = tmp_path / "nsys"
    program.write_text(
        '#!/bin/sh\nif [ "$1" = --version ]; then echo "NVIDIA Nsight Systems version 2025.3.2.1"; exit; fi\n'
        f'echo "$@" >> {tmp_path}/log\nwhile [ "$1" != --output ]; do shift; done\ncp {made} "$2"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("MOEPROF_NSYS", str(program))
    monkeypatch.setenv("MOEPROF_CACHE", str(tmp_path / "cache"))
    report = tmp_path / "rank2.nsys-rep"
    report.write_bytes(b"NVIDIA Tegra Profiler Report 2025@3@2@1-1")
    # WHEN it is opened twice THEN it was exported once, and keeps its own name
    for _ in range(2):
        found = open_trace(report)
        assert (found.ranks, next(iter(found)).source) == (("rank2",), "rank2.nsys-rep")
    assert len((tmp_path / "log").read_text().splitlines()) == 1
