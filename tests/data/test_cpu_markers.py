"""Real traces with our markers and vLLM's: phases, pairs and idle batches, with and without the markers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import moeprof

FOLDER = Path(__file__).parent / "cpu_markers"
#: Launches per iteration of the classes that only a model's layers launch: (target, draft).
LAYERS = {
    "base": {
        "moe_gemm": (3, 3),
        "attention": (4, 3),
        "kv_cache": (4, 3),
        "all_gather": (9, 9),
        "reduce_scatter": (3, 3),
    },
    "mega": {
        "moe_fused": (3, 0),
        "moe_gemm": (0, 3),
        "attention": (4, 3),
        "kv_cache": (4, 3),
        "all_gather": (0, 9),
        "reduce_scatter": (0, 3),
    },
}
RANKS = ["dp0_pp0_tp0_dcp0_ep0_rank0", "dp1_pp0_tp0_dcp0_ep1_rank0"]


def counts(rank: dict[str, Any]) -> dict[tuple[str, str], int]:
    """Return launches per iteration by class and phase."""
    return {(row["class"], row["phase"]): row["per_iteration"] for row in rank["counts"]}


def layers(rank: dict[str, Any], arm: str) -> dict[str, tuple[int, int]]:
    """Return the counts of `LAYERS`; what sampling launched of them comes as a third number."""
    found = counts(rank)
    rows = {}
    for name in LAYERS[arm]:
        target, draft, sample = (found.get((name, phase), 0) for phase in ("target", "draft", "sample"))
        rows[name] = (target, draft) if sample == 0 else (target, draft, sample)
    return rows  # type: ignore[return-value]


def reported(path: Path, family: str | None = None) -> list[dict[str, Any]]:
    """Return the ranks of a report."""
    ranks: list[dict[str, Any]] = moeprof.report(path, marker_family=family).to_dict()["ranks"]  # type: ignore[assignment]
    return ranks


@pytest.mark.parametrize("arm", ["base", "mega"])
def test_our_markers_give_the_structure_of_an_arm(arm: str) -> None:
    # GIVEN two iterations of each rank
    # WHEN they are reported
    ranks = reported(FOLDER / arm)
    # THEN our markers are the ones in use, both iterations are whole decodes, and each launch is in its phase
    assert [rank["rank"] for rank in ranks] == RANKS
    for rank in ranks:
        iterations = rank["iterations"]
        assert [iterations[key] for key in ("marker", "total", "decode", "partial")] == ["moeprof", 2, 2, 0]
        assert layers(rank, arm) == LAYERS[arm]
        pairs = rank["pairs"]["ag_rs"]
        expected = (3, 3, 0, 6) if arm == "base" else (0, 3, 0, 3)
        assert tuple(pairs[key] for key in ("target", "draft", "sample", "per_iteration")) == expected
        assert (pairs["unmatched_ag"], pairs["unmatched_rs"], pairs["constant"]) == (0, 0, True)


@pytest.mark.parametrize("arm", ["base", "mega"])
def test_vllms_own_markers_give_the_same_counts(arm: str) -> None:
    # GIVEN the same traces
    # WHEN iterations are taken from vLLM's markers instead
    ours, theirs = reported(FOLDER / arm), reported(FOLDER / arm, "vllm")
    # THEN every class has the same count in every phase, and so have the pairs (a rank whose last iteration has fewer launches
    # than the other is left with one iteration, as vLLM's marker does not tell where a step ends)
    for a, b in zip(ours, theirs, strict=True):
        assert b["iterations"]["marker"] == "vllm"
        constant = {(row["class"], row["phase"]) for row in a["counts"] if row["constant"]}
        assert {key: value for key, value in counts(a).items() if key in constant} == {
            key: value for key, value in counts(b).items() if key in constant
        }
        for key in ("target", "draft", "sample", "per_iteration", "unmatched_ag", "unmatched_rs"):
            assert a["pairs"]["ag_rs"][key] == b["pairs"]["ag_rs"][key]


@pytest.mark.parametrize("arm", ["base", "mega"])
def test_model_layers_are_counted_alike_where_no_marker_of_ours_is(arm: str, tmp_path: Path) -> None:
    # GIVEN the same traces as a server without the plugin would have written them
    for file in sorted((FOLDER / arm).glob("*.gz")):
        trace = json.loads(gzip.decompress(file.read_bytes()))
        before = len(trace["traceEvents"])
        trace["traceEvents"] = [row for row in trace["traceEvents"] if not row.get("name", "").startswith("moeprof.")]
        assert before - len(trace["traceEvents"]) == 2 * 6  # iteration, target, sample, three drafts
        (tmp_path / file.name.removesuffix(".gz")).write_text(json.dumps(trace), encoding="utf-8")
    # WHEN they are reported
    ranks = reported(tmp_path)
    # THEN what layers launch is the same by phase; what prepares and samples drafts cannot be told from sampling then
    assert [rank["iterations"]["marker"] for rank in ranks] == ["vllm", "vllm"]
    for rank in ranks:
        assert layers(rank, arm) == LAYERS[arm]


def test_dummy_batches_are_idle_iterations() -> None:
    # GIVEN a rank that had no request, in which vLLM itself marks nothing
    # WHEN it is reported
    [rank] = reported(FOLDER / "idle")
    # THEN its two iterations are idle, none is counted, and all that its thread launched belongs to them
    iterations = rank["iterations"]
    assert [iterations[key] for key in ("marker", "total", "idle", "decode", "partial")] == ["moeprof", 2, 2, 0, 0]
    assert rank["counts_over"] is None
    trace = moeprof.open_trace(FOLDER / "idle")[str(rank["rank"])]
    names = (
        trace.markers.filter(trace.markers["name"].cast(str).str.starts_with("moeprof."))["name"].cast(str).to_list()
    )
    step = ["moeprof.target", "moeprof.draft#0", "moeprof.draft#1", "moeprof.draft#2"]
    assert sorted(names) == sorted([*step, *step, *(name for name in names if name.endswith("[idle]"))])
    assert len(names) == 10


def test_the_fused_operator_takes_three_pairs_away() -> None:
    # GIVEN both arms
    # WHEN they are compared
    result: dict[str, Any] = moeprof.diff(FOLDER / "base", FOLDER / "mega").to_dict()
    # THEN three pairs and three GEMM launches of the target became three fused launches
    assert (result["pairs"]["ag_rs"]["base"], result["pairs"]["ag_rs"]["candidate"]) == (6, 3)
    rows = {(row["class"], row["phase"]): (row["base"], row["candidate"]) for row in result["structure"]}
    assert rows["moe_fused", "target"] == (0, 3)
    assert rows["moe_gemm", "target"] == (3, 0)
    assert rows["moe_gemm", "draft"] == (3, 3)
