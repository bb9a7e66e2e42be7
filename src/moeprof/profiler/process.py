"""A server in a session of its own: started, awaited, stopped, with nobody left behind.

Ctrl-C, SIGTERM and an exception all leave through the context manager; a SIGKILL of ourselves is what the guard is for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from moeprof.errors import CaptureError, ConfigError, NotReadyError, ServerDiedError
from moeprof.profiler import excerpt
from moeprof.profiler.family import Ending, Family, Member, end, kill
from moeprof.profiler.fetch import fetch
from moeprof.profiler.guard import Guard

_STEP_S = 0.2
_ASK_S = 2.0  # one question about health
_PROGRESS_S = 5.0
_Error = TypeVar("_Error", bound=CaptureError)


class ServerProcess:
    """A program with all that it starts, its output in a file. Use :meth:`start`.

    Args:
        process: The leader of the session.
        guard: Who ends the session if we cannot.
        family: What identifies its processes.
        log: File that its output goes to.
        stop_s: How long it may take to end before it is killed.
        redact: Takes secrets out of a line before the line is shown.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        guard: Guard,
        family: Family,
        *,
        log: Path,
        stop_s: float,
        redact: Callable[[str], str],
    ) -> None:
        self.log = log
        self._process = process
        self._guard = guard
        self._family = family
        self._stop_s = stop_s
        self._redact = redact
        self._ending: Ending | None = None
        self._stopping = threading.RLock()

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        log: Path,
        cwd: Path | None = None,
        stop_s: float = 15.0,
        scratch: Path | None = None,
        redact: Callable[[str], str] = str,
    ) -> ServerProcess:
        """Start a program.

        Args:
            argv: Its words.
            env: Its whole environment.
            log: File for its stdout and stderr; made anew, with its folder.
            cwd: Its working directory; None: ours.
            stop_s: How long it may take to end after TERM.
            scratch: Temporary folder that the guard removes if we are killed.
            redact: Takes secrets out of a line before the line is shown.

        Raises:
            ConfigError: There is no such program, or it cannot be run.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        guard = Guard(stop_s=stop_s, scratch=scratch)
        family = Family(None, None, guard.token)
        try:
            with log.open("wb") as stream:
                process = subprocess.Popen(
                    list(argv),
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    cwd=cwd,
                    env={**env, **guard.mark},
                    start_new_session=True,
                )
            family = guard.watch(process.pid)
            return cls(process, guard, family, log=log, stop_s=stop_s, redact=redact)
        except BaseException as error:
            kill(family)
            guard.dismiss()
            if isinstance(error, OSError) and error.filename != str(log):
                raise _not_started(argv, cwd, error) from error
            raise

    @property
    def pid(self) -> int:
        """Process id of the leader, which is its group's and session's as well."""
        return self._process.pid

    @property
    def guard_pid(self) -> int:
        """Process id of the guard."""
        return self._guard.pid

    @property
    def mark(self) -> dict[str, str]:
        """Environment for a helper of this server, such as a load client: it ends with the server in any case."""
        return self._guard.mark

    def alive(self) -> bool:
        """Return whether the leader runs."""
        return self._process.poll() is None

    def returncode(self) -> int | None:
        """Return the leader's exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    def members(self) -> list[Member]:
        """Return the living processes, the leader first."""
        self._process.poll()
        return self._family.members()

    def tail(self, lines: int) -> list[str]:
        """Return the last lines of the log, secrets taken out."""
        return [self._redact(line) for line in excerpt.tail(self.log, lines)]

    def telling(self) -> list[str]:
        """Return the lines of the log that tell of errors, and its end, secrets taken out."""
        return [self._redact(line) for line in excerpt.telling(self.log)]

    def died(self, when: str) -> ServerDiedError:
        """Return the error of a server that ended by itself.

        Args:
            when: When it ended, as part of a sentence: ``before it was ready``.
        """
        code = self._process.wait()
        cause = excerpt.cause(self.log)
        because = f": {self._redact(cause)}" if cause else ""
        error = ServerDiedError(
            f"the server {_ended(code)} {when}{because}", path=str(self.log), hint=_advice(code, self.log)
        )
        return _with_log(error, self.telling())

    def wait_ready(self, url: str, limit_s: float, progress: Callable[[float, str], None] | None = None) -> float:
        """Wait until the health address answers 200, and return the seconds that it took.

        Args:
            url: Health address.
            limit_s: How long that may take.
            progress: Called every few seconds with the seconds gone and the log's last line.

        Raises:
            ServerDiedError: The process ended meanwhile.
            NotReadyError: The limit ran out.
        """
        began = time.monotonic()
        told = began
        while True:
            left_s = limit_s - (time.monotonic() - began)
            answer = fetch(url, max(0.1, min(_ASK_S, left_s)))
            if not self.alive():  # looked at after the answer, which another server on this port may have given
                raise self.died("before it was ready")
            if answer.status == 200:
                return time.monotonic() - began
            if (now := time.monotonic()) - began >= limit_s:
                seen = "did not answer" if answer.late else answer.seen
                error = NotReadyError(
                    f"the server was not ready within {limit_s:g} s: {url} {seen} at the end",
                    path=str(self.log),
                    hint="the end of the log tells what it was doing; ready_s is the limit",
                )
                raise _with_log(error, self.telling())
            if progress is not None and now - told >= _PROGRESS_S:
                told = now
                progress(now - began, "".join(self.tail(1)))
            time.sleep(min(_STEP_S, max(0.0, limit_s - (now - began))))

    def wait(self, limit_s: float) -> int:
        """Wait until the program has ended by itself, and return its exit code.

        Raises:
            CaptureError: The limit ran out.
        """
        try:
            return self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            error = CaptureError(f"the command did not end within {limit_s:g} s", path=str(self.log))
            raise _with_log(error, self.telling()) from None

    def stop(self, stop_s: float | None = None) -> Ending:
        """End the server and all that it started; safe to call again.

        Interrupted while it waits, it kills at once and lets the interruption go on.

        Args:
            stop_s: How long the server may take after TERM; None: as given at the start.

        Returns:
            Who had to be killed.
        """
        with self._stopping:  # the watchdog's thread may stop it as well
            if self._ending is None:
                self._ending = self._end(self._stop_s if stop_s is None else stop_s)
            return self._ending

    def _end(self, stop_s: float) -> Ending:
        try:
            ending = end(self._family, stop_s, self._process.poll)
        except BaseException:
            self._dismiss(kill(self._family, self._process.poll))
            raise
        self._dismiss(ending)
        return ending

    def _dismiss(self, ending: Ending) -> None:
        if not ending.left:  # otherwise the guard has another try when we are gone
            self._process.wait()
            self._guard.dismiss()

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _ended(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _advice(code: int, log: Path) -> str:
    if code == -signal.SIGKILL:
        return "the kernel kills a process when memory runs out: look at dmesg, or give the server less"
    return f"read {log.name} from the end; the first error of a worker is usually the cause"


def _with_log(error: _Error, lines: list[str]) -> _Error:
    if lines:
        error.add_note("\n".join(lines))
    return error


def _not_started(argv: Sequence[str], cwd: Path | None, error: OSError) -> ConfigError:
    reason = (error.strerror or str(error)).lower()
    if cwd is not None and not cwd.is_dir():
        return ConfigError("the server's working directory does not exist", path=str(cwd))
    if isinstance(error, FileNotFoundError) and os.sep not in argv[0]:
        return ConfigError(
            f"the command {argv[0]} was not found on PATH",
            hint="name the program with its folder in server.command, or activate its environment",
        )
    return ConfigError(f"the command {argv[0]} cannot be run: {reason}", path=argv[0])
