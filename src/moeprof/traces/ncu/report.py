"""A ``.ncu-rep`` through Nsight Compute's own Python module, or through its command line."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from moeprof import nsight
from moeprof.errors import UnsupportedFormatError
from moeprof.traces.ncu.table import METRICS
from moeprof.traces.ncu.units import scale

_MODULE = "ncu_report"
_LIMIT_S = 600
_DEVICE_NAME = "device__attribute_display_name"


def reader() -> ModuleType | None:
    """Return Nsight Compute's Python module: the installed one, else the newest that a Nsight Compute brings, else None."""
    try:
        return importlib.import_module(_MODULE)
    except ImportError:
        brought = nsight.newest(nsight.COMPUTE, "extras/python")
    if brought is None:
        return None
    sys.path.append(brought)
    try:
        return importlib.import_module(_MODULE)
    except ImportError:  # it fits another Python, or its libraries are not there
        return None
    finally:
        sys.path.remove(brought)


def rows(module: Any, file: Path) -> list[dict[str, object]]:
    """Return one dictionary per kernel with the columns of `KERNEL_METRICS`.

    Args:
        module: What `reader` returned.
        file: The report.

    Raises:
        UnsupportedFormatError: The module does not read it.
    """
    try:
        context = module.load_report(str(file))
        return list(_kernels(module, context))
    except Exception as error:
        raise UnsupportedFormatError(
            f"Nsight Compute's Python module does not read it: {str(error) or type(error).__name__}",
            path=str(file),
            hint="a report needs a module at least as new as the ncu that wrote it",
        ) from error


def as_csv(file: Path, ncu: str) -> bytes:
    """Return the raw page of a report as CSV.

    Raises:
        UnsupportedFormatError: The program does not read it.
    """
    command = [ncu, "--import", str(file), "--csv", "--page", "raw", "--print-units", "base"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnsupportedFormatError(f"{ncu} did not read it: {error}", path=str(file)) from error
    if done.returncode != 0:
        said = (done.stdout + done.stderr).decode(errors="replace").splitlines()
        why = next((line for line in said if "ERROR" in line), "")
        raise UnsupportedFormatError(
            f"{ncu} ended with {done.returncode}" + (f": {why}" if why else ""),
            path=str(file),
            hint="a report needs an ncu at least as new as the one that wrote it",
        )
    return done.stdout


def _kernels(module: Any, context: Any) -> Iterator[dict[str, object]]:
    number = 0
    for index in range(context.num_ranges()):
        part = context.range_by_idx(index)
        for at in range(part.num_actions()):
            action = part.action_by_idx(at)
            yield {
                "kernel": number,
                "name": action.name(getattr(action, "NameBase_DEMANGLED", 1)),
                "range": _innermost(action.nvtx_state()),
                "device": _text(action.metric_by_name(_DEVICE_NAME)),
                "grid": _dimensions(action, "grid"),
                "block": _dimensions(action, "block"),
                **{metric.column: _first(action, metric.names, metric.unit) for metric in METRICS},
            }
            number += 1


def _first(action: Any, names: Iterable[str], wanted: str) -> float | None:
    for name in names:
        metric = action.metric_by_name(name)
        if metric is not None:
            factor = scale(metric.unit(), wanted)
            return None if factor is None else float(metric.value()) * factor
    return None


def _innermost(state: Any) -> str | None:
    """Return the last push/pop range of the last domain that has one; ranges of ours come before others."""
    found = []
    if state is not None:
        for number in state.domains():
            found += list(state.domain_by_id(number).push_pop_ranges())[-1:]
    ours = [name for name in found if name.startswith("moeprof.")]
    return next(iter(reversed(ours or found)), None)


def _dimensions(action: Any, what: str) -> str | None:
    sizes = [action.metric_by_name(f"launch__{what}_dim_{axis}") for axis in "xyz"]
    return None if any(size is None for size in sizes) else f"({', '.join(str(int(size.value())) for size in sizes)})"


def _text(metric: Any) -> str | None:
    return None if metric is None else str(metric.value())
