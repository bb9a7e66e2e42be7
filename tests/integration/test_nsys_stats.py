"""NVIDIA's own program gives the same figures, where it is here (``nsys`` on the PATH, or MOEPROF_NSYS)."""

from __future__ import annotations

import csv
import gzip
import io
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from moeprof.analyzers.projection import project
from moeprof.traces.open import open_trace
from moeprof.traces.trace import Trace
from tests.shared import ROOT, shared_root

NSYS = os.environ.get("MOEPROF_NSYS") or shutil.which("nsys")
pytestmark = [
    pytest.mark.skipif(NSYS is None, reason="needs nsys (any version from 2023.4 on; Debian's needs no GPU)"),
    pytest.mark.timeout(300),
]
PUBLIC = shared_root() / "traces" / "public" / "nsys-ai"
FILES = [ROOT / "tests" / "data" / "nsys" / "node.sqlite.gz", *sorted(PUBLIC.glob("[hm]*_2gpu_*.sqlite.gz"))]


@pytest.fixture(params=FILES, ids=lambda path: path.name)
def export(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / str(request.param.name).removesuffix(".gz")
    path.write_bytes(gzip.decompress(request.param.read_bytes()))
    return path


def stats(path: Path, report: str) -> list[dict[str, str]]:
    command = [str(NSYS), "stats", "--quiet", "--report", report, "--format", "csv", "--output", "-", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240).stdout
    lines = text[text.index("Time (%)" if report.endswith("_sum") else "Name,") :].splitlines()
    return [row for row in csv.DictReader(io.StringIO("\n".join(line for line in lines if line))) if row.get("Name")]


def kernels(trace: Trace) -> pl.DataFrame:
    rows = pl.concat([rank.kernels.with_columns(pl.col("name").cast(pl.String)) for rank in trace])
    return rows.filter(pl.col("activity") == "kernel")


def test_kernels_by_name(export: Path) -> None:
    # GIVEN NVIDIA's sum of kernels by name
    theirs = {
        row["Name"]: (int(row["Instances"]), int(row["Total Time (ns)"])) for row in stats(export, "cuda_gpu_kern_sum")
    }
    # THEN instances and times are ours
    ours = kernels(open_trace(export)).group_by("name").agg(pl.len(), pl.col("duration_ns").sum())
    assert {name: (count, time) for name, count, time in ours.iter_rows()} == theirs


def test_projection_of_ranges(export: Path) -> None:
    # GIVEN NVIDIA's projection of every range
    theirs = Counter(
        (
            *(int(row[key]) for key in ("PID", "TID", "Orig Start (ns)", "Orig Duration (ns)")),
            *(int(row[key]) for key in ("Projected Start (ns)", "Projected Duration (ns)", "NumGPUOps")),
        )
        for row in stats(export, "nvtx_gpu_proj_trace")
    )
    # THEN start, duration and operations of each are ours
    ours: Counter[tuple[int, ...]] = Counter()
    for rank in open_trace(export):
        threads = rank.tracks.select("track", pl.col("process").cast(pl.Int64), pl.col("thread").cast(pl.Int64))
        rows = project(rank).join(threads, on="track").select(
            "process", "thread", "range_start_ns", pl.col("range_end_ns") - pl.col("range_start_ns"),
            "start_ns", pl.col("end_ns") - pl.col("start_ns"), pl.col("operations").cast(pl.Int64),
        )  # fmt: skip
        ours.update(rows.iter_rows())
    assert sum(theirs.values()) > 0
    assert ours == theirs


def test_a_report_is_exported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a report without an export beside it
    source = shared_root() / "traces" / "nsys" / "cpu" / "base_2023.4.nsys-rep"
    if not source.exists():
        pytest.skip("needs the full traces")
    report = tmp_path / source.name
    report.write_bytes(source.read_bytes())
    monkeypatch.setenv("MOEPROF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MOEPROF_NSYS", str(NSYS))
    # WHEN it is opened, twice
    first, second = open_trace(report), open_trace(report)
    # THEN it is the export that was made elsewhere, and was made once
    stored = open_trace(ROOT / "tests" / "data" / "nsys" / "base_2023.4.sqlite.gz")
    assert first.ranks == second.ranks == stored.ranks
    for rank in stored:
        assert first[rank.key].markers.equals(rank.markers)
    assert len(list((tmp_path / "cache" / "nsys").iterdir())) == 1
