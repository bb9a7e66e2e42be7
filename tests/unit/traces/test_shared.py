"""The shared traces: what this layer decides of their golden values."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from moeprof.errors import (
    DuplicateRankError,
    ManyDocumentsError,
    TraceEmptyError,
    TraceMalformedError,
)
from moeprof.traces.open import open_trace
from moeprof.traces.trace import RankTrace, Trace

REFUSED = {
    "01_unescaped_quote.json": (TraceMalformedError, 8),
    "02_backslash_path.json": (TraceMalformedError, 8),
    "13_zero_bytes.json": (TraceEmptyError, None),
    "20_two_documents.json.gz": (ManyDocumentsError, 17),
    "56_duplicate_ranks": (DuplicateRankError, None),
}


def kernels(found: RankTrace) -> pl.DataFrame:
    return found.kernels.filter(pl.col("activity") == "kernel")


def kernel_sum(found: Trace) -> int:
    return sum(int(kernels(rank)["duration_ns"].sum()) for rank in found)


def case(odd: Path, number: str) -> Path:
    (path,) = odd.glob(f"{number}_*")
    return path


def test_odd_files_give_their_kernels_sums_and_ranks(shared_traces: Path) -> None:
    # GIVEN every odd case that is a Kineto file and must or may be accepted
    odd = shared_traces / "odd"
    checked = 0
    for entry in json.loads((odd / "expect.json").read_text()):
        name, values = entry["file"].rstrip("/"), entry["values"]
        if name in REFUSED:
            continue
        # WHEN it is opened
        found = open_trace(odd / name)
        # THEN kernels, their sum in ns, links, invalid rows and ranks are as written down
        if "kernels" in values:
            assert sum(kernels(rank).height for rank in found) == values["kernels"], name
        if values.get("kernel_sum_us") is not None:
            assert kernel_sum(found) == int(values["kernel_sum_us"].replace(".", "")), name
        assert sum(rank.invalid.height for rank in found) == values.get("invalid", 0), name
        if "linked_kernels" in values:
            assert sum(kernels(rank)["launch"].is_not_null().sum() for rank in found) == values["linked_kernels"], name
        if "ranks" in values:
            assert len(found) == values["ranks"], name
        if "rank" in values:
            assert found.ranks == ((None,) if values["rank"] is None else (f"rank{values['rank']}",)), name
        if "instant_events" in values:
            assert sum(rank.events.height for rank in found) == values["instant_events"], name
        if "streams" in values:
            assert [rank.kernels.n_unique(["device", "stream"]) for rank in found] == [values["streams"]], name
        if "host_launches" in values:
            assert [rank.launches.height for rank in found] == [values["host_launches"]], name
        checked += 1
    assert checked == 45


@pytest.mark.parametrize("name", REFUSED)
def test_odd_files_that_are_refused(shared_traces: Path, name: str) -> None:
    error, line = REFUSED[name]
    with pytest.raises(error) as caught:
        open_trace(shared_traces / "odd" / name)
    assert caught.value.line == line


@pytest.mark.parametrize(("number", "dropped"), [("01", 1), ("02", 2)])
def test_odd_files_that_recover(shared_traces: Path, number: str, dropped: int) -> None:
    found = open_trace(case(shared_traces / "odd", number), recover=True)["rank0"]
    assert found.partial
    assert kernels(found).height == 3
    assert [(f.slug, f.evidence["count"], f.evidence["first_line"]) for f in found.findings] == [
        ("dropped-event", dropped, 8)
    ]


@pytest.mark.parametrize(
    ("number", "slug", "count"),
    [
        ("04", "control-character", 1),
        ("05", "invalid-utf8", 2),
        ("07", "non-finite-number", 2),
        ("08", "trailing-comma", 1),
        ("10", "missing-end-mark", 1),
    ],
)
def test_odd_files_tell_what_was_odd(shared_traces: Path, number: str, slug: str, count: int) -> None:
    (found,) = open_trace(case(shared_traces / "odd", number))
    assert [(f.slug, f.evidence["count"]) for f in found.findings] == [(slug, count)]


def test_two_wide_thread_ids_are_two_threads(shared_traces: Path) -> None:
    assert open_trace(case(shared_traces / "odd", "29"))["rank0"].tracks.height == 2


def test_base_times_of_two_ranks_are_kept_apart(shared_traces: Path) -> None:
    found = open_trace(case(shared_traces / "odd", "28"))
    first, second = (rank.kernels["start_ns"][0] + rank.metadata.base_time_ns for rank in found)
    assert second - first == 10_000


def test_the_capture_sidecar_is_named_and_left_out(shared_traces: Path) -> None:
    found = open_trace(case(shared_traces / "odd", "59"))
    assert [f.evidence["names"] for f in found.findings if f.slug == "left-out"] == [["capture_traces/"]]


def test_exports_of_one_capture_beside_each_other_are_read_once(shared_traces: Path) -> None:
    # GIVEN a folder with SQLite, Parquet, Arrow and the report of three captures of two workers
    found = open_trace(shared_traces / "nsys" / "cpu")
    # THEN each capture is read once, and the other forms are named
    assert len(found) == 8
    reasons = {str(f.evidence["reason"]) for f in found.findings if f.slug == "left-out"}
    assert "the same capture as base_2023.4.sqlite.gz" in reasons


def test_a_report_is_read_through_the_export_beside_it(shared_traces: Path) -> None:
    report = shared_traces / "nsys" / "cpu" / "base_2022.4.nsys-rep"
    assert open_trace(report).ranks == open_trace(report.with_name("base_2022.4.sqlite.gz")).ranks


# file: rank key, world size, events, kernels, graph launches, graph kernels, orphans (of all GPU rows), kernel sum
PUBLIC = {
    "hta/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz": (None, None, 220, 14, 0, 0, 0, 110881),
    "hta/cpu_only/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz": ("rank34", 300, 30, 0, 0, 0, 0, 0),
    "hta/distributed_info_unavailable/distributed_info_not_found.json.gz": (None, None, 2467, 0, 0, 0, 0, 0),
    "hta/large_integer_trace/rank-70.Mar_25_20_48_12.2861.pt.trace.json.gz": ("rank70", None, 2, 1, 0, 0, 1, 50000),
    "hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz": ("rank0", 1, 68692, 4350, 0, 0, 0, 468153602),
    "hta/rank_unavailable/rank_not_found.json.gz": (None, None, 2467, 0, 0, 0, 0, 0),
    "hta/trace_diff/control/control.json.gz": ("rank3", 8, 109123, 8568, 0, 0, 0, 446813000),
    "hta/trace_diff/test/test.json.gz": ("rank1", 2, 105167, 9876, 12, 4464, 614, 801858000),
    "hta/with_gpu_user_annotation/step_based_trace_2543932.json.gz": ("rank0", None, 1344, 130, 0, 0, 0, 290000),
    "kineto/schema_2021/worker0.1623143089861.pt.trace.json.gz": (None, None, 75718, 8772, 0, 0, 0, 591532000),
    "tracelens/b200/eager_trace.json.gz": ("rank0", 8, 24656, 768, 0, 0, 0, 10862916),
    "tracelens/deepseek_r1_dense/B300/1782843274.7730265-TP-0-DECODE.trace.json.gz": ("tp0", 1, 3387, 393, 1, 356, 0, 4125258),
    "tracelens/deepseek_r1_dense/MI300/1782841132.2905657-TP-0-DECODE.trace.json.gz": ("tp0", 1, 3280, 386, 1, 356, 0, 8266874),
    "tracelens/moe_fused_vs_unfused/trace1.json.gz": (None, None, 22, 4, 0, 0, 0, 1160000),
    "tracelens/moe_fused_vs_unfused/trace2.json.gz": (None, None, 7, 1, 0, 0, 0, 800000),
    "tracelens/qwen3_30b_a3b/B300/1782799835.6885648-TP-0-DECODE.trace.json.gz": ("tp0", 1, 4033, 713, 1, 676, 0, 6290304),
    "tracelens/qwen3_30b_a3b/MI300/1782859605.7198358-TP-0-DECODE.trace.json.gz": ("tp0", 1, 4112, 802, 1, 772, 0, 10896105),
    "tracelens/vllm_decode_full/graph_execution.json.gz": ("rank0", 1, 1993, 425, 1, 421, 0, 10674517),
    "tracelens/vllm_prefilldecode_piecewise/graph_execution.json.gz": ("rank0", 1, 19289, 413, 25, 361, 0, 156008506),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLIC)
def test_public_files(shared_traces: Path, name: str) -> None:
    # GIVEN a file of a public repository
    found = open_trace(shared_traces / "public" / name)
    (rank,) = found
    rows = kernels(rank)
    on_graph = rows.join(rank.launches.filter("is_graph"), on="launch", how="semi")
    # THEN its golden values hold
    assert (
        rank.key,
        rank.metadata.world_size,
        sum(rank.event_counts.values()),
        rows.height,
        rank.launches["is_graph"].sum(),
        on_graph.height,
        rank.kernels["launch"].null_count(),
        kernel_sum(found),
    ) == PUBLIC[name]
    assert rank.invalid.height == 0


def test_eight_ranks_keyed_by_their_metadata(shared_traces: Path) -> None:
    # GIVEN files named worker0_... to worker7_...
    found = open_trace(shared_traces / "public/param/dlrm_kineto")
    assert found.ranks == tuple(f"rank{i}" for i in range(8))
    assert [kernels(rank).height for rank in found] == [245, 310, 246, 315, 251, 245, 246, 246]
    assert [kernels(rank)["launch"].null_count() for rank in found] == [0, 64, 0, 64, 0, 0, 0, 0]
    assert found.findings == ()


def test_two_windows_of_one_rank_are_refused(shared_traces: Path) -> None:
    base = shared_traces / "public/tracelens"
    with pytest.raises(DuplicateRankError, match="TP-0"):
        open_trace(f"{base}/qwen3_30b_a3b/B300,{base}/qwen3_30b_a3b/MI300")


H200 = {
    "base": (91118, 36387, 285, 88, 35684, [163730073, 180980016]),
    "triton": (79468, 32202, 234, 72, 31626, [157931779, 131310173]),
    "mega_derived": (78182, 29919, 285, 88, 29216, [153423985, 169144708]),
}


@pytest.mark.slow
@pytest.mark.parametrize("arm", H200)
def test_h200(shared_traces: Path, arm: str) -> None:
    # GIVEN two ranks measured on H200
    found = open_trace(shared_traces / "h200" / arm)
    events, kernel_rows, memcpys, graphs, graph_kernels, sums = H200[arm]
    assert found.ranks == ("dp0_pp0_tp0_dcp0_ep0_rank0", "dp1_pp0_tp0_dcp0_ep1_rank0")
    assert [rank.metadata.distributed_rank for rank in found] == [0, 1]
    for rank, total in zip(found, sums, strict=True):
        # THEN each has its golden counts, and no orphan
        assert rank.events.height == events
        assert rank.kernels["activity"].value_counts().sort("activity").rows() == [
            ("kernel", kernel_rows),
            ("memcpy", memcpys),
        ]
        assert rank.kernels["launch"].null_count() == 0
        assert rank.launches["is_graph"].sum() == graphs
        assert rank.launches.filter("is_graph")["kernel_rows"].sum() == graph_kernels
        assert rank.launches.filter("is_kernel_launch", kernel_rows=0).height == 0
        assert kernels(rank)["duration_ns"].sum() == total
        assert kernels(rank).n_unique(["device", "stream"]) <= 90
        assert rank.findings == ()
    assert found.findings == ()


@pytest.mark.slow
def test_cpu_only_ranks_beside_a_front_end_trace(shared_traces: Path) -> None:
    found = open_trace(shared_traces / "cpu/base_idle")
    for rank in found:
        assert dict(rank.event_counts) == {"cpu_op": 169991, "user_annotation": 1427, "": 18, "Trace": 1}
        assert rank.kernels.height == 0
        assert rank.markers.filter(pl.col("name").str.starts_with("execute_context")).height == 50
    assert {f.evidence["reason"]: len(f.evidence["names"]) for f in found.findings} == {  # type: ignore[arg-type]  # evidence is JSON
        "no trace by its name": 2,
        "trace of the API server": 2,
    }


@pytest.mark.slow
def test_bytes_that_are_not_utf8_change_names_only(shared_traces: Path) -> None:
    # GIVEN the same file clean and with six bad names, five of them in events that are not stored
    (clean,) = open_trace(shared_traces / "badutf8/clean", categories=("*",))
    (bad,) = open_trace(shared_traces / "badutf8/bad", categories=("*",))
    assert bad.events.height == clean.events.height == 7603
    assert bad.events.drop("name", "ph", "category").equals(clean.events.drop("name", "ph", "category"))
    assert [
        (f.slug, f.evidence["count"], f.evidence["first_byte"], f.evidence["first_line"]) for f in bad.findings
    ] == [("invalid-utf8", 6, 122674, 6288)]
    names = bad.events["name"].unique().cast(pl.String)
    assert names.str.count_matches("\ufffd").sum() == 8
