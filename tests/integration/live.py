"""Run moeprof as a user does, with the real vLLM on the CPU, and see every process that it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import moeprof
from scripts import cpu_environment

ROOT = Path(__file__).parents[2]
BACKEND = ROOT / "extras" / "moeprof-cpu-backend" / "src"
CONFIG = ROOT / "examples" / "cpu" / "moeprof.toml"
LIMIT_S = 1200.0


def server_python() -> Path:
    """Return the Python of the environment with vLLM; skip where there is none."""
    try:
        return cpu_environment.environment(cpu_environment.REQUIREMENTS, check_only=True)
    except cpu_environment.Unavailable as reason:
        pytest.skip(f"no vLLM for the CPU: {reason} (make live makes it)")


def environment(python: Path) -> dict[str, str]:
    """Return the environment of a shell in which the server's Python comes first."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VLLM_", "MOEPROF_", "PYTHON"))}
    places = [BACKEND, Path(moeprof.__file__).parents[1]]
    return {
        **kept,
        "PATH": os.pathsep.join([str(python.parent), kept.get("PATH", os.defpath)]),
        "PYTHONPATH": os.pathsep.join(map(str, places)),
    }


def config(folder: Path, **changes: str) -> Path:
    """Write the model and the example's configuration for it, with texts replaced; return the file."""
    subprocess.run(
        [sys.executable, "-m", "moeprof_cpu_backend.model", str(folder / "model"), "--layers", "4"],
        env={**os.environ, "PYTHONPATH": str(BACKEND)},
        check=True,
        timeout=60,
    )
    text = CONFIG.read_text(encoding="utf-8")
    for old, new in {"../../build/demo/model": "./model", "../../build/demo/store": "store", **changes}.items():
        assert old in text
        text = text.replace(old, new)
    file = folder / "moeprof.toml"
    file.write_text(text, encoding="utf-8")
    return file


class Run:
    """A moeprof that runs in a folder; its children inherit the folder, by which they are found.

    Args:
        words: Its arguments.
        folder: Where it runs.
        env: Its environment.
    """

    def __init__(self, words: list[str], folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "moeprof", *words],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            print(line, end="", file=sys.__stderr__, flush=True)  # minutes of silence look like a hang

    @property
    def text(self) -> str:
        """Return what it has printed."""
        return "".join(self.lines)

    def wait(self, limit_s: float = LIMIT_S) -> int:
        """Wait for its end and return its code."""
        code = self.process.wait(limit_s)
        self._reader.join(30)
        return code

    def close(self) -> None:
        """Wait until its end is seen; nobody writes to its pipe any more."""
        self.process.wait()
        self._reader.join(30)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def until(self, holds: Callable[[], object], what: str, limit_s: float = LIMIT_S) -> None:
        """Wait until something holds while it runs."""
        deadline = time.monotonic() + limit_s
        while not holds():
            assert self.process.poll() is None, f"ended before {what}:\n{self.text}"
            assert time.monotonic() < deadline, f"not within {limit_s:g} s: {what}\n{self.text}"
            time.sleep(0.1)

    def others(self) -> dict[int, str]:
        """Return its living children and theirs, with their command lines."""
        found = processes(self.folder)
        found.pop(self.process.pid, None)
        return found


@contextmanager
def running(words: list[str], folder: Path, env: dict[str, str]) -> Iterator[Run]:
    """Run moeprof, and at the end kill whatever is left in the folder."""
    run = Run(words, folder, env)
    try:
        yield run
    finally:
        for pid in processes(folder):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        run.close()


def processes(folder: Path) -> dict[int, str]:
    """Return the living processes whose working directory is in a folder, found without the code under test."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if not (place / "cwd").readlink().is_relative_to(folder.resolve()):
                continue
            line = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:  # it has ended, is a zombie, or is not ours
            continue
        found[int(place.name)] = line
    return found


def until(holds: Callable[[], object], limit_s: float = 90.0) -> bool:
    """Wait until something holds; return whether it does."""
    deadline = time.monotonic() + limit_s
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.1)
    return bool(holds())


def gone(folder: Path, limit_s: float = 90.0) -> dict[int, str]:
    """Wait until no process is left in a folder; return those that are."""
    until(lambda: not processes(folder), limit_s)
    return processes(folder)
