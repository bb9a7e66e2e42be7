"""Run a command as a process of its own and say what it cost. Linux and macOS."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: ru_maxrss counts KiB on Linux and bytes on macOS.
MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """What one process took: seconds on the clock, seconds of CPU, greatest resident size in bytes, and what it printed."""

    wall: float
    cpu: float
    peak: int
    output: str


class BenchmarkError(Exception):
    """The measured command failed."""


def measure(command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Usage:
    """Run a command to its end.

    Raises:
        BenchmarkError: It ended with a code other than 0; the message holds what it wrote.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=out, stderr=err, env=None if environment is None else dict(environment)
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)  # reaped above: Popen must not wait for it
        out.seek(0)
        err.seek(0)
        if process.returncode != 0:
            text = err.read().decode(errors="replace").strip()[-2000:]
            raise BenchmarkError(f"{command[0]} ended with {process.returncode}\n{text}")
        return Usage(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * MAXRSS_UNIT, out.read().decode())


def spread(values: Sequence[float], unit: str, *, digits: int = 2) -> str:
    """Return median and range with the number of values, for a table."""
    middle, low, high = statistics.median(values), min(values), max(values)
    shown = f"{middle:.{digits}f} {unit}".rstrip()
    return f"{shown} ({low:.{digits}f} to {high:.{digits}f}, n={len(values)})"
