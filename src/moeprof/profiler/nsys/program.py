"""Where nsys is, which version, and whether it can make reports of what it records."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from moeprof import nsight
from moeprof.errors import ConfigError

_VERSION = re.compile(r"version (\d+(?:\.\d+)+)")
_LIMIT_S = 60


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
    path = given or nsight.find("nsys", environ)
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
    importer, near = nsight.importer(path)
    return Nsys(path, tuple(int(part) for part in found[1].split(".")), importer, near)
