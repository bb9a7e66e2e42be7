"""moeprof capturing blocks of the fake server, as a process of its own, and who is left of it afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "tests" / "fakes" / "server.py"
SAMPLES = ROOT / "samples" / "cpu"
_MARK = "MOEPROF_TEST_TAG"
_LIMIT_S = 100

CONFIG = f"""\
[server]
command = [{json.dumps(sys.executable)}, {json.dumps(str(SERVER))}]
model = "tiny"
ready_s = 60
stop_s = 5
stall_s = 30

[arms.base]
flags = ["--data-parallel-size", "2"]
[arms.base.expect]
moe_backend = "HUMMING"

[arms.mega]
extends = "base"
flags = ["--samples", {json.dumps(str(SAMPLES / "mega"))}, "--moe-backend", "triton"]
[arms.mega.expect]
moe_backend = "TRITON"

[workloads.small]
kind = "decode"
input_len = 8
output_len = 16
concurrency = [2, 4]
vocabulary = 100

[passes]
client = "builtin"
timed = 2
warmup = 1
timeout_s = 60

[window]
iterations = 2
seconds = 30
output_len = 400
start_s = 60
stop_s = 60
traces_s = 60
min_bytes = 1000

[sampler]
enabled = false
"""


class Blocks:
    """A folder with a configuration, and commands that run in it.

    Args:
        folder: Where.

    Attributes:
        store: The store's folder.
        environment: Of the commands.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / ".moeprof"
        self._tag = uuid.uuid4().hex
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), _MARK: self._tag}
        self.configure()

    def configure(self, *changes: tuple[str, str], more: str = "") -> None:
        """Write the configuration with texts replaced, each of which must be there."""
        text = CONFIG
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (self.folder / "moeprof.toml").write_text(text + more, encoding="utf-8")

    def start(self, *words: str, fail: str = "", program: tuple[str, ...] = ("-m", "moeprof")) -> subprocess.Popen[str]:
        """Start moeprof; stdout and stderr are kept in files, so that a reader never stops it."""
        with (self.folder / "stdout").open("w") as out, (self.folder / "stderr").open("w") as err:
            return subprocess.Popen(
                [sys.executable, *program, *words],
                cwd=self.folder,
                env={**self.environment, "FAKE_FAIL": fail},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                text=True,
            )

    def run(self, *words: str, fail: str = "", program: tuple[str, ...] = ("-m", "moeprof")) -> int:
        """Run moeprof to its end and return its code."""
        process = self.start(*words, fail=fail, program=program)
        try:
            return process.wait(_LIMIT_S)
        finally:
            process.kill()
            process.wait()

    @property
    def stdout(self) -> str:
        """What the newest command printed."""
        return (self.folder / "stdout").read_text()

    @property
    def stderr(self) -> str:
        """What the newest command said."""
        return (self.folder / "stderr").read_text()

    def error(self) -> list[str]:
        """Return the lines of the error, from its first one on."""
        lines = self.stderr.splitlines()
        first = next(number for number, line in enumerate(lines) if line.startswith("moeprof: error["))
        return lines[first:]

    def alive(self) -> dict[int, str]:
        """Return the living processes that inherited our mark, with their command lines; found without the code under test."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if f"{_MARK}={self._tag}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
        return {pid: words for pid, words in found.items() if words}  # a zombie has no command line

    def server(self) -> int | None:
        """Return the process id of the server; None while there is none."""
        return next((pid for pid, words in self.alive().items() if f"{SERVER} serve" in words), None)

    def runs(self) -> list[str]:
        """Return the names of the run folders, temporary ones too, as ``arm/NUMBER`` or ``arm/.tmp-...``."""
        found = sorted((self.store / "runs").glob("*/*"))
        names = [path.name if path.name.startswith(".") else path.name.partition("-")[2] for path in found]
        return sorted(f"{path.parent.name}/{name}" for path, name in zip(found, names, strict=True))

    def manifest(self, arm: str, block: int) -> dict[str, Any]:
        """Return the manifest of a stored run."""
        (path,) = (self.store / "runs" / arm).glob(f"*-{block}/manifest.json")
        return dict(json.loads(path.read_text()))

    def failed(self) -> Path:
        """Return the only folder of failed blocks."""
        (path,) = (self.store / "failed").iterdir()
        return path

    def locked(self) -> bool:
        """Tell whether somebody holds the store's lock, by its signature: it is emptied when the lock is let go."""
        path = self.store / "lock"
        return path.exists() and path.read_text() != ""

    def kill_all(self) -> None:
        """Kill whoever is left, at the end of a test."""
        for pid in self.alive():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def until(holds: Callable[[], bool], limit_s: float = 60.0) -> bool:
    """Wait until something holds; return whether it does."""
    deadline = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True
