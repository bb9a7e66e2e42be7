"""Which processes of an export are ranks, what their keys are, and which rows are theirs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from moeprof.traces import ranks, schema
from moeprof.traces.nsys.about import About
from moeprof.traces.nsys.host import THREAD_BITS, pid_of, process_of

# How serving engines name the processes that work: VLLM::Worker_DP0_TP1_EP1, VLLM::EngineCore_DP1, sglang::scheduler_TP0.
_WORKER = re.compile(r"(?:Worker|EngineCore|scheduler)((?:_(?:DP|PP|TP|EP|PCP|DCP)\d+)+)", re.IGNORECASE)
# What marks steps of an engine, by how it begins (the families of markers themselves are the analyzers' matter).
_STEPS = r"^(moeprof\.iter#|execute_(\d+_)?context_|step\[|ProfilerStep#)"
_LAUNCHES = "LaunchKernel|LaunchCooperativeKernel|GraphLaunch"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The processes that are ranks (null: rows without one), and for each other process its calls and ranges."""

    ranks: tuple[int | None, ...]
    others: tuple[tuple[int, int, int], ...]


def choose(gpu: pl.DataFrame, calls: pl.DataFrame, ranges: pl.DataFrame) -> Chosen:
    """Take the processes with GPU rows or kernel launches; without any, those that mark steps; else all with ranges."""
    by_calls = _by_process(calls)
    by_ranges = _by_process(ranges)
    everyone = sorted({*by_calls, *by_ranges})
    launching = _named(calls, _LAUNCHES)
    own = gpu["process"].unique().to_list()
    if own and None in own and len(everyone) <= 1:  # old or trimmed exports do not say whose rows they are
        own = [process for process in own if process is not None] or everyone or [None]
    working: list[int | None] = sorted({*own, *launching}, key=lambda process: (process is not None, process or 0))
    if not working:
        working = [*(_named(ranges, _STEPS) or everyone)] or [None]
    others = [process for process in everyone if process not in working]
    return Chosen(
        tuple(working), tuple((process, by_calls.get(process, 0), by_ranges.get(process, 0)) for process in others)
    )


def keys(chosen: Sequence[int | None], gpu: pl.DataFrame, about: About, name: str) -> dict[int | None, str | None]:
    """Return the rank key of each process.

    One process: the key that the file's name gives, else that of its own name, else None. Several: their own names,
    else the device where each works on one of its own, else their process ids; after the key of the file's name.
    """
    file = ranks.key_of_name(name)
    own = {process: _engine_key(process, about) for process in chosen}
    if len(chosen) == 1:
        return {process: file or own[process] for process in chosen}
    if len({key for key in own.values() if key}) < len(chosen):
        devices = gpu.group_by("process").agg(pl.col("device").unique()).drop_nulls("process")
        used = {process: found for process, found in devices.iter_rows() if len(found) == 1 and found[0] is not None}
        single = {process: used[process][0] for process in chosen if process in used}
        if len(set(single.values())) == len(chosen):
            own = {process: f"device{single[process]}" for process in chosen}
        else:
            own = {process: "unknown" if process is None else f"pid{pid_of(process)}" for process in chosen}
            if len(set(own.values())) < len(chosen):  # one process id on several machines
                own = {process: f"process{process}" for process in chosen}
    return {process: f"{file}_{key}" if file else key for process, key in own.items()}


def _engine_key(process: int | None, about: About) -> str | None:
    if process is None:
        return None
    main_thread = process | pid_of(process)
    for name in (about.process_names.get(process), about.thread_names.get(main_thread)):
        if name and (found := _WORKER.search(name)):
            return found[1].strip("_").lower()
    return None


def of(
    process: int | None, gpu: pl.DataFrame, calls: pl.DataFrame, ranges: pl.DataFrame, *, alone: bool
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return the rows of one process; a process that is alone also has the GPU rows that name none."""
    mine = pl.col("process").is_null() if process is None else pl.col("process") == process
    if alone and process is not None:
        mine = mine | pl.col("process").is_null()
    if alone and gpu["process"].n_unique() <= 1:
        rows = gpu
    else:
        rows = gpu.filter(mine)
    if process is None:
        return rows, calls.clear(), ranges.clear()
    threads = process_of(pl.col("thread")) == process
    return rows, calls.filter(threads), ranges.filter(threads)


def tracks(
    rows: pl.DataFrame, calls: pl.DataFrame, ranges: pl.DataFrame, about: About
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return `schema.TRACKS`, and the track of each global thread id; streams of devices come after the threads."""
    threads = pl.concat([calls["thread"], ranges["thread"]]).unique().sort()
    numbers = pl.DataFrame({"thread": threads}).with_columns(pl.int_range(pl.len(), dtype=pl.UInt32).alias("track"))
    named = [
        (
            str(pid_of(thread)),
            str(thread & THREAD_BITS),
            about.process_names.get(thread & ~THREAD_BITS),
            about.thread_names.get(thread),
        )
        for thread in threads
    ]
    streams = rows.select("device", "stream").unique().sort("device", "stream", nulls_last=True)
    named += [(str(device), str(stream), None, None) for device, stream in streams.iter_rows()]
    columns = {name: kind for name, kind in schema.TRACKS.items() if name != "track"}
    frame = pl.DataFrame(named, schema=columns, orient="row")
    return frame.select(pl.int_range(pl.len(), dtype=pl.UInt32).alias("track"), *columns), numbers


def stream_tracks(rows: pl.DataFrame, first: int) -> pl.Series:
    """Return the track of each GPU row: its device and stream, numbered from `first` on as in `tracks`."""
    streams = rows.select("device", "stream").unique().sort("device", "stream", nulls_last=True)
    numbered = streams.with_columns((pl.int_range(pl.len(), dtype=pl.UInt32) + first).cast(pl.UInt32).alias("track"))
    return rows.select("device", "stream").join(
        numbered, on=["device", "stream"], how="left", nulls_equal=True, maintain_order="left"
    )["track"]


def _by_process(rows: pl.DataFrame) -> dict[int, int]:
    counts = rows.group_by("thread").len().drop_nulls("thread")
    grouped = counts.group_by(process_of(pl.col("thread")).alias("process")).agg(pl.col("len").sum())
    return dict(grouped.iter_rows())


def _named(rows: pl.DataFrame, pattern: str) -> list[int]:
    """Return the processes with a row whose name matches."""
    threads = rows["thread"].filter(schema.where(rows["name"], lambda names: names.str.contains(pattern))).unique()
    processes: list[int] = threads.to_frame().select(process_of(pl.col("thread"))).to_series().unique().sort().to_list()
    return processes
