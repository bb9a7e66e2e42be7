"""Open a trace: find its files, read them side by side, key them by rank, build the tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import polars as pl

from moeprof.errors import DuplicateRankError, NotATraceError, TraceEmptyError, UnsupportedFormatError
from moeprof.findings import Finding
from moeprof.store.subject import find_run
from moeprof.traces import cache as entries
from moeprof.traces import folder, formats, kineto, ranks
from moeprof.traces.folder import Found, LeftOut, TraceFile
from moeprof.traces.formats import Format
from moeprof.traces.kineto import KinetoTables
from moeprof.traces.link import link
from moeprof.traces.markers import markers
from moeprof.traces.metadata import metadata
from moeprof.traces.nsys import reports
from moeprof.traces.nsys.ranks import read as read_nsys
from moeprof.traces.trace import RankTrace, Trace
from moeprof.wording import listed

#: Left out unless asked for: with_stack fills most of a file with it, and no analyzer reads it.
SKIPPED_CATEGORIES = ("python_function",)


@dataclass(frozen=True, slots=True)
class _Failed:
    """A file of a folder that turned out to be no trace."""

    file: TraceFile
    error: NotATraceError | UnsupportedFormatError


def open_trace(
    path: str | os.PathLike[str],
    *,
    recover: bool = False,
    categories: Iterable[str] | None = None,
    cache: bool = True,
    store: str | os.PathLike[str] | None = None,
) -> Trace:
    """Read a trace into tables.

    Args:
        path: A trace file, a folder with one file per rank, a run's folder, or several of these joined by commas;
            else an arm of the store (its newest complete run) or a run's name ``arm/time-block``.
        recover: Read what is whole of a damaged file; such a rank is marked ``partial``.
        categories: Event categories to keep. None keeps all but ``python_function``, which is counted in
            ``event_counts`` and not stored; ``("*",)`` keeps all. Other events are counted, not stored: without
            launches every kernel is an orphan, and without annotations there are no markers.
        cache: Take a file of torch from the folder ``MOEPROF_CACHE`` where it was read before, and store it there else;
            False, or no such variable: neither.
        store: Folder of the store; None: MOEPROF_STORE, else the nearest configuration's, else ``.moeprof``.

    Returns:
        The ranks by key, in natural order, with the findings about the set of files.

    Raises:
        MoeprofError: One of the classes of `moeprof.errors`, with the file and the position where known.

    Example:
        >>> trace = open_trace("samples/h200/base")
        >>> trace.ranks
        ('dp0_pp0_tp0_dcp0_ep0_rank0', 'dp1_pp0_tp0_dcp0_ep1_rank0')
        >>> trace["dp0_pp0_tp0_dcp0_ep0_rank0"].kernels.height
        5001
    """
    source = os.fspath(path)
    run = find_run(source, store)
    if run is not None and not run.has_traces and run.manifest.extra.get("ingested") is True:
        raise TraceEmptyError(
            f"{run.name} holds no trace, only what was ingested",
            path=str(run.path),
            hint="moeprof diff compares its timed passes and evaluations; moeprof ingest takes traces as well",
        )
    found = folder.find(source if run is None else str(run.path))
    keep = None if categories is None else frozenset(categories)
    read = _read_all(found, recover=recover, keep=keep, cached=cache)
    failed = [result for result in read if isinstance(result, _Failed)]
    traces = [trace for result in read if not isinstance(result, _Failed) for trace in result]
    if not traces:
        raise failed[0].error
    traces = _told_apart(traces)
    _refuse_duplicates(traces, found.files)
    left_out = [*found.left_out, *(LeftOut(item.file.source, item.error.message) for item in failed)]
    findings = [*folder.finding(left_out), *_ranks_unknown(traces)]
    if len(found.files) > 1 or not found.named:
        findings += _ranks_missing(traces)
    ordered = sorted(traces, key=lambda trace: ranks.natural(trace.key))
    by_rank = {trace.key: trace for trace in ordered}
    if run is None:
        return Trace(source, by_rank, tuple(findings))
    return Trace(run.name, by_rank, tuple(findings), run.manifest.arm)


def _read_all(
    found: Found, *, recover: bool, keep: frozenset[str] | None, cached: bool
) -> list[list[RankTrace] | _Failed]:
    """Read files side by side, the results in the order of the files; the reader releases the interpreter lock."""

    def read(file: TraceFile) -> list[RankTrace] | _Failed:
        return _read(file, found.named, recover=recover, keep=keep, cached=cached)

    with ThreadPoolExecutor(max_workers=min(len(found.files), os.cpu_count() or 1)) as pool:
        return list(pool.map(read, found.files))


def _read(
    file: TraceFile, named: frozenset[Path], *, recover: bool, keep: frozenset[str] | None, cached: bool
) -> list[RankTrace] | _Failed:
    try:
        if file.path.is_dir() or formats.recognise(file.path) is not Format.TORCH:
            return _nsys(file, keep)

        def read() -> list[RankTrace]:
            return _torch(file, recover=recover, keep=keep)

        options = (file.source, recover, None if keep is None else sorted(keep))
        return entries.through(file.path, options, read) if cached else read()
    except (NotATraceError, UnsupportedFormatError) as error:
        if file.path in named:
            raise
        return _Failed(file, error)


def _torch(file: TraceFile, *, recover: bool, keep: frozenset[str] | None) -> list[RankTrace]:
    """Read a file of torch; categories that nobody asked for are left out."""
    tables = kineto.read(file.path, recover=recover, skip_categories=SKIPPED_CATEGORIES if keep is None else ())
    if keep is not None and "*" not in keep:
        kept = pl.col("category").cast(pl.String).is_in(list(keep))
        tables = kineto.subset(tables, tables.events.filter(kept))
    return _rank_traces(file, tables)


def _nsys(file: TraceFile, keep: frozenset[str] | None) -> list[RankTrace]:
    """Read an export of Nsight Systems; a report is exported first."""
    found = read_nsys(reports.exported(file.path), name=file.path.name, source=file.source)
    if keep is None or "*" in keep:
        return found
    return [_kept(rank, keep) for rank in found]


def _kept(rank: RankTrace, keep: frozenset[str]) -> RankTrace:
    """Leave the events of other categories out; the tables made of them keep their rows."""
    kept = pl.col("category").cast(pl.String).is_in(list(keep))
    return replace(rank, events=rank.events.filter(kept))


def _rank_traces(file: TraceFile, tables: KinetoTables) -> list[RankTrace]:
    """Build one rank, or one for each rank whose processes a merged file names."""
    key = ranks.key_of(file.path.name, metadata(tables.raw).distributed_rank)
    by_key: dict[str, list[int]] = {}
    nameless: list[int] = []
    for track, process in tables.tracks.select("track", "process").iter_rows():
        owner = ranks.key_of_process(process)
        if owner is None:
            nameless.append(track)
        else:
            by_key.setdefault(owner, []).append(track)
    if not by_key:
        return [_rank_trace(key, file, tables)]
    if len(by_key) == 1:
        return [_rank_trace(ranks.key_of_name(file.path.name) or next(iter(by_key)), file, tables)]
    shared = tables.events.filter(pl.col("track").is_in(nameless)).height
    return [
        _rank_trace(owner, file, _share(tables, tracks), shared=shared)
        for owner, tracks in sorted(by_key.items(), key=lambda item: ranks.natural(item[0]))
    ]


def _share(tables: KinetoTables, tracks: list[int]) -> KinetoTables:
    mine = pl.col("track").is_in(tracks)
    return kineto.subset(tables, tables.events.filter(mine), tables.tracks.filter(mine))


def _rank_trace(key: str | None, file: TraceFile, tables: KinetoTables, *, shared: int = 0) -> RankTrace:
    linked = link(tables)
    findings = [*tables.findings, *linked.findings]
    if shared:
        findings.append(
            Finding(
                "events-without-rank",
                "note",
                f"{shared} events of the merged file name no rank and belong to none",
                evidence={"count": shared},
            )
        )
    return RankTrace(
        key=key,
        source=file.source,
        events=tables.events,
        kernels=linked.kernels,
        launches=linked.launches,
        markers=markers(tables.events),
        collectives=tables.collectives,
        tracks=tables.tracks,
        invalid=linked.invalid,
        metadata=metadata(tables.raw),
        event_counts=tables.event_counts,
        findings=tuple(replace(finding, rank=key) for finding in findings),
        partial=tables.partial,
    )


def _told_apart(traces: list[RankTrace]) -> list[RankTrace]:
    """Put the file's name before keys that several files give to ranks of theirs, such as the first device of each node."""
    sources: dict[str | None, set[str]] = {}
    for trace in traces:
        sources.setdefault(trace.key, set()).add(trace.source)
    several = {trace.source for trace in traces if sum(trace.source == other.source for other in traces) > 1}
    clashing = {source for names in sources.values() if len(names) > 1 and names <= several for source in names}
    return [
        _renamed(trace, f"{formats.stem(Path(trace.source).name)}_{trace.key}") if trace.source in clashing else trace
        for trace in traces
    ]


def _renamed(trace: RankTrace, key: str) -> RankTrace:
    findings = (replace(found, rank=key) if found.rank == trace.key else found for found in trace.findings)
    return replace(trace, key=key, findings=tuple(findings))


def _refuse_duplicates(traces: list[RankTrace], files: Sequence[TraceFile]) -> None:
    by_key: dict[str | None, list[str]] = {}
    paths = {file.source: str(file.path) for file in files}
    for trace in traces:
        by_key.setdefault(trace.key, []).append(trace.source)
    by_id: dict[str, list[str]] = {}
    for trace in traces:
        if (trace_id := trace.metadata.raw.get("trace_id")) and isinstance(trace_id, str):
            by_id.setdefault(trace_id, []).append(trace.source)
    for sources in by_id.values():
        if len(set(sources)) > 1:
            raise DuplicateRankError(
                f"{len(sources)} files are copies of one trace (equal trace_id): {', '.join(sorted(sources))}",
                path=paths[min(sources)],
                hint="leave the copies out: each rank has a trace of its own",
            )
    for key, sources in by_key.items():
        if len(sources) == 1:
            continue
        names = ", ".join(sorted(sources))
        if key is None:
            message = f"{len(sources)} files without a rank, which cannot be told apart: {names}"
        else:
            message = f"{len(sources)} files are {key}: {names}"
        raise DuplicateRankError(
            message,
            path=paths[min(sources)],
            hint="name one of the files, or keep each capture window in a folder of its own",
        )


def _ranks_unknown(traces: list[RankTrace]) -> list[Finding]:
    return [
        Finding("rank-unknown", "note", f"rank unknown: neither the name nor the metadata of {trace.source} tells it")
        for trace in traces
        if trace.key is None
    ]


_MISSING_NAMED = 16


def _ranks_missing(traces: list[RankTrace]) -> list[Finding]:
    """Compare the ranks found with the world size, where the files agree on one and tell distinct ranks."""
    sizes = {trace.metadata.world_size for trace in traces}
    if len(sizes) != 1:
        return []
    (size,) = sizes
    found = {trace.metadata.distributed_rank for trace in traces}
    if size is None or len(traces) >= size or len(found) != len(traces) or None in found:
        return []
    absent = (rank for rank in range(size) if rank not in found)
    missing = list(islice(absent, _MISSING_NAMED))
    return [
        Finding(
            "ranks-missing",
            "warning",
            f"{len(traces)} of {size} ranks found; not here: rank {listed(missing)}{' and more' if size - len(found) > len(missing) else ''}",
            evidence={
                "found": len(traces),
                "world_size": size,
                "missing": list(missing),
                "missing_count": size - len(found),
            },
        )
    ]
