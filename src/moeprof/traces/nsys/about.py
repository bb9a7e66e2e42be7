"""What an export says about itself: versions, devices, start of the session, graph mode, names of processes.

Only what is named here is taken: the same tables hold command lines, working directories, users and whole environments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from moeprof.traces.nsys.export import Export
from moeprof.traces.nsys.words import strings

_META = ("META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE")
_MODE = "CUDA_GRAPH_TRACE_OPTIONS:MODE"  # the whole key, or the end of one that names a process
_VERSION = "EXPORT_PRODUCT_VERSION"
_SCHEMA = "EXPORT_SCHEMA_VERSION"
_PATH = re.compile(r"(?<![\w/])(?:~|\.{0,2})/[^\s,;:'\"]+")


@dataclass(frozen=True, slots=True)
class About:
    """What an export says about itself.

    Attributes:
        version: Version of nsys that made the export.
        schema: Version of its tables.
        graph_mode: ``node``, ``graph`` or ``off``; None where the file does not say.
        start_ns: Unix ns of the time 0 of all rows.
        devices: Name of a device by process and device number; process None: of every process.
        process_names, thread_names: By global id; base names only.
        diagnostics: Warnings that nsys wrote into the report, paths taken out.
    """

    version: str | None
    schema: str | None
    graph_mode: str | None
    start_ns: int | None
    devices: Mapping[tuple[int | None, int], str]
    process_names: Mapping[int, str]
    thread_names: Mapping[int, str]
    diagnostics: tuple[str, ...]


def about(export: Export) -> About:
    """Collect what an export says about itself."""
    meta = _meta(export)
    start = export.read("TARGET_INFO_SESSION_START_TIME", ["utcEpochNs"]).frame
    found = start["utcEpochNs"].drop_nulls() if "utcEpochNs" in start.columns else pl.Series(dtype=pl.Int64)
    return About(
        version=meta.get(_VERSION),
        schema=meta.get(_SCHEMA),
        graph_mode=meta.get(_MODE, "").lower() or None,
        start_ns=int(found[0]) if found.len() else None,
        devices=_devices(export),
        process_names=_process_names(export),
        thread_names=_thread_names(export),
        diagnostics=_diagnostics(export),
    )


def _meta(export: Export) -> dict[str, str]:
    found: dict[str, str] = {}
    for table in _META:
        rows = export.read(table, texts=["name", "value"])
        if rows.frame.columns != ["name", "value"]:
            continue
        for name, value in zip(rows.words("name"), rows.words("value"), strict=True):
            key = _MODE if str(name).endswith(_MODE) else str(name)
            if key in (_VERSION, _SCHEMA, _MODE) and value:
                found.setdefault(key, value)
    return found


def _devices(export: Export) -> dict[tuple[int | None, int], str]:
    """Name devices as kernels number them: by process where the file maps them, else by the number of the GPU."""
    rows = export.read("TARGET_INFO_GPU", ["id", "cuDevice"], ["name"])
    if not {"id", "name"} <= set(rows.frame.columns):
        return {}
    named = rows.frame.with_columns(rows.words("name"))
    gpus = {row["id"]: row for row in named.to_dicts() if row["id"] is not None}
    found: dict[tuple[int | None, int], str] = {}
    for number, row in gpus.items():
        visible = row.get("cuDevice")
        if row["name"]:
            found[None, number if visible is None else visible] = row["name"]
    maps = export.read("TARGET_INFO_CUDA_DEVICE", ["gpuId", "cudaId", "pid"]).frame
    if {"gpuId", "cudaId", "pid"} <= set(maps.columns):
        for gpu, device, pid in maps.select("gpuId", "cudaId", "pid").iter_rows():
            if gpu in gpus and gpus[gpu]["name"]:
                found[pid, device] = gpus[gpu]["name"]
    return found


def _process_names(export: Export) -> dict[int, str]:
    rows = export.read("PROCESSES", ["globalPid"], ["name"])
    if rows.frame.columns != ["globalPid", "name"]:
        return {}
    named = zip(rows.frame["globalPid"], rows.words("name"), strict=True)
    return {process: _base(name) for process, name in named if process is not None and name}


def _thread_names(export: Export) -> dict[int, str]:
    frame = export.read("ThreadNames", ["globalTid", "nameId"]).frame
    if frame.columns != ["globalTid", "nameId"]:
        return {}
    labels = strings(export, [frame["nameId"]]).of(frame["nameId"])
    return {tid: _base(name) for tid, name in zip(frame["globalTid"], labels, strict=True) if tid is not None and name}


def _base(name: str) -> str:
    """Return the program of a command line: no directory, no argument."""
    words = name.split()
    return words[0].rsplit("/", 1)[-1] if words else name


def _diagnostics(export: Export) -> tuple[str, ...]:
    rows = export.read("DIAGNOSTIC_EVENT", ["severity"], ["text"])
    if rows.frame.columns != ["severity", "text"]:
        return ()
    texts = rows.words("text").filter(rows.frame["severity"] >= 2).drop_nulls()
    return tuple(dict.fromkeys(_PATH.sub("<path>", text.strip())[:300] for text in texts))
