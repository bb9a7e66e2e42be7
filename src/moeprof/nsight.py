"""Where programs of NVIDIA Nsight Systems and Nsight Compute lie on this machine. Nothing is started but ``ldd``."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from typing import Final, Literal

Program = Literal["nsys", "ncu"]

#: Folders of installations, newest by their version; Nsight Compute brings an nsys of its own.
SYSTEMS: Final = Path("/opt/nvidia/nsight-systems")
COMPUTE: Final = Path("/opt/nvidia/nsight-compute")
_PLACES: Mapping[Program, tuple[tuple[Path, str], ...]] = {
    "nsys": (
        (SYSTEMS, "bin/nsys"),
        (COMPUTE, "host/target-linux-x64/nsys"),
        (COMPUTE, "host/target-linux-sbsa-armv8/nsys"),
    ),
    "ncu": ((COMPUTE, "ncu"),),
}
_OWN: Mapping[Program, str] = {"nsys": "MOEPROF_NSYS", "ncu": "MOEPROF_NCU"}
_IMPORTER = "QdstrmImporter"
_NUMBERS = re.compile(r"\d+")
_LIMIT_S = 20


def find(program: Program, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the program that ``MOEPROF_NSYS`` or ``MOEPROF_NCU`` names, that of PATH, or the newest installed one.

    Args:
        program: Which.
        environ: Its variables; None: the process' own.
    """
    environ = os.environ if environ is None else environ
    named = environ.get(_OWN[program])
    if named:
        return named
    found = which(program, path=environ.get("PATH"))
    return found or next(filter(None, (newest(root, below) for root, below in _PLACES[program])), None)


def newest(root: Path, below: str) -> str | None:
    """Return a file or folder of the newest installation below a folder that has it."""
    found = [version for version in root.glob("*") if (version / below).exists()]
    return str(max(found, key=lambda version: _numbers(version.name)) / below) if found else None


def importer(nsys: str) -> tuple[str | None, bool]:
    """Return the program that makes a report of a recording (.qdstrm), and whether nsys finds it by itself.

    nsys looks in host-linux-x64 beside its own folder; Nsight Compute keeps the importer in another folder of ``host``.
    """
    program = Path(nsys).resolve()
    if not program.parent.name.startswith("target-linux"):  # a launcher, which knows its own
        return next((str(file) for file in program.parents[1].glob(f"host*/{_IMPORTER}")), None), True
    host = program.parents[1]
    near = next((str(file) for file in host.glob(f"host-linux-*/{_IMPORTER}")), None)
    if near is not None:
        return near, True
    return next((str(file) for file in host.glob(f"*/{_IMPORTER}")), None), False


def missing_libraries(program: str) -> tuple[str, ...]:
    """Return the shared libraries that a program needs and the loader does not find; none where that cannot be told."""
    try:
        done = subprocess.run(["ldd", program], capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(line.split()[0] for line in done.stdout.splitlines() if line.rstrip().endswith("=> not found"))


def _numbers(text: str) -> list[int]:
    return [int(part) for part in _NUMBERS.findall(text)]
