from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from moeprof import nsight
from moeprof.errors import (
    InputNotFoundError,
    NotATraceError,
    TraceEmptyError,
    TraceMalformedError,
    UnsupportedFormatError,
)
from moeprof.traces.ncu import report
from moeprof.traces.ncu.open import open_kernel_metrics
from moeprof.traces.ncu.table import KERNEL_METRICS

DATA = Path(__file__).parents[2] / "data" / "ncu"
RAW = Path(__file__).parents[3] / "samples" / "kernels" / "torch.csv"
GEMM = "cutlass::device_kernel"


def test_the_raw_page_gives_base_units() -> None:
    # GIVEN a real raw page, in which durations are in us, sizes in Mbyte and clocks in Ghz
    metrics = open_kernel_metrics(RAW)
    # WHEN the first expert GEMM is looked at
    first = metrics.kernels.filter(metrics.kernels["name"].str.contains(GEMM)).row(0, named=True)
    # THEN its figures are those of the report in ns, bytes, Hz and percent
    assert dict(metrics.kernels.schema) == dict(KERNEL_METRICS)
    assert first["duration_ns"] == pytest.approx(32256.0)
    assert first["dram_read_bytes"] == pytest.approx(58857216.0)
    assert first["dram_write_bytes"] == pytest.approx(24695808.0)
    assert first["sm_hz"] == pytest.approx(1.832519e9, rel=1e-6)
    assert (first["tensor_pct"], first["dram_pct"]) == (pytest.approx(23.518254), pytest.approx(53.847969))
    assert (first["range"], first["device"]) == ("moeprof.kernels batch=16", "NVIDIA H200")
    assert (first["grid"], first["block"], first["kernel"]) == ("(132, 1, 1)", "(384, 1, 1)", 15)


def test_a_range_of_ours_comes_before_one_of_a_library_inside_it() -> None:
    # GIVEN kernels that CUB launches under a range of its own, inside ours
    metrics = open_kernel_metrics(RAW)
    # WHEN all ranges are listed
    ranges = metrics.kernels["range"].value_counts().sort("range").rows()
    # THEN every kernel is in one of ours
    assert ranges == [("moeprof.kernels batch=16", 26), ("moeprof.kernels batch=64", 26)]


def test_the_details_page_agrees_with_the_raw_page_to_its_rounding() -> None:
    # GIVEN both pages of one report; the details page rounds to two decimals and puts the range before the name
    raw = open_kernel_metrics(RAW).kernels
    details = open_kernel_metrics(DATA / "details.csv").kernels
    # WHEN the expert GEMMs of batch 16 are compared
    left = raw.filter(raw["name"].str.contains(GEMM), raw["range"].str.ends_with("=16")).rows(named=True)
    right = details.filter(details["name"].str.contains(GEMM)).rows(named=True)
    # THEN they agree
    assert len(left) == len(right) == 2
    for one, other in zip(left, right, strict=True):
        assert other["duration_ns"] == pytest.approx(one["duration_ns"], abs=10)
        assert other["dram_read_bytes"] == pytest.approx(one["dram_read_bytes"], rel=1e-3)
        assert other["occupancy_pct"] == pytest.approx(one["occupancy_pct"], abs=0.01)
        assert (other["kernel"], other["range"], other["device"]) == (one["kernel"], one["range"], None)
        assert other["name"].startswith("void cutlass::device_kernel")


def csv_of(tmp_path: Path, *lines: str) -> Path:
    file = tmp_path / "k.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


HEAD = '"ID","Process ID","Process Name","Host Name","Kernel Name","Grid Size","Block Size","gpu__time_duration.sum"'
UNITS = '"","","","","","","","ns"'
ROW = '"0","7","python","h","k<int>","(1, 1, 1)","(32, 1, 1)","{}"'


def test_what_a_program_printed_between_the_rows_is_counted(tmp_path: Path) -> None:
    # GIVEN CSV as ncu prints it into the output of the profiled program
    file = csv_of(tmp_path, "hello", "==PROF== Connected", HEAD, UNITS, "batch 16 done", ROW.format("1,024"))
    # WHEN it is read
    metrics = open_kernel_metrics(file)
    # THEN the kernel is there, and the other lines are told
    assert metrics.kernels["duration_ns"].to_list() == [1024.0]
    assert [(item.slug, item.evidence["lines"]) for item in metrics.findings] == [("ncu-foreign-lines", 2)]


def test_a_metric_that_was_not_measured_has_no_data(tmp_path: Path) -> None:
    # GIVEN a value that ncu could not measure, and no other metric
    metrics = open_kernel_metrics(csv_of(tmp_path, HEAD, UNITS, ROW.format("n/a")))
    # THEN there is no figure, not 0
    assert metrics.kernels["duration_ns"].to_list() == [None]
    assert metrics.kernels["dram_pct"].to_list() == [None]


@pytest.mark.parametrize(
    ("lines", "error", "said"),
    [
        ((HEAD, '"","","","","","","","byte"', ROW.format("1")), TraceMalformedError, "no unit of ns"),
        ((HEAD, UNITS, ROW.format("much")), TraceMalformedError, "no number"),
        ((HEAD, UNITS, '"0","7","python"'), TraceMalformedError, "3 fields where the header has 8"),
        ((HEAD, UNITS), TraceEmptyError, "no kernel"),
        ((HEAD,), TraceEmptyError, "no kernel"),
        (("a,b,c", "1,2,3"), NotATraceError, "no CSV of Nsight Compute"),
        (("",), TraceEmptyError, "empty"),
        (("\0\1\2",), NotATraceError, "neither CSV"),
    ],
)
def test_what_cannot_be_read_says_why(
    tmp_path: Path, lines: tuple[str, ...], error: type[Exception], said: str
) -> None:
    # GIVEN a file that is no report, or a damaged one
    file = csv_of(tmp_path, *lines)
    # WHEN it is opened THEN the error says what is wrong
    with pytest.raises(error, match=said):
        open_kernel_metrics(file)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    # GIVEN no file WHEN it is opened THEN that is said
    with pytest.raises(InputNotFoundError, match="No such file"):
        open_kernel_metrics(tmp_path / "absent.csv")


def test_a_report_without_anything_that_reads_it_says_how_to_export_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN a .ncu-rep, and neither Nsight Compute's module nor its ncu
    file = tmp_path / "k.ncu-rep"
    file.write_bytes(b"NVR\0rest")
    monkeypatch.setattr(report, "reader", lambda: None)
    monkeypatch.setattr(nsight, "find", lambda _: None)
    # WHEN it is opened THEN the cure is named
    with pytest.raises(UnsupportedFormatError) as caught:
        open_kernel_metrics(file)
    assert "ncu --import k.ncu-rep --csv --page raw" in str(caught.value.hint)


def test_a_report_is_read_through_an_ncu_that_prints_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a .ncu-rep and a program that, as ncu does, prints the raw page of what follows --import
    file = tmp_path / "k.ncu-rep"
    file.write_bytes(b"NVR\0rest")
    program = tmp_path / "ncu"
    program.write_text(f'#!/bin/sh\n[ "$1 $2" = "--import {file}" ] && cat {RAW}\n')
    program.chmod(0o755)
    monkeypatch.setattr(report, "reader", lambda: None)
    monkeypatch.setenv("MOEPROF_NCU", str(program))
    # WHEN it is opened THEN its kernels are those of the page
    assert open_kernel_metrics(file).kernels.equals(open_kernel_metrics(RAW).kernels)


def test_an_ncu_that_refuses_a_report_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN an ncu that is older than the report
    file = tmp_path / "k.ncu-rep"
    file.write_bytes(b"NVR\0rest")
    program = tmp_path / "ncu"
    program.write_text("#!/bin/sh\necho '==ERROR== Could not open report file'\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(report, "reader", lambda: None)
    monkeypatch.setenv("MOEPROF_NCU", str(program))
    # WHEN it is opened THEN its own words are in the error
    with pytest.raises(UnsupportedFormatError, match="Could not open report file"):
        open_kernel_metrics(file)


def test_a_module_that_raises_is_told_in_one_sentence(tmp_path: Path) -> None:
    # GIVEN Nsight Compute's module, which raises errors of its own
    def refuse(path: str) -> None:
        raise RuntimeError(f"cannot load {Path(path).name}")

    # WHEN it refuses a report THEN that is our error, with its words
    with pytest.raises(UnsupportedFormatError, match=r"cannot load k\.ncu-rep"):
        report.rows(SimpleNamespace(load_report=refuse), tmp_path / "k.ncu-rep")
