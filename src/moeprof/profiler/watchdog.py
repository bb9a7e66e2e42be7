"""Tell a stall from slowness: requests are there, and for a while not one token comes.

The decision is a pure function of what was seen; the thread only looks, collects evidence once, and calls back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Literal

from moeprof.errors import CaptureError, StalledError
from moeprof.profiler import stacks
from moeprof.profiler.metrics import Progress
from moeprof.profiler.process import ServerProcess

Verdict = Literal["fine", "stalled", "died"]
_CLOSE_S = 60.0  # evidence of many processes takes a while


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the server.

    Attributes:
        at_s: When, on a monotonic clock.
        alive: Whether the process runs.
        progress: What its metrics say; None: it did not answer.
    """

    at_s: float
    alive: bool
    progress: Progress | None


@dataclass(frozen=True, slots=True)
class Watch:
    """What is remembered between looks.

    Attributes:
        stall_s: How long no progress is bearable.
        gap_s: A longer time between two looks counts as this much: a machine that slept proves nothing.
        quiet_s: Time without progress so far.
        last: The look before.
        known: The newest progress that was told.
    """

    stall_s: float
    gap_s: float
    quiet_s: float = 0.0
    last: Look | None = None
    known: Progress | None = None


def judge(watch: Watch, look: Look) -> tuple[Watch, Verdict]:
    """Return what to remember, and what the look means.

    A server that lives but does not answer makes no progress. An idle one, and one whose metrics do not say, cannot stall. Any new
    token or engine step is progress, however slow.

    Args:
        watch: What is remembered.
        look: What was seen now.
    """
    if not look.alive:
        return replace(watch, last=look), "died"
    passed_s = 0.0 if watch.last is None else min(max(0.0, look.at_s - watch.last.at_s), watch.gap_s)
    calm = look.progress is not None and (
        not look.progress.busy or _counters(look.progress) is None or _moved(watch.known, look.progress)
    )
    quiet_s = 0.0 if calm else watch.quiet_s + passed_s
    now = replace(watch, quiet_s=quiet_s, last=look, known=look.progress or watch.known)
    return now, "stalled" if quiet_s >= watch.stall_s else "fine"


class Watchdog:
    """Watch a server in a thread, from ``with`` to its end.

    The main flow learns of trouble twice: ``on_trouble`` is called in the watchdog's thread and should make what the main flow waits for
    end (cancel the task, kill the client); then :meth:`check`, or leaving the ``with`` block, raises.

    Args:
        process: The server.
        source: Asks the server for its progress; None when it does not answer. Must have a limit of its own.
        stall_s: How long no progress is bearable.
        on_trouble: Called once, with the error that will be raised.
        evidence: File for what was found: metrics, stacks, end of the log; None: not written.
        period_s: Time between looks.
    """

    def __init__(
        self,
        process: ServerProcess,
        source: Callable[[], Progress | None],
        *,
        stall_s: float,
        on_trouble: Callable[[CaptureError], None],
        evidence: Path | None = None,
        period_s: float = 1.0,
    ) -> None:
        self._process = process
        self._source = source
        self._on_trouble = on_trouble
        self._evidence = evidence
        self._period_s = min(period_s, stall_s / 4)
        self._watch = Watch(stall_s, gap_s=stall_s / 2)
        self._error: CaptureError | None = None
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="moeprof-watchdog", daemon=True)

    def check(self) -> None:
        """Raise what the watchdog found, if anything.

        Raises:
            StalledError: Requests are there and no token came for ``stall_s``.
            ServerDiedError: The server ended.
        """
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Stop watching; safe to call again."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join(_CLOSE_S)

    def __enter__(self) -> Watchdog:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        # A failed pass is only the consequence of what was found here; a wish of the user's goes first.
        if self._error is not None and (error is None or isinstance(error, Exception)) and error is not self._error:
            raise self._error from error

    def _run(self) -> None:
        while not self._end.wait(self._period_s):
            progress = self._source()
            look = Look(time.monotonic(), self._process.alive(), progress)
            self._watch, verdict = judge(self._watch, look)
            if verdict != "fine" and not self._end.is_set():
                self._error = self._process.died("while it was measured") if verdict == "died" else self._stalled()
                self._on_trouble(self._error)
                return

    def _stalled(self) -> StalledError:
        seen = self._watch.last.progress if self._watch.last else None
        state = _sentence(seen, self._watch.known)
        error = StalledError(
            f"the server made no progress for {self._watch.stall_s:g} s: {state}",
            path=str(self._evidence or self._process.log),
            hint="the stacks show where its processes wait; stall_s is the limit",
        )
        tail = self._process.telling()
        text = f"{error.message}\nlast metrics: {self._watch.known}\n\n{stacks.dump(self._process.members())}"
        if self._evidence is not None:
            try:
                self._evidence.write_text(text + "\n== end of the log\n" + "\n".join(tail) + "\n")
            except OSError as refused:  # a full disk must not hide the stall
                error.add_note(f"the evidence could not be written: {refused}")
        if tail:
            error.add_note("\n".join(tail))
        return error


def _counters(progress: Progress) -> tuple[int | None, int | None] | None:
    counters = (progress.generated_tokens, progress.engine_steps)
    return None if counters == (None, None) else counters


def _moved(before: Progress | None, now: Progress) -> bool:
    return before is None or _counters(before) != _counters(now)


def _sentence(seen: Progress | None, known: Progress | None) -> str:
    if seen is None:
        return "it lives but does not answer"
    last = f"{known.generated_tokens} tokens" if known and known.generated_tokens is not None else "no count of tokens"
    return f"{seen.running or 0} requests running, {seen.waiting or 0} waiting, {last} so far"
