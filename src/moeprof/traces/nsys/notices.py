"""What was found while reading an nsys export, as findings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import polars as pl

from moeprof.findings import Finding
from moeprof.traces.nsys import gpu, host
from moeprof.traces.nsys.about import About
from moeprof.traces.nsys.export import Export, Rows
from moeprof.traces.nsys.words import Strings
from moeprof.wording import listed, plural

#: Newest schema that was read and checked.
NEWEST = (3, 25)
_TABLES = {
    "CUPTI_ACTIVITY_KIND_KERNEL": "kernels have no data",
    host.CALLS: "no launch is on record, so nothing is linked to an iteration",
    "NVTX_EVENTS": "there are no markers",
}


def of_file(
    export: Export, about: About, words: Strings, ranges: host.Ranges, read: Sequence[Rows]
) -> tuple[Finding, ...]:
    """Return the findings about the whole file."""
    return (
        *_unknown_schema(about),
        *_tables_missing(export),
        *_strings_missing(words),
        *_bad_values(read),
        *_reversed(ranges),
        *_diagnostics(about),
    )


def of_rank(rows: pl.DataFrame, ranges: pl.DataFrame, about: About, key: str | None) -> Iterable[Finding]:
    """Return the findings about one rank: whole graphs, and ranges that were never closed."""
    graphs = rows.filter(pl.col("activity") == "graph").height
    if graphs:
        message = (
            f"whole graphs were recorded ({plural(graphs, 'graph replay')}): there are no counts of launches, and kernel"
            " times are those of replays, gaps inside them included; capture with --cuda-graph-trace=node for counts"
        )
        evidence = {"graph_replays": graphs, "kernels_outside_graphs": int((rows["activity"] == "kernel").sum())}
        yield Finding("graph-level-capture", "warning", message, key, {**evidence, "mode": about.graph_mode})
    is_open = ranges["end_ns"].is_null() & ~ranges["is_mark"]
    if count := int(is_open.sum()):
        names = ranges.filter(is_open)["name"].cast(pl.String).unique().sort().head(5).to_list()
        message = f"{plural(count, 'range')} without an end: kept as markers that were never closed ({listed(names)})"
        yield Finding("open-ranges", "note", message, key, {"ranges": count, "names": [*names]})


def left_out(others: Sequence[tuple[int, int, int]]) -> list[Finding]:
    """Name the processes that are no ranks."""
    if not others:
        return []
    names = [f"process {host.pid_of(process)}" for process, _, _ in others]
    reason = "launches nothing on a GPU and marks no step"
    message = f"left out ({reason}): {listed(names)}"
    evidence = {
        "calls": sum(calls for _, calls, _ in others),
        "ranges": sum(ranges for _, _, ranges in others),
    }
    return [Finding("left-out", "note", message, evidence={"reason": reason, "names": [*names], **evidence})]


def _unknown_schema(about: About) -> Iterable[Finding]:
    found = re.match(r"(\d+)\.(\d+)", about.schema or "")
    if found and (int(found[1]), int(found[2])) > NEWEST:
        message = f"schema {about.schema} of nsys {about.version or '(unknown)'} is newer than those checked"
        yield Finding("nsys-schema-unknown", "note", message, evidence={"schema": about.schema, "nsys": about.version})


def _tables_missing(export: Export) -> Iterable[Finding]:
    present = {re.sub(r"^NVTX_EVENTS_V\d+$", "NVTX_EVENTS", name) for name in export.tables}
    missing = [name for name in _TABLES if name not in present]
    if gpu.PREFIX + "GRAPH_TRACE" in present and "CUPTI_ACTIVITY_KIND_KERNEL" in missing:
        missing.remove("CUPTI_ACTIVITY_KIND_KERNEL")  # graph-level-capture says it
    if missing:
        told = "; ".join(f"{name}: {_TABLES[name]}" for name in missing)
        yield Finding(
            "tables-missing", "note", f"tables that the export does not hold: {told}", evidence={"tables": [*missing]}
        )


def _strings_missing(words: Strings) -> Iterable[Finding]:
    if words.missing:
        ids = [str(number) for number in words.missing]
        message = f"{plural(len(ids), 'string')} that rows refer to are not in the file: shown as <string ID> ({listed(ids[:5])})"
        yield Finding("missing-strings", "warning", message, evidence={"strings": len(ids), "ids": [*ids[:20]]})


def _bad_values(read: Sequence[Rows]) -> Iterable[Finding]:
    mismatched = sum(rows.mismatched for rows in read)
    if mismatched:
        message = f"{plural(mismatched, 'value')} of another type than the column's: they count as absent"
        yield Finding("bad-value", "warning", message, evidence={"count": mismatched})
    invalid = sum(rows.invalid_utf8 for rows in read)
    if invalid:
        message = f"{invalid} texts are not valid UTF-8; the bad bytes were replaced"
        yield Finding("invalid-utf8", "warning", message, evidence={"count": invalid})


def _reversed(ranges: host.Ranges) -> Iterable[Finding]:
    if ranges.reversed:
        message = f"{plural(ranges.reversed, 'range')} ended before they started: their ends count as absent"
        yield Finding("invalid-ranges", "warning", message, evidence={"ranges": ranges.reversed})


def _diagnostics(about: About) -> Iterable[Finding]:
    if about.diagnostics:
        message = f"nsys warned while it recorded: {' '.join(about.diagnostics[:3])}"
        yield Finding("nsys-diagnostic", "note", message, evidence={"texts": [*about.diagnostics]})
