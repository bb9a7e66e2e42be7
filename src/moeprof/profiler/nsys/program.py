"""Where nsys is, which version, and whether it can make reports of what it records."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from moeprof.errors import ConfigError

_USUAL = ("/opt/nvidia/nsight-systems/*/bin/nsys", "/opt/nvidia/nsight-compute/*/host/target-linux-*/nsys")
_IMPORTER = "QdstrmImporter"
_VERSION = re.compile(r"version (\d+(?:\.\d+)+)")
_LIMIT_S = 60
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Nsys:
    """An installed nsys.

    Attributes:
        path: The program.
        version: As it says it.
        importer: The program that turns a recording (.qdstrm) into a report, in the folder where nsys looks for it or
            in another one of the same installation; None: there is none.
        finds_importer: Whether nsys finds it by itself.
    """

    path: str
    version: tuple[int, ...]
    importer: str | None
    finds_importer: bool


def find_nsys(given: str | None = None, environ: Mapping[str, str] | None = None) -> Nsys:
    """Return the nsys of the configuration, of PATH, or the newest in the usual folders; Nsight Compute brings one, too.

    Raises:
        ConfigError: There is none, or it does not run.
    """
    environ = os.environ if environ is None else environ
    path = given or which("nsys", path=environ.get("PATH")) or _newest()
    if path is None:
        raise ConfigError(
            "profiler nsys needs NVIDIA Nsight Systems, and no nsys was found",
            hint="install it, or name the program: profiler.nsys; moeprof doctor tells what is here",
        )
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"nsys does not run: {error}", path=path) from error
    found = _VERSION.search(done.stdout)
    if found is None:
        raise ConfigError("this program does not say that it is nsys", path=path, hint="profiler.nsys names it")
    importer, near = _importer(Path(path).resolve())
    return Nsys(path, tuple(int(part) for part in found[1].split(".")), importer, near)


def _importer(program: Path) -> tuple[str | None, bool]:
    """Return the importer and whether it lies where nsys looks: in host-linux-x64 beside the program's folder.

    A launcher script in ``bin`` finds its own; Nsight Compute keeps the importer in another folder of ``host``.
    """
    if program.parent.name == "bin":
        return next((str(file) for file in program.parents[1].glob(f"host*/{_IMPORTER}")), None), True
    host = program.parents[1]
    near = next((str(file) for file in host.glob(f"host-linux-*/{_IMPORTER}")), None)
    if near is not None:
        return near, True
    return next((str(file) for file in host.glob(f"*/{_IMPORTER}")), None), False


def _newest() -> str | None:
    found = [file for pattern in _USUAL for file in Path("/").glob(pattern.removeprefix("/"))]
    return str(max(found, key=lambda file: [int(part) for part in _NUMBER.findall(str(file))])) if found else None
