"""Read an nsys export into rank traces: one rank for each process that works."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from moeprof.findings import Finding, JsonValue
from moeprof.traces import link, schema
from moeprof.traces.nsys import gpu, host, notices, processes
from moeprof.traces.nsys.about import About, about
from moeprof.traces.nsys.export import Export, Rows, open_export
from moeprof.traces.nsys.words import Strings, names, strings
from moeprof.traces.trace import RankTrace, TraceMetadata

_PHASES = pl.Enum(["X", "i"])
_CALL = "cuda_runtime"
_RANGE = "nvtx"
_VERSION_OF_CALL = r"_v\d+$"


@dataclass(frozen=True, slots=True)
class Session:
    """The rows of a whole export, all processes together, with one Enum of names and one of categories.

    Attributes:
        gpu: `gpu.NUMBERS`, ``name``, ``category``, ``activity``.
        calls: ``thread``, ``start_ns``, ``end_ns``, ``correlation``, ``name``.
        ranges: `host.Ranges.rows` and ``name``, ``category``.
        threads: Global ids of the threads that call or open ranges.
    """

    gpu: pl.DataFrame
    calls: pl.DataFrame
    ranges: pl.DataFrame
    about: About
    counts: dict[str, int]
    findings: tuple[Finding, ...]


def read(path: Path, *, name: str, source: str) -> list[RankTrace]:
    """Read one export.

    Args:
        path: A SQLite file (plain or gzip), or a folder of Parquet or Arrow files.
        name: Name that may tell the rank.
        source: Name of the file in results.

    Returns:
        The processes with GPU work, by key; those with NVTX ranges where there is no GPU work at all.

    Raises:
        MoeprofError: No readable export of nsys.
    """
    session = _session(open_export(path))
    chosen = processes.choose(session.gpu, session.calls, session.ranges)
    keys = processes.keys(chosen.ranks, session.gpu, session.about, name)
    alone = len(chosen.ranks) == 1
    made = [_rank(session, process, keys[process], source, alone=alone) for process in chosen.ranks]
    shared = [*session.findings, *notices.left_out(chosen.others)]
    made[0] = replace(made[0], findings=(*shared, *made[0].findings))
    return made


def _session(export: Export) -> Session:
    tables = {kind: gpu.read_table(export, kind) for kind, _, _ in gpu.TABLES}
    calls, nvtx = host.calls(export), host.nvtx(export)
    kernel_ids = gpu.name_ids(tables["KERNEL"].frame)
    call_ids = _column(calls.frame, "nameId")
    text_ids = _column(nvtx.frame, "textId")
    words = strings(export, [kernel_ids, call_ids, text_ids])
    codes, texts = _texts(nvtx, text_ids, words)
    calls_by_id = words.labels.with_columns(pl.col("label").str.replace(_VERSION_OF_CALL, ""))
    spelled = {kind: gpu.names(kind, tables[kind].frame) for kind, _, _ in gpu.TABLES if kind != "KERNEL"}
    of_calls = calls_by_id.filter(pl.col("id").is_in(call_ids.unique().implode()))
    of_kernels = words.labels.filter(pl.col("id").is_in(kernel_ids.unique().implode()))
    all_names = names(texts, [of_calls["label"], of_kernels["label"], *spelled.values()])
    numbers = {kind: all_names.of_labels(column) for kind, column in spelled.items()}
    numbers["KERNEL"] = all_names.of_ids(kernel_ids, of_kernels)
    *of_gpu, called, ranged = all_names.columns(
        [*(numbers[kind] for kind, _, _ in gpu.TABLES), all_names.of_ids(call_ids, of_calls), codes]
    )
    ranges = host.ranges(nvtx.frame, codes, texts)
    found = about(export)
    return Session(
        gpu=_gpu_rows(tables, of_gpu),
        calls=_call_rows(calls.frame, called),
        ranges=_with_categories(ranges, ranged),
        about=found,
        counts=_counts(export, tables, calls, ranges),
        findings=notices.of_file(export, found, words, ranges, [*tables.values(), calls, nvtx]),
    )


def _column(frame: pl.DataFrame, name: str) -> pl.Series:
    if name in frame.columns:
        return frame[name]
    return pl.repeat(None, frame.height, dtype=pl.Int64, eager=True).alias(name)


def _texts(nvtx: Rows, ids: pl.Series, words: Strings) -> tuple[pl.Series, pl.Series]:
    """Return the text of each NVTX row as a number, and the texts: written in place, else a registered string, else ""."""
    own = nvtx.frame["text"] if "text" in nvtx.frame.columns else None
    inline = pl.repeat(None, nvtx.frame.height, dtype=pl.UInt32, eager=True) if own is None else own
    if own is not None and not own.null_count():
        return own, nvtx.texts
    registered = words.labels.filter(pl.col("id").is_in(ids.unique().implode()))
    whole = pl.concat([nvtx.texts.rename("label"), registered["label"], pl.Series([""])])
    distinct = whole.unique(maintain_order=True)
    enum = pl.Enum(distinct)
    by_id = registered.select("id", pl.col("label").cast(enum).to_physical().cast(pl.UInt32).alias("code"))
    by_string = pl.DataFrame({"id": ids}).join(by_id, on="id", how="left", maintain_order="left")["code"]
    nothing = int(pl.Series([""]).cast(enum).to_physical()[0])
    frame = pl.DataFrame({"inline": inline, "string": by_string})
    return frame.select(pl.coalesce("inline", "string", pl.lit(nothing, dtype=pl.UInt32))).to_series(), distinct


def _gpu_rows(tables: dict[str, Rows], labels: list[pl.Series]) -> pl.DataFrame:
    categories = pl.Enum([category for _, category, _ in gpu.TABLES])
    parts = []
    for (kind, category, activity), named in zip(gpu.TABLES, labels, strict=True):
        rows = tables[kind].frame
        if rows.height:
            parts.append(
                gpu.unified(kind, rows).with_columns(
                    named.alias("name"),
                    pl.lit(category, dtype=categories).alias("category"),
                    pl.lit(activity, dtype=schema.ACTIVITY).alias("activity"),
                )
            )
    if parts:
        return pl.concat(parts)
    columns = {name: pl.Series(name, [], dtype=schema.KERNELS.get(name, pl.Int64)) for name in gpu.NUMBERS}
    no_category = pl.Series("category", [], dtype=categories)
    no_activity = pl.Series("activity", [], dtype=schema.ACTIVITY)
    return pl.DataFrame([*columns.values(), labels[0].clear().alias("name"), no_category, no_activity])


def _call_rows(frame: pl.DataFrame, labels: pl.Series) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "thread": _column(frame, "globalTid"),
            "start_ns": _column(frame, "start"),
            "end_ns": _column(frame, "end"),
            "correlation": _column(frame, "correlationId").reinterpret(signed=False),
            "name": labels,
        }
    ).filter(pl.col("thread").is_not_null())


def _with_categories(ranges: host.Ranges, texts: pl.Series) -> pl.DataFrame:
    """Add the text of each range and its category: ``nvtx``, and the name of the domain where it has one."""
    kept = texts if ranges.keep.all() else texts.filter(ranges.keep)
    rows = ranges.rows.with_columns(kept.alias("name"))
    domains = ranges.domains.with_columns(pl.format(_RANGE + ":{}", "label").alias("category"))
    labels = pl.Enum([_RANGE, *domains["category"].unique().sort()])
    if domains.is_empty():
        return rows.drop("domain").with_columns(pl.lit(_RANGE, dtype=labels).alias("category"))
    named = domains.select("process", "domain", pl.col("category").cast(labels))
    return (
        rows.with_columns(host.process_of(pl.col("thread")).alias("process"))
        .join(named, on=["process", "domain"], how="left", maintain_order="left")
        .with_columns(pl.col("category").fill_null(_RANGE))
        .drop("domain", "process")
    )


def _counts(export: Export, tables: dict[str, Rows], calls: Rows, ranges: host.Ranges) -> dict[str, int]:
    """Count the rows of every table of CUDA or NVTX, those that no analyzer reads included."""
    counts = {category: tables[kind].frame.height for kind, category, _ in gpu.TABLES}
    counts[_CALL] = calls.frame.height
    for kind, count in ranges.by_type.items():
        counts[host.EVENT_TYPES.get(kind, f"nvtx event type {kind}")] = count
    read = {host.CALLS, *(gpu.PREFIX + kind for kind, _, _ in gpu.TABLES)}
    for table in export.tables:
        if table.startswith(gpu.PREFIX) and table not in read:
            counts[table.removeprefix(gpu.PREFIX).lower()] = export.rows(table)
    return {name: count for name, count in counts.items() if count}


def _rank(session: Session, process: int | None, key: str | None, source: str, *, alone: bool) -> RankTrace:
    rows, calls, ranges = processes.of(process, session.gpu, session.calls, session.ranges, alone=alone)
    tracks, threads = processes.tracks(rows, calls, ranges, session.about)
    rows = rows.with_columns(processes.stream_tracks(rows, threads.height))
    events, numbered = _events(rows, calls, ranges, threads)
    has_id = pl.col("correlation").is_not_null()
    linked = link.resolve(numbered["gpu"], link.as_calls(numbered["calls"].filter(has_id)))
    pid = None if process is None else host.pid_of(process)
    return RankTrace(
        key=key,
        source=source,
        events=events,
        kernels=linked.kernels,
        launches=linked.launches,
        markers=_markers(numbered["ranges"]),
        collectives=schema.empty(schema.COLLECTIVES),
        tracks=tracks,
        invalid=linked.invalid,
        metadata=_metadata(session.about, pid),
        event_counts=session.counts,
        findings=tuple(
            replace(finding, rank=key)
            for finding in (*linked.findings, *notices.of_rank(rows, ranges, session.about, key))
        ),
    )


def _events(
    rows: pl.DataFrame, calls: pl.DataFrame, ranges: pl.DataFrame, threads: pl.DataFrame
) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
    """Number all rows: GPU rows, then calls, then ranges and marks, each in the order of the file."""
    parts = {"gpu": rows, "calls": calls, "ranges": ranges}
    categories = pl.Enum(
        list(dict.fromkeys([*schema.strings(rows, "category"), _CALL, *schema.strings(ranges, "category")]))
    )
    first, made, numbered = 0, [], {}
    for part, frame in parts.items():
        if part != "gpu":
            frame = frame.join(threads, on="thread", how="left", maintain_order="left")
        mark = pl.col("is_mark") if part == "ranges" else pl.lit(value=False)
        frame = frame.with_columns(
            pl.int_range(first, first + frame.height, dtype=pl.UInt32, eager=True).alias("event"),
            (pl.col("end_ns") - pl.col("start_ns")).alias("duration_ns"),
            pl.when(mark).then(pl.lit("i")).otherwise(pl.lit("X")).cast(_PHASES).alias("ph"),
            *([pl.lit(_CALL, dtype=categories).alias("category")] if part == "calls" else []),
            *([pl.lit(None, dtype=pl.UInt64).alias("correlation")] if part == "ranges" else []),
            pl.lit(None, dtype=pl.UInt64).alias("external_id"),
        )
        first += frame.height
        numbered[part] = frame
        made.append(frame.with_columns(pl.col("category").cast(pl.String).cast(categories)).select(*schema.EVENTS))
    return pl.concat(made), numbered


def _markers(ranges: pl.DataFrame) -> pl.DataFrame:
    """Return `schema.MARKERS` by start, then event."""
    found = ranges.filter(~pl.col("is_mark"))
    if not (found["start_ns"].is_sorted()):
        found = found.sort("start_ns", "event")
    return found.with_columns(
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("marker"), pl.col("name").cast(pl.String)
    ).select(*schema.MARKERS)


def _metadata(found: About, pid: int | None) -> TraceMetadata:
    versions = {"nsys_version": found.version, "nsys_schema_version": found.schema}
    known = {name: value for name, value in versions.items() if value}
    common = {device: name for (owner, device), name in found.devices.items() if owner is None}
    own = {device: name for (owner, device), name in found.devices.items() if owner == pid and owner is not None}
    raw: dict[str, JsonValue] = {**known, "nsys_graph_mode": found.graph_mode}
    return TraceMetadata(
        base_time_ns=found.start_ns or 0,
        base_time_known=found.start_ns is not None,
        devices={**common, **own},
        versions=known,
        raw=raw,
    )
