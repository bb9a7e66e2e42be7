"""Open what Nsight Compute wrote: CSV as it is, a ``.ncu-rep`` through what Nsight Compute brings."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import polars as pl

from moeprof import nsight
from moeprof.errors import InputNotFoundError, NotATraceError, TraceEmptyError, UnsupportedFormatError
from moeprof.findings import Finding
from moeprof.traces.ncu import csv, report
from moeprof.traces.ncu.table import KERNEL_METRICS, KernelMetrics

_MAGIC = b"NVR\0"


def open_kernel_metrics(path: str | PathLike[str]) -> KernelMetrics:
    """Read a report of Nsight Compute: CSV of its raw or details page, or a ``.ncu-rep``.

    What the file is, is told from its content. A ``.ncu-rep`` is read through the module ``ncu_report`` (of the same name on PyPI, or
    brought by Nsight Compute), else through ``ncu --import``.

    Args:
        path: The file.

    Raises:
        InputNotFoundError: It is not there.
        NotATraceError: It is neither.
        UnsupportedFormatError: A ``.ncu-rep``, and nothing that reads it.
        TraceEmptyError: It holds no kernel.
        TraceMalformedError: A value of it cannot be read.
    """
    file = Path(path)
    try:
        with file.open("rb") as opened:
            binary = opened.read(len(_MAGIC)) == _MAGIC
        found, findings = _of_report(file) if binary else _of_csv(file.read_bytes(), str(path))
    except OSError as error:
        raise InputNotFoundError(error.strerror or str(error), path=str(path)) from error
    if not found:
        raise TraceEmptyError("the report holds no kernel", path=str(path), hint="look at ncu's own messages")
    return KernelMetrics(str(path), pl.DataFrame(found, schema=dict(KERNEL_METRICS)), tuple(findings))


def _of_report(file: Path) -> tuple[list[csv.Row], list[Finding]]:
    module = report.reader()
    if module is not None:
        return report.rows(module, file), []
    ncu = nsight.find("ncu")
    if ncu is None:
        raise UnsupportedFormatError(
            "a .ncu-rep is read through Nsight Compute, and neither its module ncu_report nor its ncu was found",
            path=str(file),
            hint=f"install ncu-report, or where ncu is: ncu --import {file.name} --csv --page raw > kernels.csv",
        )
    return _of_csv(report.as_csv(file, ncu), str(file))


def _of_csv(content: bytes, source: str) -> tuple[list[csv.Row], list[Finding]]:
    if not content.strip():
        raise TraceEmptyError("the file is empty", path=source)
    if b"\0" in content:
        raise NotATraceError("neither CSV of Nsight Compute nor a .ncu-rep", path=source)
    return csv.rows(content.decode("utf-8", errors="replace"), source)
