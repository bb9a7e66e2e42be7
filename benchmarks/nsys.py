"""Read an nsys export natively, and by Python's sqlite3 into polars, in one process; then open and report it.

    python -m benchmarks.nsys [--export FILE.sqlite] [--runs 5] [--kernels N --calls N --ranges N --names N]

Without --export an export is generated (344 thousand kernels, 580 thousand calls, 1.7 million ranges) in a temporary folder. Wall and CPU
seconds are given, medians of the runs: on a machine that does other work the ratio in one process says more than seconds.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl

import moeprof
from benchmarks import generate_nsys
from benchmarks.measure import spread
from moeprof.traces.nsys import gpu, host
from moeprof.traces.nsys.export import open_export

TABLES = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")


def native(path: Path) -> None:
    """Read what moeprof reads of the large tables."""
    export = open_export(path)
    for kind in TABLES:
        gpu.read_table(export, kind)
    host.calls(export)
    host.nvtx(export)


def python(path: Path) -> None:
    """Read the same columns with sqlite3 and make frames of them."""
    export = open_export(path)
    wanted = {gpu.PREFIX + kind: gpu.wanted(export, kind) for kind in TABLES}
    hosts: dict[str, tuple[str, ...]] = {
        host.CALLS: host.CALL_COLUMNS,
        str(host.nvtx_table(export)): (*host.NVTX_COLUMNS, "text"),
    }
    for table, names in hosts.items():
        wanted[table] = [name for name in names if name in export.tables.get(table, ())]
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    for table, columns in wanted.items():
        if columns:
            listed = ", ".join(f'"{name}"' for name in columns)
            rows = connection.execute(f"SELECT {listed} FROM {table}").fetchall()
            pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)
    connection.close()


def timed(run: Callable[[], object], runs: int) -> tuple[list[float], list[float]]:
    """Return wall and CPU seconds of each run."""
    wall, cpu = [], []
    for _ in range(runs):
        begin, spent = time.perf_counter(), time.process_time()
        run()
        wall.append(time.perf_counter() - begin)
        cpu.append(time.process_time() - spent)
    return wall, cpu


def main() -> None:
    """Read the command line, measure, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--export", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    for name, default in (("kernels", 344_000), ("calls", 580_000), ("ranges", 1_700_000), ("names", 8391)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = given.export or Path(folder) / "generated.sqlite"
        if given.export is None:
            generate_nsys.write(
                path, kernel_rows=given.kernels, call_rows=given.calls, range_rows=given.ranges, names=given.names
            )
        print(f"{path.stat().st_size / 1e6:.0f} MB, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        print("| what | wall | CPU |\n| --- | --- | --- |")
        rows: dict[str, Callable[[], object]] = {
            "native": lambda: native(path),
            "sqlite3 into polars": lambda: python(path),
            "open": lambda: moeprof.open_trace(path),
            "open, attribute, report": lambda: moeprof.report(moeprof.open_trace(path)),
        }
        rows["native"]()  # the first read fills the page cache and loads the module
        for what, run in rows.items():
            wall, cpu = timed(run, given.runs if what != "sqlite3 into polars" else min(given.runs, 3))
            print(f"| {what} | {spread(wall, 's')} | {spread(cpu, 's')} |", flush=True)


if __name__ == "__main__":
    main()
