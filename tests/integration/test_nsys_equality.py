"""The same program under torch.profiler and under nsys has the same figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import moeprof
from tests.nsys_files import as_nsys
from tests.shared import ROOT

SAMPLES = sorted((ROOT / "samples" / "h200" / "base").glob("*.json.gz"))
#: What a report says about launches, pairs and times; sources and findings of the reader differ by nature.
SAME = ("iterations", "counts_over", "counts", "kernels", "pairs", "time_ns", "per_iteration_ns", "launch_unit")


def ranks(path: Path) -> list[dict[str, Any]]:
    result: Any = moeprof.report(moeprof.open_trace(path)).to_dict()
    found: list[dict[str, Any]] = result["ranks"]
    return found


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name[:12])
def test_a_capture_of_the_same_launches_gives_the_same_report(path: Path, tmp_path: Path) -> None:
    # GIVEN a real rank of vLLM, written as nsys records the same calls, kernels and annotations
    (torch,) = moeprof.open_trace(path)
    export = as_nsys(torch, tmp_path / f"{torch.key}.sqlite")
    # WHEN both are reported
    (theirs,), (ours,) = ranks(path), ranks(export)
    # THEN counts per iteration and phase, pairs and times are the same
    assert ours["rank"] == theirs["rank"]
    for key in SAME:
        assert ours[key] == theirs[key], key
    assert ours["coverage"] == theirs["coverage"]


def test_a_diff_across_profilers_of_the_same_launches_is_empty(tmp_path: Path) -> None:
    # GIVEN a folder of ranks under torch.profiler, and the same ranks as nsys exports
    for path in SAMPLES:
        (torch,) = moeprof.open_trace(path)
        as_nsys(torch, tmp_path / f"{torch.key}.sqlite")
    # WHEN they are compared
    diff = moeprof.diff(SAMPLES[0].parent, tmp_path)
    # THEN nothing changed
    assert diff.verdict == "unchanged"
    assert {row.change for row in diff.structure} == {"same"}
    assert diff.base.ranks == diff.candidate.ranks == len(SAMPLES)
