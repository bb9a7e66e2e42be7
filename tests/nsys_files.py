"""Write nsys exports as SQLite: from plain rows, or from a rank of another profiler as nsys would have recorded it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from moeprof.traces.trace import RankTrace

PROCESS = (1 << 48) | (4100 << 24)
THREAD = PROCESS | 4100

COLUMNS = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL,"
        " correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, graphNodeId INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL,"
        " correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": (
        "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL,"
        " correlationId INTEGER, globalPid INTEGER, value INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER,"
        " nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL"
    ),
    "NVTX_EVENTS": (
        "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER, endGlobalTid INTEGER,"
        " textId INTEGER, domainId INTEGER"
    ),
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
}


def write_tables(
    path: Path, tables: Mapping[str, Iterable[Sequence[Any]]], columns: Mapping[str, str] | None = None
) -> Path:
    """Write tables of rows; columns as nsys declares them unless given."""
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    for name, rows in tables.items():
        declared = (columns or {}).get(name) or COLUMNS[name]
        database.execute(f"CREATE TABLE {name} ({declared})")
        for row in rows:
            database.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", tuple(row))
    database.commit()
    database.close()
    return path


def as_nsys(rank: RankTrace, path: Path) -> Path:
    """Write what a rank of torch.profiler launched as an nsys capture of the same process would hold it.

    Threads keep their tracks, so each has a number of its own; annotations become push/pop ranges.
    """
    words: dict[str, int] = {}

    def word(text: str) -> int:
        return words.setdefault(text, len(words) + 1)

    device = rank.kernels.with_columns(pl.col("name").cast(pl.String), pl.col("activity").cast(pl.String))
    kernels, copies, fills = [], [], []
    for row in device.iter_rows(named=True):
        head = (row["start_ns"], row["end_ns"], row["device"], row["stream"], row["correlation"], PROCESS)
        if row["activity"] == "kernel":
            node = (
                None
                if row["graph_node_id"] is None
                else ((row["graph_id"] or 0) << 32) | (row["graph_node_id"] & 0xFFFFFFFF)
            )
            kernels.append((*head, word(row["name"]), word(row["name"]), node))
        elif row["activity"] == "memcpy":
            copies.append((*head, row["bytes"] or 0, 1, 1, 2))
        else:
            fills.append((*head, 0, row["bytes"] or 0, 2))
    calls = [
        (start, end, 0, PROCESS | (track + 1), correlation, word(f"{name}_v7000"), 0)
        for start, end, track, correlation, name in rank.launches.select(
            "start_ns", "end_ns", "track", "correlation", pl.col("name").cast(pl.String)
        ).iter_rows()
    ]
    ranges = [
        (start, end, 59, None, PROCESS | (track + 1), None, word(name), 0)
        for name, track, start, end in rank.markers.select("name", "track", "start_ns", "end_ns").iter_rows()
    ]
    return write_tables(
        path,
        {
            "CUPTI_ACTIVITY_KIND_KERNEL": kernels,
            "CUPTI_ACTIVITY_KIND_MEMCPY": copies,
            "CUPTI_ACTIVITY_KIND_MEMSET": fills,
            "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
            "NVTX_EVENTS": ranges,
            "StringIds": [(number, text) for text, number in words.items()],
            "TARGET_INFO_SESSION_START_TIME": [(rank.metadata.base_time_ns, "", "")],
        },
    )
