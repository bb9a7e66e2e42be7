"""Exports of Nsight Systems with values that were counted apart from this program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import moeprof
from moeprof.traces import schema
from moeprof.traces.trace import RankTrace
from tests.shared import shared

FOLDER = Path(__file__).parent / "nsys"
NVTX_ONLY = (
    "base_2022.4.sqlite.gz",
    "base_2023.4.sqlite.gz",
    "base_2023.4_pqtdir",
    "base_2023.4_arwdir",
)


def report(path: Path) -> dict[str, Any]:
    result: dict[str, Any] = moeprof.report(moeprof.open_trace(path)).to_dict()
    return result


def per_iteration(rank: dict[str, Any]) -> dict[str, int]:
    return {row["class"]: row["per_iteration"] for row in rank["counts"] if row["class"] != "other"}


def slugs(result: dict[str, Any]) -> set[str]:
    return {finding["slug"] for finding in result["findings"]}


def test_node_level_capture_gives_counts_and_times() -> None:
    # GIVEN 6 iterations of one graph of 40 kernels and three of 4
    result = report(FOLDER / "node.sqlite.gz")
    (rank,) = result["ranks"]
    # THEN each owns 52 kernels, and the times are those that SQL gives
    assert rank["iterations"] | {"counted": 6} == {
        "marker": "vllm", "total": 6, "decode": 6, "prefill": 0, "mixed": 0, "idle": 0, "partial": 0, "counted": 6,
    }  # fmt: skip
    assert sum(row["per_iteration"] for row in rank["counts"]) == 52
    assert all(row["constant"] for row in rank["counts"])
    assert rank["coverage"]["kernels"] == rank["coverage"]["linked"] == 312
    times = rank["time_ns"]
    assert (times["kernel_sum"], times["gpu_busy"], times["wall"]) == (4503360, 4503360, 4701531)
    assert rank["device"] == "NVIDIA H200"
    assert "graph-level-capture" not in slugs(result)


def test_graph_ids_and_launches_of_a_node_level_capture() -> None:
    # GIVEN two executable graphs, 2 and 5
    (rank,) = moeprof.open_trace(FOLDER / "node.sqlite.gz")
    # THEN kernels carry them, and every launch of a graph has its kernels
    assert dict(rank.kernels["graph_id"].value_counts().iter_rows()) == {2: 240, 5: 72}
    launches = rank.launches.filter("is_graph")
    assert launches["name"].unique().to_list() == ["cudaGraphLaunch"]
    assert dict(launches["kernel_rows"].value_counts().iter_rows()) == {40: 6, 4: 18}


def test_graph_level_capture_gives_times_and_refuses_counts() -> None:
    # GIVEN the same program with whole graphs recorded
    result = report(FOLDER / "graph.sqlite.gz")
    (rank,) = result["ranks"]
    # THEN times are those of the graph rows
    times = rank["time_ns"]
    assert (times["kernel_sum"], times["gpu_busy"], times["wall"]) == (4573244, 4573244, 4658972)
    assert rank["per_iteration_ns"]["gpu_busy"]["median"] > 0
    # AND what lies inside a graph is not told apart
    assert times["compute_busy"] is times["comm_busy"] is times["comm_exposed"] is None
    # AND there is no count: not of launches, not of pairs
    assert rank["coverage"]["kernels"] == 0
    assert rank["counts"] == rank["kernels"] == []
    assert set(rank["pairs"]["ag_rs"].values()) == set(rank["pairs"]["moe_gemm"].values()) == {None}
    (finding,) = [finding for finding in result["findings"] if finding["slug"] == "graph-level-capture"]
    assert finding["evidence"]["graph_replays"] == 24
    assert "--cuda-graph-trace=node" in finding["message"]
    assert "graph-launches-without-kernels" not in slugs(result)


def test_a_graph_level_side_is_not_comparable() -> None:
    diff = moeprof.diff(FOLDER / "node.sqlite.gz", FOLDER / "graph.sqlite.gz")
    assert diff.verdict == "not_comparable"


@pytest.mark.parametrize("name", NVTX_ONLY)
def test_ranges_stand_for_launches_where_nothing_else_was_recorded(name: str) -> None:
    # GIVEN two workers, and a parent that marks no step
    result = report(FOLDER / name)
    # THEN the workers are the ranks, with 3 layers of gather, two GEMMs and scatter an iteration
    assert [rank["iterations"]["total"] for rank in result["ranks"]] == [20, 20]
    for rank in result["ranks"]:
        assert per_iteration(rank) == {"all_gather": 3, "reduce_scatter": 3, "moe_gemm": 6}
        assert rank["pairs"]["ag_rs"]["per_iteration"] == rank["pairs"]["moe_gemm"]["per_iteration"] == 3
        assert set(rank["time_ns"].values()) == {None}
    assert {"no-gpu-activity", "left-out"} <= slugs(result)


def test_the_fused_arm_has_other_counts() -> None:
    for rank in report(FOLDER / "mega_2023.4.sqlite.gz")["ranks"]:
        assert per_iteration(rank) == {"moe_gemm": 3}


def test_all_encodings_of_a_report_hold_the_same() -> None:
    # GIVEN one report as SQLite, as Parquet and as Arrow
    whole, *others = (moeprof.open_trace(FOLDER / f"base_2023.4{end}") for end in (".sqlite.gz", "_pqtdir", "_arwdir"))
    for other in others:
        assert other.ranks == whole.ranks
        for rank in whole:
            for table in ("events", "markers", "tracks", "kernels", "launches"):
                mine = getattr(rank, table).cast({pl.Enum: pl.String}) if table == "events" else getattr(rank, table)
                theirs = getattr(other[rank.key], table)
                theirs = theirs.cast({pl.Enum: pl.String}) if table == "events" else theirs
                assert mine.equals(theirs), table


def test_every_row_of_nvtx_is_counted() -> None:
    counts = next(iter(moeprof.open_trace(FOLDER / "base_2022.4.sqlite.gz"))).event_counts
    assert counts == {
        "nvtx category": 6, "nvtx mark": 40, "nvtx push/pop range": 610, "nvtx start/end range": 40,
        "nvtx domain create": 5, "nvtx domain destroy": 7,
    }  # fmt: skip


def _categories(rank: RankTrace) -> dict[str, int]:
    return dict(rank.events["category"].cast(pl.String).value_counts().iter_rows())


def test_domains_are_told_by_process() -> None:
    # GIVEN ids of domains that mean another domain in each process
    for rank in moeprof.open_trace(FOLDER / "base_2023.4.sqlite.gz"):
        # THEN the iterations are in vllm's, the layers in moeprof's, and `sample` in none
        assert _categories(rank) == {"nvtx": 20, "nvtx:vllm": 40, "nvtx:moeprof": 280}


def test_nothing_of_the_environment_gets_into_a_result() -> None:
    # GIVEN exports that hold the environment of the server, a token in it
    for path in sorted(FOLDER.glob("*.sqlite.gz")):
        trace = moeprof.open_trace(path)
        text = json.dumps(moeprof.report(trace).to_dict())
        for rank in trace:
            text += repr(rank.metadata) + rank.tracks.write_json()
            for table in (rank.events, rank.kernels, rank.launches):
                text += " ".join(schema.strings(table, "name"))
        # THEN neither it nor a path of the machine is in any table
        for secret in ("hf_dummy", "HF_TOKEN", "/srv/demo", "/usr/bin", "PATH="):
            assert secret not in text, (path, secret)


# file: kernels, memcpy and memset rows, host calls, linked GPU rows, orphans, kernel sum, GPU busy (all devices), wall
PUBLIC = {
    "h100_2gpu_1s": (3442, 926, 5796, 2092, 2276, 44829522, 1925700952, 969447605),
    "healthy_1pct": (400, 0, 400, 400, 0, 400000000, 400000000, 403990000),
    "healthy_judged_1pct": (20, 0, 20, 20, 0, 4000000000, 4000000000, 4038000000),
    "mfu_2gpu_after": (3587, 1146, 6682, 4717, 16, 488835406, 494109503, 299272477),
    "mfu_2gpu_before": (4010, 1289, 7466, 5268, 31, 535200650, 541093703, 299877006),
}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_exports_give_their_golden_values(name: str) -> None:
    path = shared("traces", "public", "nsys-ai", f"{name}.sqlite.gz")
    # WHEN a public export is read
    trace = moeprof.open_trace(path)
    ranks: Any = moeprof.report(trace).to_dict()["ranks"]
    # THEN every row is there, and every link and time is that of SQL
    rows = pl.concat([rank.kernels.drop("name") for rank in trace])
    assert not sum(rank.invalid.height for rank in trace)
    kernels = rows.filter(pl.col("activity") == "kernel").height
    assert (
        kernels,
        rows.height - kernels,
        sum(rank.launches.height for rank in trace),
        int(rows["launch"].is_not_null().sum()),
        int(rows["launch"].is_null().sum()),
        sum(rank["time_ns"]["kernel_sum"] for rank in ranks),
        sum(rank["time_ns"]["gpu_busy"] for rank in ranks),
        int(str(rows["end_ns"].max())) - int(str(rows["start_ns"].min())),
    ) == PUBLIC[name]


def test_two_processes_on_two_devices_are_two_ranks() -> None:
    path = shared("traces", "public", "nsys-ai", "mfu_2gpu_after.sqlite.gz")
    assert moeprof.open_trace(path).ranks == ("device0", "device1")
