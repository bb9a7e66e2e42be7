"""A real GPU trace with our markers and vLLM's, V2 runner and CUDA graphs: counts, phases and pairs are the same by both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import moeprof

FOLDER = Path(__file__).parent / "h200_markers"


def rank(family: str) -> Any:
    return moeprof.report(FOLDER, marker_family=family).ranks[0]


@pytest.mark.parametrize("family", ["moeprof", "vllm"])
def test_layers_and_drafts_are_counted_by_either_family(family: str) -> None:
    # GIVEN three decode iterations of 7 MoE layers and 3 passes of the MTP layer, without any other rank
    seen = rank(family)
    # WHEN they are counted THEN each layer has its pair of expert GEMMs, and there is no dispatch to pair
    assert (seen.iterations.marker, seen.iterations.decode, seen.iterations.partial) == (family, 3, 0)
    gemm = seen.pairs.moe_gemm
    assert (gemm.target, gemm.draft, gemm.per_iteration, gemm.constant, gemm.unmatched) == (7, 3, 10, True, 0)
    assert seen.pairs.ag_rs.per_iteration == 0
    # AND launches divide into phases: 257 of the target, 374 of the drafts, 16 of sampling
    phases = {
        phase: sum(row.per_iteration or 0 for row in seen.counts if row.phase == phase)
        for phase in ("target", "draft", "sample")
    }
    assert phases == {"target": 257, "draft": 374, "sample": 16}
    # AND the one attention layer of each target layer is there: 8 with their helpers, 3 in the drafts
    attention = {row.phase: row.per_iteration for row in seen.counts if row.class_ == "kv_cache"}
    assert attention == {"target": 8, "draft": 3}


def test_both_families_agree_row_by_row() -> None:
    # GIVEN the same trace by both families WHEN all counts are compared THEN they are equal
    def rows(family: str) -> list[tuple[str, str, int | None]]:
        return [(row.class_, row.phase, row.per_iteration) for row in rank(family).counts]

    assert rows("moeprof") == rows("vllm")
