"""Checks of the machine: disk, memory, network loopback, limits."""

from __future__ import annotations

import os
import resource
import shutil
import socket
from pathlib import Path

from moeprof.doctor.check import Check, Result

_GIB = 1024**3
_LEAST_STORE = 2 * _GIB
_LEAST_CACHE = 10 * _GIB
_LEAST_MEMORY = 8 * _GIB
_LEAST_FILES = 4096


def checks(store: Path) -> list[Check]:
    """Return the checks, in the order they are shown.

    Args:
        store: The store's folder; it need not exist.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return [
        Check("disk-store", lambda: disk(store, _LEAST_STORE, "free space, or another folder: --store")),
        Check(
            "disk-cache", lambda: disk(cache, _LEAST_CACHE, "free space: vLLM and torch keep compiled kernels there")
        ),
        Check("memory", _memory),
        Check("cpus", _cpus),
        Check("loopback", _loopback),
        Check("open-files", _files),
        Check("ptrace", lambda: _ptrace(Path("/proc/sys/kernel/yama/ptrace_scope"))),
        Check("perf-events", lambda: _perf(Path("/proc/sys/kernel/perf_event_paranoid"))),
    ]


def disk(folder: Path, least: int, cure: str) -> Result:
    """Judge the free space where a folder is, or would be, and whether it can be written.

    Args:
        folder: The folder.
        least: Bytes that should be free.
        cure: What to do when they are not.
    """
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    what = f"{free / _GIB:.1f} GiB free at {folder}"
    if not os.access(place, os.W_OK):
        return Result("warn", f"{place} cannot be written", "make it writable, or use another folder")
    return Result("ok", what) if free >= least else Result("warn", what, cure)


def _memory() -> Result:
    lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    fields = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
    total, free = fields["MemTotal"], fields["MemAvailable"]
    what = f"{free / _GIB:.1f} of {total / _GIB:.1f} GiB available"
    return Result("ok", what) if free >= _LEAST_MEMORY else Result("warn", what, "a small model, or fewer ranks")


def _cpus() -> Result:
    count = len(os.sched_getaffinity(0))
    if count < 2:
        return Result("warn", "1 CPU: server, client and profiler share it", "2 or more for steady figures")
    return Result("ok", f"{count} CPUs")


def _loopback() -> Result:
    with socket.socket() as server:
        try:
            server.bind(("127.0.0.1", 0))
            server.listen(1)
            with socket.create_connection(server.getsockname(), timeout=5):
                return Result("ok", "a free port on 127.0.0.1 answers")
        except OSError as error:
            return Result(
                "missing", f"127.0.0.1 does not answer: {error.strerror}", "let this process use the loopback"
            )


def _files() -> Result:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < _LEAST_FILES:
        return Result(
            "warn",
            f"{soft} open files allowed",
            f"ulimit -n {_LEAST_FILES}" if hard >= _LEAST_FILES else "raise the hard limit",
        )
    return Result("ok", f"{'any number of' if soft == resource.RLIM_INFINITY else soft} open files allowed")


def _ptrace(setting: Path) -> Result:
    if not setting.exists():
        return Result("ok", "this kernel does not restrict ptrace")
    scope = int(setting.read_text(encoding="ascii"))
    if scope >= 2 and os.geteuid() != 0:
        return Result(
            "warn",
            f"ptrace scope {scope}: py-spy shows no stacks of a server that hangs",
            "sysctl kernel.yama.ptrace_scope=1",
        )
    return Result("ok", f"ptrace scope {scope}")


def _perf(setting: Path) -> Result:
    if not setting.exists():
        return Result("ok", "this kernel has no perf events")
    level = int(setting.read_text(encoding="ascii"))
    if level > 2 and os.geteuid() != 0:
        return Result(
            "warn", f"perf paranoid level {level}: nsys samples no CPU", "sysctl kernel.perf_event_paranoid=2"
        )
    return Result("ok", f"perf paranoid level {level}")
