"""Nested ranges of one process: a stack, written to torch.profiler and to NVTX, and nothing at all while nobody records."""

from __future__ import annotations

import functools
import importlib
import logging
import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol

NVTX_FLAG = "MOEPROF_MARKERS_NVTX"
NSYS_SESSION = "NSYS_PROFILING_SESSION_ID"  # set by nsys in what it starts
logger = logging.getLogger("vllm.moeprof")


class Writer(Protocol):
    """Where ranges go."""

    def enter(self, name: str) -> Any:
        """Begin a range; return what `leave` needs to end it."""

    def leave(self, handle: Any) -> None:
        """End the range that was begun last."""


class Ranges:
    """Open ranges, innermost last.

    Attributes:
        open: Names and handles. Read it to learn whether an iteration is marked at all: an empty list costs nothing.
    """

    __slots__ = ("_writers", "open", "recording")

    def __init__(self, writers: Sequence[Writer], recording: Callable[[], bool]) -> None:
        self._writers = tuple(writers)
        self.recording = recording
        self.open: list[tuple[str, list[tuple[Writer, Any]]]] = []

    def push(self, name: str) -> None:
        """Open a range inside the innermost one."""
        handles: list[tuple[Writer, Any]] = []
        self.open.append((name, handles))
        try:
            for writer in self._writers:
                handles.append((writer, writer.enter(name)))
        except Exception as error:  # noqa: BLE001 - markers must not end a request
            self._give_up(error)

    def close(self, depth: int = 0) -> None:
        """Close ranges, innermost first, until `depth` of them are left."""
        while len(self.open) > max(depth, 0):
            _, handles = self.open.pop()
            for writer, handle in reversed(handles):
                try:
                    writer.leave(handle)
                except Exception as error:  # noqa: BLE001 - as above
                    self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self.recording = never
        logger.warning("moeprof markers: not active any more: %s: %s", type(error).__name__, error)
        self.close()


def never() -> bool:
    """Return False."""
    return False


class TorchWriter:
    """Ranges of torch.profiler."""

    def __init__(self, record_function: Callable[[str], Any]) -> None:
        self._record_function = record_function

    def enter(self, name: str) -> Any:
        """Begin a range."""
        scope = self._record_function(name)
        scope.__enter__()
        return scope

    def leave(self, handle: Any) -> None:
        """End it."""
        handle.__exit__(None, None, None)


class NvtxWriter:
    """NVTX ranges: in domain ``moeprof`` through the nvtx module, in the default domain through torch."""

    def __init__(self, push: Callable[[str], object], pop: Callable[[], object]) -> None:
        self._push, self._pop = push, pop

    def enter(self, name: str) -> None:
        """Begin a range."""
        self._push(name)

    def leave(self, handle: Any) -> None:
        """End the innermost range."""
        self._pop()


def nvtx_writer(torch: Any) -> NvtxWriter | None:
    """Return the best NVTX writer of this environment, if there is one."""
    try:
        nvtx = importlib.import_module("nvtx")
        return NvtxWriter(
            functools.partial(nvtx.push_range, domain="moeprof"), functools.partial(nvtx.pop_range, domain="moeprof")
        )
    except Exception:  # noqa: BLE001 - absent, or of another kind: torch's own is next
        pass
    try:
        if not torch.cuda.is_available():
            return None
        torch.cuda.nvtx.range_push("moeprof")
        torch.cuda.nvtx.range_pop()
        return NvtxWriter(torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop)
    except Exception:  # noqa: BLE001 - a build without NVTX
        return None


@functools.cache
def of_this_process() -> Ranges:
    """Return the ranges of this process: one stack, for the thread in which a worker makes its calls."""
    torch = importlib.import_module("torch")
    writers: list[Writer] = [TorchWriter(torch.profiler.record_function)]
    nvtx = nvtx_writer(torch)
    if nvtx is not None:
        writers.append(nvtx)
    wanted = os.environ.get(NVTX_FLAG) == "1" or NSYS_SESSION in os.environ
    always = wanted and nvtx is not None
    enabled: Callable[[], bool] = torch.autograd._profiler_enabled
    if not torch.cuda.is_available():
        return Ranges(writers, enabled)
    capturing: Callable[[], bool] = torch.cuda.is_current_stream_capturing
    return Ranges(writers, lambda: (always or enabled()) and not capturing())
