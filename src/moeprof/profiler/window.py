"""The profile window: open while N requests run and none waits, closed after M steps or S seconds, every rank's trace checked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from moeprof.config.schema import Window
from moeprof.errors import WindowFailedError
from moeprof.profiler.load import Load
from moeprof.profiler.long_requests import LongRequests
from moeprof.profiler.trace_files import await_traces, trace_files

_POLL_S = 0.02
_GRACE_S = 5.0  # beyond an action's own limit, and for the stop after a failure
_Close = Literal["iterations", "seconds"]


class Progress(Protocol):
    """How far the server is, summed over its engines; None where it does not say."""

    @property
    def running(self) -> float | None:
        """Requests being worked on."""
        ...

    @property
    def waiting(self) -> float | None:
        """Requests in the queue."""
        ...

    @property
    def generated_tokens(self) -> float | None:
        """Tokens since the start."""
        ...

    @property
    def engine_steps(self) -> float | None:
        """Steps since the start."""
        ...


@dataclass(frozen=True, slots=True)
class Server:
    """What the window needs of a server.

    Attributes:
        address: Base address.
        model: Its name in requests.
        progress: Asks for its progress; None when it does not answer. Has a limit of its own.
        start: Opens the window; raises WindowFailedError.
        stop: Closes it and returns when traces are said to be written; raises WindowFailedError.
        engines: How many count steps: the data parallel size.
        ranks: How many write a trace; None: unknown.
        check: Called often; raises when the server is dead or stalled.
        collect: Returns the files of a profiler that is not the server's own, else None: the server's are waited for.
    """

    address: str
    model: str
    progress: Callable[[], Progress | None]
    start: Callable[[], None]
    stop: Callable[[], None]
    engines: int = 1
    ranks: int | None = None
    check: Callable[[], None] = lambda: None
    collect: Callable[[], tuple[Path, ...] | None] = lambda: None


@dataclass(frozen=True, slots=True)
class WindowResult:
    """What is known of a window whose traces are there.

    Attributes:
        opened_at, closed_at: Seconds since 1970, around /start_profile's answer and the call of /stop_profile.
        running_at_open, running_at_close: Requests that ran then.
        engine_steps: Steps of all engines while it was open; None when the server does not count them.
        closed_by: Whether its steps were done first, or its time.
        rank_files: Names of the traces, one per rank, in order of ranks.
        problems: Why it may not be representative, one sentence each.
    """

    opened_at: float
    closed_at: float
    running_at_open: int
    running_at_close: int | None
    engine_steps: int | None
    closed_by: _Close
    rank_files: tuple[str, ...]
    problems: tuple[str, ...] = ()


def profile_window(
    server: Server, load: Load, window: Window, traces: Path, *, open_s: float | None = None
) -> WindowResult:
    """Run long requests, profile a stretch of them, and wait for the traces.

    Args:
        server: The server.
        load: The requests; as many as must run while the window is open.
        window: Lengths and limits.
        traces: Folder that the profiler writes to.
        open_s: How long it may take until all requests run; None: ``window.start_s``.

    Raises:
        WindowFailedError: It could not be opened or closed, or a trace is missing, tiny, cut or not alone.
    """
    limit_s = window.start_s if open_s is None else open_s
    before = trace_files(traces)
    requests_s = limit_s + window.start_s + window.seconds + window.stop_s + _GRACE_S
    with LongRequests(server.address, server.model, load, requests_s) as requests:
        running_at_open = _until_all_run(server, requests, load.prompts, limit_s)
        opened_at, closed_at, first, last, closed_by = _hold_open(server, window)
        ended, failure = requests.ended, requests.failure
    files = _files(server, window, traces, before)
    running_at_close = None if last is None or last.running is None else round(last.running)
    steps = _steps(first, last)
    found = []
    if running_at_close is None:
        found.append("the server did not say how many requests ran when the window closed")
    elif running_at_close < load.prompts:
        found.append(
            f"{running_at_close} of {load.prompts} requests still ran when the window closed ({ended} had ended)"
        )
    elif ended:
        found.append(f"{ended} requests ended before the window closed, and were sent again")
    if failure is not None:
        found.append(f"requests of the window failed: {failure}")
    if steps == 0:
        found.append("no engine step was counted while the window was open")
    names = tuple(str(path.relative_to(traces)) for path in files)
    return WindowResult(opened_at, closed_at, running_at_open, running_at_close, steps, closed_by, names, tuple(found))


def _files(server: Server, window: Window, traces: Path, before: Collection[Path]) -> tuple[Path, ...]:
    return server.collect() or await_traces(
        traces,
        before=before,
        ranks=server.ranks,
        min_bytes=window.min_bytes,
        limit_s=window.traces_s,
        check=server.check,
    )


def _until_all_run(server: Server, requests: LongRequests, wanted: int, limit_s: float) -> int:
    deadline = time.monotonic() + limit_s
    seen: Progress | None = None
    while True:
        server.check()
        seen = server.progress() or seen
        if seen is not None and seen.running is not None and seen.running >= wanted and not seen.waiting:
            return round(seen.running)
        if requests.ended:
            if requests.failure is not None:
                raise WindowFailedError(f"requests for the profile window failed: {requests.failure}")
            raise WindowFailedError(
                f"a request ended before all {wanted} ran, so the profile window could not be opened{_state(seen)}",
                hint="raise window.output_len, or lower window.concurrency to what the server runs at a time",
            )
        if time.monotonic() >= deadline:
            raise WindowFailedError(
                f"{wanted} requests did not run together within {limit_s:g} s{_state(seen)}",
                hint="lower window.concurrency to what the server runs at a time (--max-num-seqs)",
            )
        time.sleep(_POLL_S)


def _hold_open(server: Server, window: Window) -> tuple[float, float, Progress | None, Progress | None, _Close]:
    try:
        _call(server.start, "/start_profile", window.start_s, server.check)
        opened_at = time.time()
        first = server.progress()
        last, closed_by = _until_done(server, window, first)
        closed_at = time.time()
    except Exception:
        # The profiler must not stay open in a server that lives on, but one that is dead or hangs gets no long wait.
        try:
            _call(server.stop, "/stop_profile", _GRACE_S, lambda: None)
        except Exception:  # noqa: BLE001 - the first failure is the one to tell
            pass
        raise
    _call(server.stop, "/stop_profile", window.stop_s + _GRACE_S, server.check)
    return opened_at, closed_at, first, last, closed_by


def _until_done(server: Server, window: Window, first: Progress | None) -> tuple[Progress | None, _Close]:
    deadline = time.monotonic() + window.seconds
    wanted = window.iterations * server.engines
    last = first
    while True:
        server.check()
        last = server.progress() or last
        if first is None or first.engine_steps is None:
            first = last
        if (_steps(first, last) or 0) >= wanted:
            return last, "iterations"
        if time.monotonic() >= deadline:
            return last, "seconds"
        time.sleep(_POLL_S)


def _steps(first: Progress | None, last: Progress | None) -> int | None:
    if first is None or last is None or first.engine_steps is None or last.engine_steps is None:
        return None
    return round(last.engine_steps - first.engine_steps)


def _state(seen: Progress | None) -> str:
    if seen is None or seen.running is None:
        return "; the server did not say how many run"
    return f"; {seen.running:g} ran and {seen.waiting or 0:g} waited"


def _call(action: Callable[[], None], name: str, limit_s: float, check: Callable[[], None]) -> None:
    """Call what may take long in a thread, so that a dead server and a limit end the wait."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            action()
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            failures.append(error)

    thread = threading.Thread(target=run, name=f"moeprof{name.replace('/', '-')}", daemon=True)
    thread.start()
    deadline = time.monotonic() + limit_s
    while thread.is_alive():
        thread.join(_POLL_S)
        check()
        if thread.is_alive() and time.monotonic() >= deadline:
            raise WindowFailedError(
                f"the server did not answer {name} within {limit_s:g} s",
                hint="a shorter window is written faster; window.stop_s and window.start_s are the limits",
            )
    if failures:
        raise failures[0]
