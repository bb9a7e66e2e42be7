"""What moeprof kernels left in the store is part of a diff of the same arms."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import moeprof
from moeprof.analyzers.classify import load_classifier
from moeprof.analyzers.kernel_metrics.arm import Measured, arm_kernels
from moeprof.analyzers.kernel_metrics.compare import gather
from moeprof.errors import ManifestError
from moeprof.store.kernel_results import keep, newest
from moeprof.traces.ncu.open import open_kernel_metrics

ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A copy of the sample store, whose arms are base and mega."""
    return Path(shutil.copytree(ROOT / "samples" / "store", tmp_path / "store"))


def measured(store: Path, arm: str, factor: float = 1.0) -> Path:
    """Keep a real report under an arm's name, every duration times a factor."""
    kernels = open_kernel_metrics(ROOT / "samples" / "kernels" / "torch.csv").kernels
    kernels = kernels.with_columns(kernels["duration_ns"] * factor)
    found, _ = arm_kernels(Measured(arm, "test", kernels), load_classifier(None))
    return keep(store, arm, gather([found]).to_dict())


def test_arms_that_were_both_measured_are_compared_batch_by_batch(store: Path) -> None:
    # GIVEN both arms measured, the candidate twice: the newest counts
    measured(store, "base")
    measured(store, "mega", 9.0)
    measured(store, "mega", 0.5)
    # WHEN they are compared
    rows = moeprof.diff("base", "mega", store=store).kernel_metrics
    # THEN each batch has both sums, halved
    figures = [(batch, figure) for batch in (16, 64) for figure in ("gemm_sum_ns", "kernel_sum_ns")]
    assert [(row.batch, row.figure) for row in rows] == figures
    assert [row.ratio for row in rows] == pytest.approx([0.5] * 4)


def test_an_arm_that_was_not_measured_leaves_the_section_out(store: Path) -> None:
    # GIVEN one arm measured WHEN compared THEN there is nothing to hold against it
    measured(store, "base")
    assert moeprof.diff("base", "mega", store=store).kernel_metrics == ()


def test_a_damaged_result_is_told(store: Path) -> None:
    # GIVEN a result that was cut
    file = measured(store, "base")
    measured(store, "mega")
    file.write_text('{"schema": "moeprof.kernels/1", "arms": [{}]}')
    # WHEN compared THEN that is an error, not a missing section
    with pytest.raises(ManifestError, match="metrics of kernels are damaged"):
        moeprof.diff("base", "mega", store=store)
    file.write_text("{")
    with pytest.raises(ManifestError, match="cannot be read"):
        newest(store, "base")
