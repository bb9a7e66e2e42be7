"""The fixed tables of a trace. Every reader fills these; every analyzer reads these.

Times are integer ns relative to the file's base time (`TraceMetadata.base_time_ns`, added before ranks are compared).
``name`` and ``category`` columns are `polars.Enum` over the strings of the file, so they cost one code a row; where a
schema below says `polars.Enum` without categories, any Enum conforms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import polars as pl

#: "graph": a whole graph replay, where a capture recorded nothing finer.
ACTIVITIES = ("kernel", "memcpy", "memset", "graph")
ACTIVITY = pl.Enum(ACTIVITIES)

ANY_ENUM = pl.Enum

#: Column names and types of a table, in order.
Schema: TypeAlias = dict[str, pl.DataType | type[pl.DataType]]

#: One row per event of the file, in file order (events skipped by category are absent, and counted elsewhere).
EVENTS: Schema = {
    "event": pl.UInt32,  # number of the row, the key of the other tables
    "ph": ANY_ENUM,  # Chrome trace phase: X, i, s, f, M, B, E ...
    "category": ANY_ENUM,  # "" where the event has none
    "name": ANY_ENUM,
    "track": pl.UInt32,  # key into TRACKS
    "start_ns": pl.Int64,  # null where the file gives no ts
    "duration_ns": pl.Int64,  # null where the file gives no dur
    "correlation": pl.UInt64,
    "external_id": pl.UInt64,
}

#: One row per distinct (pid, tid) of the file.
TRACKS: Schema = {
    "track": pl.UInt32,
    "process": pl.String,  # as the file writes it: "4100", "Spans", "[TP00] 4100"
    "thread": pl.String,
    "process_name": pl.String,  # from metadata events, else null
    "thread_name": pl.String,
}

#: One row per valid GPU activity (kernel, memcpy, memset), by start, then event. Invalid ones: `RankTrace.invalid`.
KERNELS: Schema = {
    "event": pl.UInt32,
    "name": ANY_ENUM,
    "activity": ACTIVITY,
    "device": pl.Int64,
    "stream": pl.Int64,
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "end_ns": pl.Int64,
    "correlation": pl.UInt64,
    "external_id": pl.UInt64,
    "launch": pl.UInt32,  # key into LAUNCHES; null: no launch on record (an orphan)
    "graph_id": pl.UInt64,
    "graph_node_id": pl.UInt64,
    "grid_x": pl.Int64,
    "grid_y": pl.Int64,
    "grid_z": pl.Int64,
    "block_x": pl.Int64,
    "block_y": pl.Int64,
    "block_z": pl.Int64,
    "registers_per_thread": pl.Int64,
    "shared_memory": pl.Int64,
    "bytes": pl.Int64,
}

#: GPU rows set aside: the columns of KERNELS and why.
INVALID: Schema = {**KERNELS, "reason": pl.String}  # "negative-duration", "zero-time", "no-time"

#: One row per host call (runtime or driver) that carries a correlation id, by start, then event.
LAUNCHES: Schema = {
    "launch": pl.UInt32,  # number of the row
    "event": pl.UInt32,
    "name": ANY_ENUM,
    "track": pl.UInt32,
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "end_ns": pl.Int64,
    "correlation": pl.UInt64,
    "external_id": pl.UInt64,
    "device_rows": pl.UInt32,  # GPU rows linked to it: kernels, memcpys, memsets
    "kernel_rows": pl.UInt32,  # of these, kernels (whole graphs where the capture recorded nothing finer)
    "is_graph": pl.Boolean,  # cudaGraphLaunch, hipGraphLaunch ...
    "is_kernel_launch": pl.Boolean,  # a call that always makes a kernel row (graph launches too): none means a lost record
}

#: One row per host annotation (category user_annotation, B/E pairs closed; and ProfilerStep#n of any host category).
MARKERS: Schema = {
    "marker": pl.UInt32,
    "event": pl.UInt32,
    "name": pl.String,
    "track": pl.UInt32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,  # null: never closed
}

#: One row per event that carries collective metadata (kernels and record_param_comms operators).
COLLECTIVES: Schema = {
    "event": pl.UInt32,
    "collective": pl.String,  # "_allgather_base", "allreduce" ...
    "in_elements": pl.Int64,
    "out_elements": pl.Int64,
    "dtype": pl.String,
    "group_size": pl.Int64,
    "group_name": pl.String,
    "group_description": pl.String,
    "group_ranks": pl.String,
    "sequence": pl.UInt64,
    "comms_id": pl.UInt64,
    "source_rank": pl.Int64,
    "destination_rank": pl.Int64,
}


def conforms(frame: pl.DataFrame, schema: Schema) -> bool:
    """Tell whether a frame has exactly the columns of a schema, in order; any Enum stands for `polars.Enum`."""
    if frame.columns != list(schema):
        return False
    return all(
        isinstance(frame.schema[name], pl.Enum) if dtype is ANY_ENUM else frame.schema[name] == dtype
        for name, dtype in schema.items()
    )


def empty(schema: Schema) -> pl.DataFrame:
    """Return a frame of no rows with a schema's columns."""
    return pl.DataFrame(schema={name: pl.Enum([]) if dtype is ANY_ENUM else dtype for name, dtype in schema.items()})


def where(column: pl.Series, test: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Test an Enum column, once for each string that occurs in it. False where it is null.

    Example:
        >>> where(pl.Series(["a", "b", "a"], dtype=pl.Enum(["a", "b"])), lambda texts: texts == "a").to_list()
        [True, False, True]
    """
    # Only texts that occur are looked at: the Enum may have a million.
    distinct = column.unique().drop_nulls()
    found = distinct.to_physical().filter(test(distinct.cast(pl.String)))
    return column.to_physical().is_in(found.implode()).fill_null(value=False)


def strings(frame: pl.DataFrame, column: str) -> pl.Series:
    """Return the strings that an Enum column may hold."""
    dtype = frame.schema[column]
    assert isinstance(dtype, pl.Enum), f"{column} is not an Enum"
    return dtype.categories
