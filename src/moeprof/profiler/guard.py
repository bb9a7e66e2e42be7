"""A small process that outlives us when we are killed, and ends what we started.

Nobody can clean up after a SIGKILL of himself. So each launch is preceded by a guard in a session of its own, which holds the read end of a
pipe whose write end only we hold. A goodbye on the pipe sends it home; an end of the pipe without one means that we are gone.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from moeprof.profiler.family import TOKEN_NAME, Family, end, kill, start_of

_GOODBYE = b"goodbye\n"
_EXIT_S = 5.0
_BIRTH_S = 0.5
_PROGRAM = "import sys; sys.path.append(sys.argv[1]); from moeprof.profiler.guard import main; main(sys.argv[2:])"


class Guard:
    """Our side: start the guard, tell it whom to watch, send it home.

    Args:
        stop_s: How long the guard leaves between TERM and KILL.
        scratch: A temporary folder to remove once the processes are gone; None: none.
    """

    def __init__(self, *, stop_s: float, scratch: Path | None = None) -> None:
        self.token = secrets.token_hex(16)
        reader, self._writer = os.pipe()  # neither end is inheritable, so that no server can hold the pipe open
        root = str(Path(__file__).resolve().parents[2])
        words = [root, self.token, str(stop_s), str(scratch.absolute()) if scratch else ""]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, *words],
                stdin=reader,
                stdout=subprocess.DEVNULL,  # a reader of our output must not wait for the guard
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        except BaseException:
            os.close(self._writer)
            raise
        finally:
            os.close(reader)

    @property
    def pid(self) -> int:
        """Process id of the guard."""
        return self._process.pid

    @property
    def mark(self) -> dict[str, str]:
        """Environment by which the guard knows a process, even before it was told its id."""
        return {TOKEN_NAME: self.token}

    def watch(self, pid: int) -> Family:
        """Tell the guard the leader of the session, and return the family."""
        family = Family(pid, start_of(pid), self.token)
        self._tell(f"watch {pid} {'' if family.started is None else family.started}\n".encode())
        return family

    def dismiss(self) -> None:
        """Send the guard home without harm to anyone, and wait until it is gone; safe to call twice."""
        if self._writer >= 0:
            self._tell(_GOODBYE)
            os.close(self._writer)
            self._writer = -1
        try:
            self._process.wait(_EXIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _tell(self, words: bytes) -> None:
        try:
            os.write(self._writer, words)
        except BrokenPipeError:  # somebody killed the guard: the server can still be stopped by us
            pass


def main(arguments: list[str]) -> None:
    """Run the guard: wait for the end of the pipe on stdin, then act on what it said.

    Args:
        arguments: Token, seconds between TERM and KILL, folder to remove or an empty word.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it goes when we go, not when a terminal does
    token, stop_s, scratch = arguments[0], float(arguments[1]), arguments[2]
    said = b""
    while (words := os.read(0, 4096)) and _GOODBYE not in said + words:
        said += words
    if words:
        return
    family = _family(said, token)
    if family.leader is None:
        time.sleep(_BIRTH_S)  # we may have died while the server was being forked: its environment is not its own yet
    if end(family, stop_s).left:
        kill(family)
    if scratch:
        _remove(Path(scratch))


def _family(said: bytes, token: str) -> Family:
    for line in reversed(said.decode("ascii", "replace").splitlines()):
        match line.split():
            case ["watch", pid, started]:
                return Family(int(pid), int(started), token)
            case ["watch", pid]:
                return Family(int(pid), None, token)
    return Family(None, None, token)


def _remove(folder: Path) -> None:
    if folder.is_symlink():
        return
    for _ in range(5):  # a file may appear while the tree is being removed
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.2)
