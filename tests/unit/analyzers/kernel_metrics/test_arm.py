from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from moeprof.analyzers.classify import load_classifier
from moeprof.analyzers.kernel_metrics.arm import Measured, arm_kernels
from moeprof.analyzers.kernel_metrics.compare import gather
from moeprof.analyzers.kernel_metrics.results import ArmKernels, LayerShape
from moeprof.traces.ncu.open import open_kernel_metrics
from moeprof.traces.ncu.table import KERNEL_METRICS

RAW = Path(__file__).parents[4] / "samples" / "kernels" / "torch.csv"
SHAPE = LayerShape(hidden=1024, intermediate=512, experts=32, top_k=4, weights="bf16")
ROUTE, GEMM, ACT, FUSED = "moe_align_block_size_kernel", "fused_moe_kernel", "act_and_mul_kernel", "mega_moe_impl"


def table(*launches: tuple[int | None, str, float]) -> pl.DataFrame:
    """Kernels as (batch, name, duration in ns); 100 bytes are read and 60 written."""
    rows = [
        {
            "kernel": number,
            "name": name,
            "range": None if batch is None else f"moeprof.layer batch={batch}",
            "device": "NVIDIA H200",
            "duration_ns": duration,
            "dram_read_bytes": 100.0,
            "dram_write_bytes": 60.0,
        }
        for number, (batch, name, duration) in enumerate(launches)
    ]
    return pl.DataFrame(rows, schema=dict(KERNEL_METRICS))


def of(kernels: pl.DataFrame, shape: LayerShape | None = SHAPE, arm: str = "a") -> ArmKernels:
    return arm_kernels(Measured(arm, "test", kernels, None, shape), load_classifier(None))[0]


def test_a_real_report_gives_both_gemms_of_each_batch() -> None:
    # GIVEN a real report of two batches, one launch of the layer each
    arm = of(open_kernel_metrics(RAW).kernels)
    # WHEN the expert GEMMs are taken
    rows = [row for row in arm.kernels if row.class_ == "moe_gemm"]
    # THEN each batch has w13 and w2 with the work that their shapes ask for: 2 * batch * top_k * hidden * intermediate, twice for w13
    one = 2 * 4 * 1024 * 512
    assert [(row.batch, row.stage, row.flops) for row in rows] == [
        (16, "w13", 32 * one),
        (16, "w2", 16 * one),
        (64, "w13", 128 * one),
        (64, "w2", 64 * one),
    ]
    # AND achieved rates and shares follow from the report: 83,553,024 bytes in 32,256 ns of 4.8 TB/s
    first = rows[0]
    assert first.bytes_per_s == pytest.approx(83553024 / 32.256e-6)
    assert first.flops_per_s == pytest.approx(134217728 / 32.256e-6)
    assert first.roof_share == pytest.approx(83553024 / 4.8e12 / 32.256e-6)
    # AND the layer's sums are those of its 26 kernels
    assert [(row.batch, row.kernels) for row in arm.layers] == [(16, 26), (64, 26)]
    assert [row.gemm_sum_ns for row in arm.layers] == pytest.approx([32256 + 20032, 33216 + 20832])


def test_runs_in_a_row_are_told_apart_and_give_medians() -> None:
    # GIVEN three launches of a layer in a row under ranges of one name
    layer = [(16, ROUTE, 1.0), (16, GEMM, 10.0), (16, ACT, 2.0), (16, GEMM, 20.0)]
    runs = [(batch, name, duration * factor) for factor in (1.0, 5.0, 2.0) for batch, name, duration in layer]
    # WHEN they are reduced
    arm = of(table(*runs))
    # THEN there are three runs of four kernels, with the medians of each place
    assert [(row.stage, row.runs, row.duration_ns) for row in arm.kernels] == [
        ("moe_route", 3, 2.0),
        ("w13", 3, 20.0),
        ("moe_act", 3, 4.0),
        ("w2", 3, 40.0),
    ]


def test_runs_that_launch_other_kernels_are_left_aside_and_told() -> None:
    # GIVEN two runs alike and one with a kernel more
    alike = [(16, ROUTE, 1.0), (16, GEMM, 10.0), (16, GEMM, 20.0)]
    odd = [(16, ROUTE, 1.0), (16, ACT, 9.0), (16, GEMM, 10.0), (16, GEMM, 20.0)]
    # WHEN they are reduced
    arm, findings = arm_kernels(Measured("a", "t", table(*alike, *odd, *alike), None, SHAPE), load_classifier(None))
    # THEN the commonest sequence counts
    assert [row.runs for row in arm.kernels] == [2, 2, 2]
    assert [(item.slug, item.evidence["left_aside"]) for item in findings] == [("kernels-runs-differ", 1)]


def test_a_fused_launch_does_both_gemms() -> None:
    # GIVEN a layer that is one launch
    arm = of(table((8, FUSED, 100.0)))
    # THEN its work is that of w13 and w2 together
    assert [(row.stage, row.flops) for row in arm.kernels] == [("fused", 3 * 2 * 8 * 4 * 1024 * 512)]


def test_without_sizes_or_batch_there_is_no_rate() -> None:
    # GIVEN a report of unknown origin
    arm = of(table((None, GEMM, 10.0), (None, GEMM, 20.0)), shape=None)
    # THEN durations are there, work and roofs are not
    assert [(row.batch, row.duration_ns, row.flops, row.roof_share) for row in arm.kernels] == [
        (None, 10.0, None, None),
        (None, 20.0, None, None),
    ]
    assert arm.roof is None


def test_arms_are_held_against_the_first_batch_by_batch() -> None:
    # GIVEN two arms, of which the second lacks a batch
    base = of(table((16, GEMM, 10.0), (16, GEMM, 20.0), (32, GEMM, 11.0), (32, GEMM, 21.0)), arm="base")
    mega = of(table((16, FUSED, 15.0)), arm="mega")
    # WHEN they are gathered
    rows = gather([base, mega]).changes["mega"]
    # THEN the ratio is candidate over base, and what is missing has no data
    gemms = [(row.batch, row.base, row.candidate, row.ratio) for row in rows if row.figure == "gemm_sum_ns"]
    assert gemms == [(16, 30.0, 15.0, 0.5), (32, 32.0, None, None)]


def test_other_sizes_or_devices_do_not_pass_silently() -> None:
    # GIVEN arms of different layers on different devices
    base = of(table((16, GEMM, 10.0), (16, GEMM, 20.0)), arm="base")
    other = of(
        table((16, GEMM, 10.0), (16, GEMM, 20.0)).with_columns(device=pl.lit("NVIDIA B200")),
        LayerShape(2048, 512, 32, 4, "bf16"),
        arm="other",
    )
    # WHEN they are gathered THEN findings tell both
    assert [item.slug for item in gather([base, other]).findings] == ["kernels-other-layer", "kernels-other-device"]
