"""Traces after a window: whole, one per rank, and in time."""

from __future__ import annotations

import gzip
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from moeprof.errors import ServerDiedError, WindowFailedError
from moeprof.profiler.trace_files import await_traces, is_complete, trace_files

FILLING = random.Random(0).randbytes(4000).hex()
TRACE = (
    '{"traceEvents":[{"name":"' + FILLING + '"},\n{"ph":"i","s":"g","name":"Record Window End","pid":"","ts":1.0}\n]'
    ',"traceName":"t"}\n'
).encode()


def name(rank: int, time_: int = 1796074479228585040) -> str:
    return f"dp{rank}_pp0_tp0_dcp0_ep{rank}_rank0.{time_}.pt.trace.json.gz"


def put(folder: Path, file: str, content: bytes | None = None) -> Path:
    path = folder / file
    path.write_bytes(gzip.compress(TRACE) if content is None else content)
    return path


def wait(folder: Path, *, before: tuple[Path, ...] = (), ranks: int | None = 2, limit_s: float = 30.0, settle_s: float = 0.5,
         check: Callable[[], None] = lambda: None) -> tuple[Path, ...]:  # fmt: skip
    return await_traces(
        folder, before=before, ranks=ranks, min_bytes=1000, limit_s=limit_s, settle_s=settle_s, check=check
    )


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (TRACE, True),
        (gzip.compress(TRACE), True),
        (gzip.compress(TRACE)[:-1], False),
        (gzip.compress(TRACE[:-20]), False),
        (gzip.compress(TRACE.replace(b"Record Window End", b"something else")), False),
        (TRACE[:-20], False),
        (b"", False),
    ],
)
def test_is_complete(tmp_path: Path, content: bytes, expected: bool) -> None:
    # WHEN a trace ends as the profiler ends it THEN, and only then, it is complete
    assert is_complete(put(tmp_path, "x", content)) is expected


def test_the_front_ends_and_earlier_traces_are_left_out(tmp_path: Path) -> None:
    # GIVEN a folder with an earlier window, the front end's trace, tables, and two ranks
    old = put(tmp_path, name(0, 1796074000000000000))
    put(tmp_path, "host_9.async_llm.1796069428328030820.pt.trace.json.gz", b"x")
    put(tmp_path, "dp0_pp0_tp0_dcp0_ep0_rank0.profiler_out.txt", b"x")
    new = put(tmp_path, name(0)), put(tmp_path, name(1))
    # THEN only the two are this window's
    assert trace_files(tmp_path) == [old, *new]
    assert wait(tmp_path, before=(old,)) == new
    assert wait(tmp_path, before=(old,), ranks=None) == new


def test_a_file_that_grows_is_waited_for(tmp_path: Path) -> None:
    # GIVEN a second rank whose trace is written in pieces, under a name for unfinished ones first
    first, content = put(tmp_path, name(0)), gzip.compress(TRACE)

    def write() -> None:
        unfinished = tmp_path / (name(1) + ".tmp")
        for end in (100, 1000, len(content)):
            unfinished.write_bytes(content[:end])
            time.sleep(0.3)
        unfinished.rename(tmp_path / name(1))

    writer = threading.Thread(target=write)
    writer.start()
    # THEN the wait ends with the whole of it
    assert wait(tmp_path) == (first, tmp_path / name(1))
    writer.join()
    assert (tmp_path / name(1)).read_bytes() == content


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "no trace appeared within 1 s after the window"),
        ({name(0): None}, "1 of 2 ranks left a trace within 1 s: dp0_pp0_tp0_dcp0_ep0_rank0"),
        ({name(0): None, name(1): gzip.compress(TRACE)[:2000]}, f"the trace {name(1)} ends in the middle"),
        ({name(0): None, name(1) + ".tmp": None}, f"the trace {name(1)}.tmp was not finished within 1 s"),
        (
            {name(0): None, name(0, 1796074479228585041): None},
            "rank dp0_pp0_tp0_dcp0_ep0_rank0 left two traces in one window",
        ),
        ({name(0): None, name(1): None, name(2): None}, "3 ranks left a trace, and 2 were expected"),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, files: dict[str, bytes | None], message: str) -> None:
    # GIVEN what a bad window leaves WHEN its time is over THEN exactly that is said
    for file, content in files.items():
        put(tmp_path, file, content)
    with pytest.raises(WindowFailedError) as caught:
        wait(tmp_path, limit_s=1.0)
    assert caught.value.message == message


def test_a_tiny_trace_holds_nothing(tmp_path: Path) -> None:
    # GIVEN a trace that is whole and has no events
    tiny = gzip.compress(b'{"traceEvents":[{"name":"Record Window End"}]}', mtime=0)
    put(tmp_path, name(0), tiny)
    # THEN it is refused at once
    with pytest.raises(WindowFailedError, match=f"has {len(tiny)} bytes, so little that nothing can be in it"):
        wait(tmp_path, ranks=1)


def test_a_dead_server_ends_the_wait(tmp_path: Path) -> None:
    # GIVEN a server that died WHEN its traces are waited for THEN its death is what is told
    def check() -> None:
        raise ServerDiedError("gone")

    with pytest.raises(ServerDiedError):
        wait(tmp_path, check=check)
