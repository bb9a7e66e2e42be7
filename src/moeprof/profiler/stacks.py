"""What each process of a server is doing at this moment: py-spy's stacks where it is installed, the kernel's view otherwise."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from moeprof.profiler.family import Member

_DUMP_S = 10.0
_ALL_S = 45.0  # the server stands still anyway, but somebody waits for the answer
_MEMBERS = 64
_THREADS = 32


def find_py_spy() -> str | None:
    """Return the path of py-spy: from PATH, or beside our own interpreter."""
    return shutil.which("py-spy") or shutil.which("py-spy", path=str(Path(sys.executable).parent))


def dump(members: list[Member]) -> str:
    """Return a text with the stacks of processes, each under its id and name.

    Args:
        members: Whom to look at.
    """
    py_spy = find_py_spy()
    deadline = time.monotonic() + _ALL_S
    parts = []
    for member in members[:_MEMBERS]:
        wanted = py_spy is not None and time.monotonic() < deadline and _runs_python(member.pid)
        stacks = _with_py_spy(py_spy, member.pid) if py_spy is not None and wanted else None
        parts.append(f"== process {member.pid} {member.name}\n{stacks or _from_kernel(member.pid)}")
    if len(members) > _MEMBERS:
        parts.append(f"== {len(members) - _MEMBERS} more processes, not looked at")
    return "\n".join(parts) + "\n"


def _with_py_spy(program: str, pid: int) -> str | None:
    try:
        done = subprocess.run(
            [program, "dump", "--pid", str(pid)],
            capture_output=True,
            timeout=_DUMP_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:  # often a missing permission to trace
        return None
    return done.stdout.decode("utf-8", "replace").rstrip()


def _runs_python(pid: int) -> bool:
    try:
        return "python" in Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return False


def _from_kernel(pid: int) -> str:
    folder = Path(f"/proc/{pid}")
    wanted = ("State", "Threads", "VmRSS")
    lines = [line for line in _read(folder / "status").splitlines() if line.partition(":")[0] in wanted]
    try:
        threads = sorted((folder / "task").iterdir(), key=lambda item: int(item.name))
    except OSError:
        return "gone"
    for thread in threads[:_THREADS]:
        state = _read(thread / "stat").rpartition(")")[2].split()[:1]
        words = [thread.name, _read(thread / "comm").strip(), *state, _read(thread / "wchan").strip()]
        lines.append("thread " + " ".join(word for word in words if word))
        lines += [f"  {line}" for line in _read(thread / "stack").splitlines()]  # only for the superuser
    if len(threads) > _THREADS:
        lines.append(f"{len(threads) - _THREADS} more threads")
    return "\n".join(lines)


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
