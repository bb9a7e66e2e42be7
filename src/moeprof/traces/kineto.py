"""Turn one Kineto file into the fixed tables: the native reader's columns, its errors and its notices.

`read` takes whatever ``moeprof._native.read_kineto`` returns, or any object with the same attributes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

import polars as pl

from moeprof.errors import (
    InputNotFoundError,
    ManyDocumentsError,
    MoeprofError,
    NativeMissingError,
    NotATraceError,
    TraceEmptyError,
    TraceMalformedError,
    TraceTruncatedError,
    UnsupportedFormatError,
)
from moeprof.findings import Finding, JsonValue
from moeprof.traces import formats, notices, schema

if TYPE_CHECKING:
    from moeprof import _native

_ERRORS: dict[str, type[MoeprofError]] = {
    cls.slug: cls
    for cls in (
        TraceEmptyError,
        TraceTruncatedError,
        TraceMalformedError,
        ManyDocumentsError,
        NotATraceError,
        UnsupportedFormatError,
    )
}
_HINTS = {
    "trace-empty": "the capture wrote nothing: look at the server's log, then capture again",
    "trace-truncated": "the writer did not finish; --recover reads what is whole",
    "trace-malformed": "--recover reads what is whole and leaves the broken events out",
    "trace-many-documents": "several ranks wrote to one path: give each rank a file of its own and capture again",
    "format-unsupported": formats.HINT,
    "not-a-trace": "give a trace that torch.profiler wrote (a JSON object with traceEvents)",
}
_DEVICE_COLUMNS = [
    *("device", "stream", "graph_id", "graph_node_id", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
    *("registers_per_thread", "shared_memory", "bytes"),
]


@dataclass(frozen=True, slots=True)
class KinetoTables:
    """What one file holds, before GPU rows are linked to launches.

    Attributes:
        events: `schema.EVENTS`.
        tracks: `schema.TRACKS`.
        device_args: ``event`` and the device columns of `schema.KERNELS`, for the events that have any.
        collectives: `schema.COLLECTIVES`.
        raw: Every top-level key but traceEvents.
        event_counts: Events by category, skipped ones included.
        findings: The reader's notices.
        partial: True when a damaged file was read with ``recover``.
    """

    events: pl.DataFrame
    tracks: pl.DataFrame
    device_args: pl.DataFrame
    collectives: pl.DataFrame
    raw: Mapping[str, JsonValue]
    event_counts: Mapping[str, int]
    findings: tuple[Finding, ...]
    partial: bool


def read(path: Path, *, recover: bool = False, skip_categories: Collection[str] = ()) -> KinetoTables:
    """Read one file.

    Raises:
        InputNotFoundError: The file is missing or cannot be read.
        NativeMissingError: The native module is not installed.
        MoeprofError: One of the classes for files that are no well-formed trace, with line and byte where known.
    """
    native = _reader()
    try:
        file = native.read_kineto(path, recover=recover, skip_categories=sorted(skip_categories))
    except native.TraceFormatError as error:
        raise _mapped(cast("_native.TraceFormatError", error), path) from error
    except OSError as error:
        raise InputNotFoundError(
            f"cannot read the file: {error.strerror or error}",
            path=str(path),
            hint="check the path and its permissions",
        ) from error
    result = tables(file)
    if not result.raw and result.events.height and not _has_phases(result.events):
        raise NotATraceError(
            "a JSON array whose objects are no trace events", path=str(path), hint=_HINTS["not-a-trace"]
        )
    return result


def unsupported(path: Path) -> UnsupportedFormatError | None:
    """Return the error of a file whose first bytes are those of a known format that is not read, or None."""
    try:
        read(path)
    except UnsupportedFormatError as error:
        return error
    except MoeprofError:
        return None
    return None


def tables(file: _native.KinetoFile) -> KinetoTables:
    """Give the columns of the reader the fixed schemas; no string is encoded again."""
    columns = pl.DataFrame(file.events)
    names = pl.DataFrame(file.names)["name"]
    events = columns.select(
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("event"),
        pl.col("ph").cat.to(pl.Enum(file.phases)),
        pl.col("category").cat.to(pl.Enum(file.categories)),
        pl.col("name").cat.to(pl.Enum(names)),
        *("track", "start_ns", "duration_ns", "correlation", "external_id"),
    )
    return KinetoTables(
        events=events,
        tracks=_tracks(pl.DataFrame(file.tracks), pl.DataFrame(file.labels), events),
        device_args=pl.DataFrame(file.device_args).select(pl.col("row").alias("event"), *_DEVICE_COLUMNS),
        collectives=pl.DataFrame(file.collective_args).rename({"row": "event"}).select(*schema.COLLECTIVES),
        raw=cast("dict[str, JsonValue]", json.loads(file.metadata_json, parse_int=_integer, parse_float=_decimal)),
        event_counts={category: kept + skipped for category, kept, skipped in file.event_counts},
        findings=tuple(
            notices.finding(*notice) for notice in sorted(file.notices, key=lambda notice: (notice[2], notice[0]))
        ),
        partial=file.partial,
    )


def subset(whole: KinetoTables, events: pl.DataFrame, tracks: pl.DataFrame | None = None) -> KinetoTables:
    """Return the tables cut down to some of the events, which are numbered anew from 0."""
    numbers = events.select("event").with_row_index("new")
    if numbers.height == whole.events.height:
        return replace(whole, tracks=whole.tracks if tracks is None else tracks)

    def renumbered(frame: pl.DataFrame) -> pl.DataFrame:
        return (
            frame.join(numbers, on="event", how="inner", maintain_order="left")
            .with_columns(event=pl.col("new"))
            .drop("new")
        )

    return replace(
        whole,
        events=renumbered(events),
        device_args=renumbered(whole.device_args),
        collectives=renumbered(whole.collectives),
        tracks=whole.tracks if tracks is None else tracks,
    )


def build_info() -> dict[str, str]:
    """Return version, profile and features of the native reader.

    Raises:
        NativeMissingError: The native module is not installed.
    """
    info: dict[str, str] = _reader().build_info()
    return info


def _integer(text: str) -> int | None:
    """Return an integer, or None for digits without end, which Python refuses to convert."""
    return int(text) if len(text) < 400 else None


def _decimal(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _reader() -> ModuleType:
    try:
        from moeprof import _native  # late: importing moeprof must not load the native module
    except ImportError as error:
        raise NativeMissingError(
            f"the native reader does not load: {error}", hint="make build, or install a built package of moeprof"
        ) from error
    return _native


def _mapped(error: _native.TraceFormatError, path: Path) -> MoeprofError:
    return _ERRORS.get(error.slug, TraceMalformedError)(
        error.message, path=str(path), line=error.line, byte=error.byte, hint=_HINTS.get(error.slug)
    )


def _has_phases(events: pl.DataFrame) -> bool:
    return bool(events.select((pl.col("ph").cast(pl.String) != "").any()).item())


def _tracks(tracks: pl.DataFrame, labels: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    numbered = tracks.select(pl.int_range(pl.len(), dtype=pl.UInt32).alias("track"), "process", "thread")
    named = (
        labels.join(events.select("event", "name", "track"), left_on="row", right_on="event", maintain_order="left")
        .join(numbered, on="track", maintain_order="left")
        .with_columns(pl.col("name").cast(pl.String))
    )
    processes = (
        named.filter(pl.col("name") == "process_name")
        .unique("process", keep="last", maintain_order=True)
        .select("process", pl.col("value").cast(pl.String).alias("process_name"))
    )
    threads = (
        named.filter(pl.col("name") == "thread_name")
        .unique("track", keep="last", maintain_order=True)
        .select("track", pl.col("value").cast(pl.String).alias("thread_name"))
    )
    return numbered.join(processes, on="process", how="left", maintain_order="left").join(
        threads, on="track", how="left", maintain_order="left"
    )
