"""GPU samples: kept as they came, judged within the timed passes; no GPU is no data."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pytest

from moeprof.commands.capturing import TraceAnalysis
from moeprof.profiler import gpu_samples
from moeprof.profiler.gpu_samples import GpuSample, Sampler, SampleSummary, summary, tree, write


def sample(time: float, gpu: int = 0, sm: int | None = 1980, pids: tuple[int, ...] | None = (10,)) -> GpuSample:
    return GpuSample(time, gpu, f"GPU-{gpu}", sm, 3201, 192450, 38, 88520, 97, pids)


def test_clocks_are_judged_within_passes_per_gpu() -> None:
    # GIVEN two GPUs with clocks of their own, and an idle clock between the passes
    samples = [sample(1, sm=2000), sample(2, sm=1900), sample(3, sm=2000), sample(5, sm=300), sample(1, gpu=1, sm=1000), sample(7, gpu=1, sm=1000)]  # fmt: skip
    # THEN the largest deviation from a GPU's own median counts: 100 of 2000
    found = summary(samples, [(1, 3), (6, 8)], {10})
    assert found == SampleSummary(samples=6, in_passes=5, clock_deviation=0.05, cotenants=())


def test_cotenants_are_whoever_is_not_the_servers() -> None:
    # WHEN other processes were seen at any time THEN they are named
    assert summary([sample(1, pids=(10, 99)), sample(9, pids=(7,))], [(0, 2)], {10}).cotenants == (7, 99)


def test_no_data() -> None:
    # WHEN there are no samples, or none within a pass, or processes are hidden THEN that is no data, with a reason
    assert summary([], [(0, 1)], set(), reason="no driver") == SampleSummary(0, 0, None, None, "no driver")
    assert summary([sample(5, pids=None)], [(0, 1)], set()) == SampleSummary(
        1, 0, None, None, "no sample fell into a timed pass"
    )
    assert summary([sample(0, sm=None)], [(0, 1)], {10}).clock_deviation is None


def test_the_thread_looks_again_and_again() -> None:
    # GIVEN a sampler with a short period WHEN it has looked three times THEN all looks are kept in order
    looks = 0
    enough = threading.Event()

    def look() -> list[GpuSample]:
        nonlocal looks
        looks += 1
        if looks == 3:
            enough.set()
        return [sample(looks)]

    with Sampler(0.001, look=look) as sampler:
        assert enough.wait(30)
    assert [item.time for item in sampler.samples][:3] == [1, 2, 3]
    assert sampler.reason is None


def test_a_look_that_fails_ends_sampling_with_a_reason() -> None:
    # WHEN a look fails THEN the block goes on, and the reason is kept
    def look() -> list[GpuSample]:
        raise RuntimeError("GPU is lost")

    with Sampler(0.001, look=look) as sampler:
        pass
    assert (sampler.samples, sampler.reason) == ((), "sampling ended: RuntimeError: GPU is lost")


def test_without_the_package_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN no nvidia-ml-py WHEN sampling begins THEN nothing is sampled, and the reason is kept
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with Sampler(0.001) as sampler:
        pass
    assert (sampler.samples, sampler.reason) == ((), "nvidia-ml-py is not installed")


def test_samples_become_parquet_whatever_is_not_told(tmp_path: Path) -> None:
    # GIVEN samples, one with little in it WHEN they are written THEN Parquet holds them, and nothing else is left
    empty = GpuSample(2.0, 1, None, None, None, None, None, None, None, None)
    path = write([sample(1.5, pids=(10, 11)), empty], tmp_path, TraceAnalysis().table)
    assert [item.name for item in tmp_path.iterdir()] == ["samples.parquet"]
    rows = pl.read_parquet(path).to_dicts()
    assert rows[0] == {"time": 1.5, "gpu": 0, "uuid": "GPU-0", "sm_mhz": 1980, "memory_mhz": 3201, "power_mw": 192450,
                       "temperature_c": 38, "memory_bytes": 88520, "utilisation": 97, "pids": [10, 11]}  # fmt: skip
    assert rows[1] == dict.fromkeys(rows[0]) | {"time": 2.0, "gpu": 1}
    # AND types do not depend on what was told
    types = pl.read_parquet_schema(write([empty], tmp_path, TraceAnalysis().table))
    expected = [pl.Float64(), pl.String(), pl.Int64(), pl.List(pl.Int64())]
    assert [types[name] for name in ("time", "uuid", "sm_mhz", "pids")] == expected


def test_samples_that_cannot_be_written_leave_nothing(tmp_path: Path) -> None:
    # WHEN the writer is refused THEN no half-written file lies there
    def refuse(_: object, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write([sample(1)], tmp_path, refuse)
    assert list(tmp_path.iterdir()) == []


def test_the_tree_of_a_process() -> None:
    # GIVEN a child of this process THEN it is in this process' tree, and the parent is not
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = tree(os.getpid())
        child.communicate(b"\n")
    assert {os.getpid(), child.pid} <= found
    assert os.getppid() not in found
    assert gpu_samples.tree(child.pid) == {child.pid}
