"""Run one order under Nsight Compute, and leave its report."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from moeprof.errors import CaptureError
from moeprof.profiler import excerpt
from moeprof.profiler.kernels.order import Driver, LayerOrder
from moeprof.profiler.kernels.site.moeprof_kernels.request import Request, dump
from moeprof.profiler.kernels.tools import Tools
from moeprof.store import redact

PROGRAM = Path(__file__).parent / "site" / "moeprof_kernels" / "run.py"
_HINT = "the log's end is above; counters may need rights (ERR_NVGPUCTRPERM), which moeprof doctor explains"


@dataclass(frozen=True, slots=True)
class Launch:
    """A command with its variables, and the report that it leaves."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    request: str
    request_file: Path
    log: Path
    report: Path


def launch(order: LayerOrder, driver: Driver, tools: Tools, metrics: tuple[str, ...], folder: Path) -> Launch:
    """Compose the command for an order; nothing is run or written.

    Args:
        order: What to measure.
        driver: Who drives ncu.
        tools: What was found.
        metrics: Names of metrics.
        folder: Where request, log and report go.
    """
    file = folder / f"{order.arm}.request.json"
    prefix = str(folder / f"{order.arm}.")
    request = Request(
        order.backend, order.shape, list(order.batches), order.runs, order.seed, driver, prefix, list(metrics)
    )
    program = (order.python, str(PROGRAM), str(file))
    env = {"PYTHONUNBUFFERED": "1", "CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0"), **order.env}
    if driver == "nsight-python":
        given = order.env.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        path = [part for part in (given, tools.report_module) if part]
        env["PYTHONPATH"] = os.pathsep.join(path)
        report = folder / f"{order.arm}.ncu-output-moe_layer-0.ncu-rep"
        argv: tuple[str, ...] = program
    else:
        report = folder / f"{order.arm}.ncu-rep"
        argv = (
            *(tools.ncu or "ncu", "--nvtx", "--nvtx-include", "regex:moeprof\\.layer.*/"),
            *("--clock-control", "none", "--cache-control", "none", "--metrics", ",".join(metrics)),
            *("--force-overwrite", "--export", str(report), *program),
        )
    return Launch(argv, env, dump(request), file, folder / f"{order.arm}.log", report)


def run(order: LayerOrder, command: Launch, limit_s: float, say: Callable[[str], None]) -> Path:
    """Run a command to its end and return the report.

    Args:
        order: What is measured.
        command: Its command.
        limit_s: Longest time.
        say: Takes the log's telling lines where it failed.

    Raises:
        CaptureError: It failed, took longer than `limit_s`, or left no report.
    """
    command.request_file.write_text(command.request, encoding="utf-8")
    try:
        code = _finish(order, command, limit_s)
        if code != 0:
            raise CaptureError(f"arm {order.arm}: the program ended with {code}{_cause(command.log)}", hint=_HINT)
        if not command.report.exists():
            raise CaptureError(
                f"arm {order.arm}: no report of Nsight Compute was left{_cause(command.log)}", hint=_HINT
            )
    except CaptureError:
        for line in excerpt.telling(command.log):
            say(f"{order.arm}: {redact.text(line)}")
        raise
    return command.report


def _finish(order: LayerOrder, command: Launch, limit_s: float) -> int:
    with command.log.open("wb") as log:
        try:
            process = subprocess.Popen(
                command.argv,
                env={**os.environ, **command.env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        except OSError as error:
            raise CaptureError(
                f"arm {order.arm}: {command.argv[0]} does not start: {error.strerror or error}"
            ) from error
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired as error:
            raise CaptureError(
                f"arm {order.arm}: the layer was not measured within {limit_s:g} s",
                hint="fewer batches or runs, or a longer --limit",
            ) from error
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Leave nothing of the program's session running."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _cause(log: Path) -> str:
    found = excerpt.cause(log)
    return f": {redact.text(found)}" if found else ""
