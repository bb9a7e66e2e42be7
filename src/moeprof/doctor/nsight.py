"""Checks of Nsight Systems and Nsight Compute: there, able to make reports, and fitting what is installed beside them."""

from __future__ import annotations

from moeprof import nsight
from moeprof.doctor.check import Result, answer
from moeprof.doctor.versions import dotted, numbers, version_of

_NVTX_BREAKS_AT = (0, 2, 12)  # from here on, an nsys of 2023.4 or older sees no range of the Python package
_NSYS_KNOWS_IT = (2024, 1)
_NCU_OF_1 = (2026, 2, 1)  # nsight-python 1 attaches to a running process, which older ones cannot


def nsys() -> Result:
    """Check nsys: needed for `--profiler nsys` and for reading .nsys-rep."""
    program = nsight.find("nsys")
    text = None if program is None else answer(program, "--version")
    if program is None or text is None:
        return Result("missing", "nsys is not here", "optional: install NVIDIA Nsight Systems, for --profiler nsys")
    version, nvtx = numbers(text), version_of("nvtx")
    what = f"nsys {dotted(version)}"
    if nvtx is not None and numbers(nvtx) >= _NVTX_BREAKS_AT and version < _NSYS_KNOWS_IT:
        return Result(
            "warn",
            f"{what} does not see the ranges of the Python package nvtx {nvtx}",
            "a newer Nsight Systems, or an older nvtx",
        )
    importer, found = nsight.importer(program)
    if importer is None and not found:
        return Result("warn", f"{what} has no importer: recordings stay .qdstrm files", "install a full Nsight Systems")
    missing = () if importer is None else nsight.missing_libraries(importer)
    if missing:
        return Result(
            "warn",
            f"{what}: its importer does not find {', '.join(missing)}, so recordings stay .qdstrm files",
            "install libdw1 and libelf1, or put their folder into LD_LIBRARY_PATH",
        )
    aside = "" if found else "; it does not find its importer, which moeprof starts for it"
    return Result("ok", f"{what}{aside}")


def ncu() -> Result:
    """Check ncu: needed for `moeprof kernels`."""
    program = nsight.find("ncu")
    text = None if program is None else answer(program, "--version")
    if text is None:
        return Result("missing", "ncu is not here", "optional: install NVIDIA Nsight Compute, for moeprof kernels")
    version = numbers(text.rpartition("Version")[2] or text)
    driver = version_of("nsight-python")
    if driver is not None and numbers(driver) >= (1,) and version < _NCU_OF_1:
        return Result(
            "warn",
            f"ncu {dotted(version)} is too old for nsight-python {driver}; moeprof kernels starts ncu itself",
            f"nsight-python below 1, or ncu {dotted(_NCU_OF_1)}",
        )
    return Result("ok", f"ncu {dotted(version)}")
