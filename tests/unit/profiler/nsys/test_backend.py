from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from moeprof.config.schema import Arm, Expect, Profiler, Server, Window
from moeprof.errors import ConfigError, WindowFailedError
from moeprof.profiler.backends.vllm import VllmBackend
from moeprof.profiler.find_backend import find_backend
from moeprof.profiler.gates import traces_complete
from moeprof.profiler.nsys.backend import NsysBackend
from moeprof.profiler.nsys.program import Nsys
from moeprof.profiler.window import WindowResult

NSYS = Nsys("/opt/nsys", (2025, 3), None, finds_importer=True)


def arm(**env: str) -> Arm:
    return Arm("base", ("--moe-backend", "humming"), env, Server(model="m"), Expect())


def backend(**changes: object) -> NsysBackend:
    profiler = Profiler(tool="nsys", **changes)  # type: ignore[arg-type]
    return NsysBackend(VllmBackend("nsys"), profiler, NSYS, "s1")


def test_the_server_is_launched_by_nsys_with_spawned_workers(tmp_path: Path) -> None:
    # GIVEN an arm WHEN its command line is composed for nsys
    line = backend(cuda_graphs="graph").command(arm(), port=9, traces=tmp_path, window=Window(), inherited={})
    # THEN nsys launches vLLM, which only marks its steps, and no torch profiler can come in between
    assert line.argv[:6] == (
        *("/opt/nsys", "launch", "--session-new=s1", "--trace=cuda,nvtx", "--cuda-graph-trace=graph"),
        "vllm",
    )
    assert json.loads(line.argv[line.argv.index("--profiler-config") + 1]) == {"profiler": "cuda"}
    assert line.env["VLLM_WORKER_MULTIPROC_METHOD"] == "spawn"
    # AND an arm that says otherwise is not overruled
    forked = backend().command(arm(VLLM_WORKER_MULTIPROC_METHOD="fork"), port=9, traces=tmp_path, window=Window())
    assert forked.env["VLLM_WORKER_MULTIPROC_METHOD"] == "fork"


def test_a_dry_run_needs_no_nsys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # GIVEN a machine without nsys
    monkeypatch.setattr("moeprof.nsight._PLACES", {"nsys": ()})
    monkeypatch.setenv("PATH", str(tmp_path))
    nsys = Profiler(tool="nsys")
    # WHEN only the command line is wanted THEN it is composed
    line = find_backend(arm(), nsys, dry=True).command(arm(), port=9, traces=tmp_path, window=Window())
    assert line.argv[:3] == ("nsys", "launch", "--session-new=moeprof")
    # AND a capture says at once that it cannot be
    with pytest.raises(ConfigError, match="no nsys was found"):
        find_backend(arm(), nsys)


def test_a_program_that_runs_to_its_end_is_not_recorded() -> None:
    # GIVEN an arm of the backend command WHEN nsys is to record it THEN that is refused
    with pytest.raises(ConfigError, match="profiler nsys does not record"):
        find_backend(Arm("k", (), {}, Server(backend="command", command=("x",)), Expect()), Profiler(tool="nsys"))


def recorded(tmp_path: Path, *tables: str) -> NsysBackend:
    """A backend whose window is closed, with one row in each of these tables."""
    subject = backend()
    subject.command(arm(), port=9, traces=tmp_path, window=Window())
    with closing(sqlite3.connect(tmp_path / "nsys_node.sqlite")) as base, base:
        for table in tables:
            base.execute(f"CREATE TABLE {table} (start INTEGER)")
            base.execute(f"INSERT INTO {table} VALUES (1)")
    return subject


def test_a_recording_with_kernels_is_taken(tmp_path: Path) -> None:
    # GIVEN a recording with kernels WHEN collected THEN it is the window's file
    subject = recorded(tmp_path, "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME")
    assert subject.collect() == (tmp_path / "nsys_node.sqlite",)


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ((), "neither kernels nor calls nor ranges"),
        (("CUPTI_ACTIVITY_KIND_RUNTIME",), "1 CUDA calls and not one kernel"),
    ],
)
def test_an_empty_recording_is_a_failed_window(tmp_path: Path, tables: tuple[str, ...], said: str) -> None:
    # GIVEN a recording without the server's kernels WHEN collected THEN the window has failed
    with pytest.raises(WindowFailedError, match=said):
        recorded(tmp_path, *tables).collect()


@pytest.mark.parametrize(
    ("iterations", "ranks", "expected"),
    [({"0": 9, "1": 9}, 2, "pass"), ({"0": 9}, 2, "fail"), ({"0": 9, "1": 8}, 2, "fail"), ({}, 2, "fail")],
)
def test_one_file_of_all_ranks_is_judged_by_the_ranks_in_it(
    iterations: dict[str, int], ranks: int, expected: str
) -> None:
    # GIVEN a window with one file, which holds the ranks of a server
    window = WindowResult(0.0, 1.0, 8, 8, 20, "iterations", ("nsys_node.sqlite",))
    # WHEN judged THEN every rank must be in it, with as many iterations
    assert traces_complete(window, iterations, ranks, None, one_recording=True)[0] == expected
