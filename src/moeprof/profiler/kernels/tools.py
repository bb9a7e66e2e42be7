"""Which of Nsight Compute and nsight-python are there, and whether they fit each other."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

from moeprof import nsight
from moeprof.errors import UsageError
from moeprof.profiler.kernels.order import Driver

#: nsight-python 1 attaches to the running process, which older versions of ncu cannot; 0.9 starts any ncu.
NEEDED_BY_1 = (2026, 2, 1)
_LIMIT_S = 60
_VERSION = re.compile(r"Version (\d+(?:\.\d+)+)")
_PROBE = "import importlib.metadata as m; print(m.version('nsight-python'))"


@dataclass(frozen=True, slots=True)
class Tools:
    """What was found; None: it is not there."""

    ncu: str | None
    ncu_version: tuple[int, ...] | None
    nsight_python: tuple[int, ...] | None
    report_module: str | None = (
        None  # folder of the module ncu_report that Nsight Compute brings; nsight-python 0.9 imports it
    )


def find_tools(python: str, env: dict[str, str]) -> Tools:
    """Look for ncu here, and for nsight-python in an arm's Python."""
    ncu = nsight.find("ncu", env)
    said = _output([ncu, "--version"], env) if ncu else ""
    found = _VERSION.search(said)
    version = numbers(_output([python, "-c", _PROBE], env).strip())
    return Tools(ncu, numbers(found[1]) if found else None, version, nsight.newest(nsight.COMPUTE, "extras/python"))


def choose(wanted: str, tools: Tools) -> Driver:
    """Return how to drive ncu: ``nsight-python`` where it is there and fits, else ``ncu`` itself.

    Raises:
        UsageError: There is no ncu, or the driver asked for is not there or does not fit.
    """
    if tools.ncu is None:
        raise UsageError(
            "hardware metrics need Nsight Compute, and no ncu was found",
            hint="install it, or give reports made elsewhere with --from ARM=FILE; moeprof doctor tells what is here",
        )
    why = _unfit(tools)
    if wanted == "nsight-python" and why is not None:
        raise UsageError(why[0], hint=why[1])
    return "nsight-python" if wanted != "ncu" and why is None else "ncu"


def numbers(text: str) -> tuple[int, ...] | None:
    """Return the leading numbers of a version.

    >>> numbers("2025.3.1.0"), numbers("0.9.6rc1"), numbers("")
    ((2025, 3, 1, 0), (0, 9, 6), None)
    """
    found = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in found[0].split(".")) if found else None


def _unfit(tools: Tools) -> tuple[str, str] | None:
    if tools.nsight_python is None:
        return "nsight-python is not installed in the arm's Python", "pip install nsight-python, or --driver ncu"
    if tools.nsight_python >= (1,) and (tools.ncu_version or ()) < NEEDED_BY_1:
        have = ".".join(map(str, tools.nsight_python))
        ncu = ".".join(map(str, tools.ncu_version or ())) or "of unknown version"
        needed = ".".join(map(str, NEEDED_BY_1))
        return (
            f"nsight-python {have} needs ncu {needed} or newer, and the one here is {ncu}",
            "install nsight-python below 1, a newer Nsight Compute, or use --driver ncu",
        )
    return None


def _output(command: list[str], env: dict[str, str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False, env=env)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
