"""Structures of real captures: how many layers of which kind."""

from __future__ import annotations

import pytest

from moeprof.analyzers.layers.changes import layer_changes
from moeprof.analyzers.layers.results import LayerRow
from moeprof.api import report
from tests.shared import ROOT, shared

LAYERS = {
    "public/tracelens/vllm_decode_full/graph_execution.json.gz": ("target", 24, "moe_layer"),
    "public/tracelens/vllm_prefilldecode_piecewise/graph_execution.json.gz": ("target", 24, "moe_layer"),
    "public/tracelens/b200/eager_trace.json.gz": ("target", 36, "moe_layer"),
    "public/tracelens/qwen3_30b_a3b/B300": ("target", 48, "moe_layer"),
    "public/tracelens/qwen3_30b_a3b/MI300": ("target", 48, "moe_layer"),
    "public/tracelens/deepseek_r1_dense/B300": ("target", 32, "dense_layer"),
    "h200/base": ("target", 42, "moe_layer"),
    "h200/triton": ("target", 42, "moe_layer"),
    "cpu/base": ("target", 3, "moe_layer"),
}
TRAINING = ("public/hta/trace_diff/control", "public/hta/ns_resolution_trace", "public/param/dlrm_kineto")


def shape(rows: tuple[LayerRow, ...]) -> list[tuple[str, int, str]]:
    return [(row.phase, row.repeat, row.role) for row in rows if row.repeat > 1 or row.role != "other"]


@pytest.mark.parametrize("path", sorted(LAYERS))
def test_the_layers_of_public_and_own_captures(path: str) -> None:
    # GIVEN a capture of a model whose layers are known WHEN folded THEN they are there, on every rank
    for rank in report(shared("traces", path)).ranks:
        assert LAYERS[path] in shape(rank.layers)


@pytest.mark.parametrize(("arm", "launches"), [("base", 30), ("triton", 33)])
def test_the_samples_of_an_h200(arm: str, launches: int) -> None:
    # GIVEN two ranks of GLM-4-MoE with three drafts WHEN folded
    for rank in report(ROOT / "samples" / "h200" / arm).ranks:
        # THEN a dense layer, 42 alike and 3 passes stand there
        assert shape(rank.layers) == [("target", 1, "dense_layer"), ("target", 42, "moe_layer"), ("draft", 3, "pass")]
        layers = rank.layers[2]
        assert (len(layers.sequence), layers.alike, layers.launches) == (launches, 42, 42 * launches - 1)
        assert [(one.at, one.joint) for one in layers.variants] == [((41,), True)]


def test_a_diff_of_the_samples_says_it_in_one_sentence() -> None:
    base, mega = (report(ROOT / "samples" / "h200" / arm).ranks[0].layers for arm in ("base", "mega_derived"))
    said = [change.sentence for change in layer_changes(base, mega) if change.sentence]
    assert [line.split("; kernel busy")[0] for line in said] == [
        "42 target MoE layers: AG + 2 GEMM + RS and 4 helpers replaced by 1 fused launch"
    ]


@pytest.mark.parametrize("path", TRAINING)
def test_training_loses_no_launch(path: str) -> None:
    # GIVEN a training step WHEN folded THEN its parts hold all launches, whatever repeats in it
    for rank in report(shared("traces", path)).ranks:
        for phase in ("target", "draft", "sample"):
            rows = [row for row in rank.layers if row.phase == phase]
            total = sum(row.launches for row in rows)
            assert all(row.repeat * len(row.sequence) >= 1 for row in rows)
            if rows:
                assert total == sum(row.per_iteration or row.total for row in rank.counts if row.phase == phase)
