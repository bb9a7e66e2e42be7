"""Small builders: events as a trace file holds them, and ranks and traces read from them by the real reader.

Times are given in us, as numbers or decimal texts, since that is what files hold.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from moeprof.traces.open import open_trace
from moeprof.traces.trace import RankTrace, Trace

Event = dict[str, Any]

PROCESS = 4100
_TIMES = re.compile(r'("(?:ts|dur)": )"(-?[0-9.]+)"')


def trace_json(events: Iterable[Event], **top: Any) -> bytes:
    """Return a trace file: the events, with `top` as further top-level keys. Times given as text stay exact."""
    text = json.dumps({"schemaVersion": 1, **top, "traceEvents": list(events)}, indent=1)
    return _TIMES.sub(r"\1\2", text).encode()


def event(category: str, name: str, ts: Any, dur: Any, *, pid: Any, tid: Any, ph: str = "X", **args: Any) -> Event:
    """Return one event; `args` that are None are left out."""
    made = {"ph": ph, "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
    made["args"] = {key: value for key, value in args.items() if value is not None}
    return {key: value for key, value in made.items() if value is not None}


def kernel(
    name: str,
    ts_us: Any,
    dur_us: Any,
    *,
    stream: int = 7,
    device: int = 0,
    correlation: int | None = None,
    category: str = "kernel",
    **args: Any,
) -> Event:
    """Return a GPU row: a kernel, or with `category` a gpu_memcpy or gpu_memset."""
    args = {"device": device, "stream": stream, "correlation": correlation, **args}
    return event(category, name, ts_us, dur_us, pid=device, tid=stream, **args)


def launch(
    ts_us: Any,
    dur_us: Any = 4,
    *,
    correlation: int,
    name: str = "cudaLaunchKernel",
    category: str = "cuda_runtime",
    pid: Any = PROCESS,
    tid: Any = None,
    **args: Any,
) -> Event:
    """Return a host call that carries a correlation id."""
    return event(
        category, name, ts_us, dur_us, pid=pid, tid=pid if tid is None else tid, correlation=correlation, **args
    )


def graph_launch(ts_us: Any, dur_us: Any = 20, *, correlation: int, **rest: Any) -> Event:
    """Return a cudaGraphLaunch: all kernels of the replay carry its correlation id."""
    return launch(ts_us, dur_us, correlation=correlation, name="cudaGraphLaunch", **rest)


def marker(name: str, ts_us: Any, dur_us: Any, *, pid: Any = PROCESS, tid: Any = None, **args: Any) -> Event:
    """Return an annotation of the host."""
    return event("user_annotation", name, ts_us, dur_us, pid=pid, tid=pid if tid is None else tid, **args)


def cpu_op(name: str, ts_us: Any, dur_us: Any, *, pid: Any = PROCESS, tid: Any = None, **args: Any) -> Event:
    """Return an operator of the host."""
    return event("cpu_op", name, ts_us, dur_us, pid=pid, tid=pid if tid is None else tid, **args)


def thread_name(name: str, *, pid: Any = PROCESS, tid: Any = PROCESS) -> Event:
    """Return the metadata event that names a thread."""
    return {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}


def process_name(name: str, *, pid: Any = PROCESS) -> Event:
    """Return the metadata event that names a process."""
    return {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "args": {"name": name}}


def rank(events: Iterable[Event], *, key: str | None = "rank0", **top: Any) -> RankTrace:
    """Return one rank read from a file of these events."""
    return trace({key: events}, **top)[key]


def trace(ranks: Mapping[str | None, Iterable[Event]], **top: Any) -> Trace:
    """Return the ranks read from a folder with one file for each; the key is the file's name."""
    with tempfile.TemporaryDirectory() as folder:
        for key, events in ranks.items():
            (Path(folder) / f"{key or 'trace'}.pt.trace.json").write_bytes(trace_json(events, **top))
        return open_trace(folder)
