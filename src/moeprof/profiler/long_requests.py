"""The requests that run while the profile window is open: sent together, sent again when they end, cut off at its end."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType

from moeprof.config.schema import Window, Workload
from moeprof.errors import ConfigError
from moeprof.profiler.client import body, reasons
from moeprof.profiler.completion import Completion, complete
from moeprof.profiler.http import Address
from moeprof.profiler.load import Load

_JOIN_S = 10.0


def window_load(window: Window, workload: Workload, *, vocabulary: int) -> Load:
    """Return the window's requests: one per place of its concurrency, with prompts that no pass has sent.

    Args:
        window: Its concurrency and lengths come first.
        workload: What the window leaves open.
        vocabulary: Of the model.

    Raises:
        ConfigError: Neither says how many requests run at a time.
    """
    concurrency = window.concurrency or max(workload.concurrency, default=None)
    if concurrency is None:
        raise ConfigError(
            f"the profile window does not say how many requests run, and workload {workload.name} has no concurrency",
            hint="set window.concurrency",
        )
    return Load(
        prompts=concurrency,
        input_len=window.input_len or workload.input_len,
        output_len=window.output_len,
        concurrency=concurrency,
        seed=workload.seed + 1_000_003,
        vocabulary=vocabulary,
        temperature=workload.temperature,
    )


class LongRequests:
    """Run a load in a thread of its own from ``with`` to its end.

    Args:
        address: Base address of the server.
        model: Its name in requests.
        load: What to send, all of it at once.
        limit_s: Limit of each request.
    """

    def __init__(self, address: str, model: str, load: Load, limit_s: float) -> None:
        self._server = Address.of(address)
        self._bodies = [body(load, model, index) for index in range(load.prompts)]
        self._limit_s = limit_s
        self._ended: list[Completion] = []
        self._stop = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="moeprof-window-load", daemon=True)

    @property
    def ended(self) -> int:
        """Number of requests that ended, well or not."""
        return len(self._ended)

    @property
    def failure(self) -> str | None:
        """Why requests failed, with counts; None when none did."""
        return reasons(list(self._ended)) or None

    def __enter__(self) -> LongRequests:
        self._thread.start()
        self._ready.wait(_JOIN_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._stop.set)
            except RuntimeError:  # the loop is closed: all requests have ended
                pass
        self._thread.join(_JOIN_S)

    def _run(self) -> None:
        asyncio.run(self._send())

    async def _send(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ready.set()
        tasks = {asyncio.create_task(self._one(content)) for content in self._bodies}
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            while tasks and not stop.done():
                await asyncio.wait({*tasks, stop}, return_when=asyncio.FIRST_COMPLETED)
                tasks = {task for task in tasks if not task.done()}
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            stop.cancel()

    async def _one(self, content: bytes) -> None:
        """Keep one place busy: a profiler may take longer to start than a request lasts, and must not find an idle server."""
        while not self._stop.is_set():
            done = await complete(self._server, content, self._limit_s)
            self._ended.append(done)
            if reasons([done]):
                return
