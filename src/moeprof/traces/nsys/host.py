"""Host rows of an export: calls of the CUDA runtime and driver, and NVTX ranges, marks and domains."""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from moeprof.traces.nsys.export import Export, Rows

CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
CALL_COLUMNS = ("start", "end", "globalTid", "correlationId", "nameId")
_NVTX = re.compile(r"NVTX_EVENTS(?:_V(\d+))?")
NVTX_COLUMNS = ("start", "end", "eventType", "globalTid", "textId", "domainId")

MARK = 34
RANGES = (59, 60, 70, 71)  # push/pop, start/end, and the two kinds that text files of ranges make
_DOMAIN = 75
#: Names of the event types that a count of rows may give.
EVENT_TYPES = {
    33: "nvtx category", 34: "nvtx mark", 39: "nvtx thread", 59: "nvtx push/pop range", 60: "nvtx start/end range",
    70: "nvtxt push/pop range", 71: "nvtxt start/end range", 75: "nvtx domain create", 76: "nvtx domain destroy",
}  # fmt: skip
#: The bits of a global thread id that tell the thread; those above tell the process, and the machine.
THREAD_BITS = 0xFFFFFF


def calls(export: Export) -> Rows:
    """Read the calls of runtime and driver."""
    return export.read(CALLS, CALL_COLUMNS)


def nvtx_table(export: Export) -> str | None:
    """Return the name of the newest table of NVTX events, or None; names may end in ``_V<n>``."""
    found = [(int(match[1] or 0), name) for name in export.tables if (match := _NVTX.fullmatch(name))]
    return max(found)[1] if found else None


def nvtx(export: Export) -> Rows:
    """Read the NVTX events; texts are in ``text``, or strings by ``textId``."""
    table = nvtx_table(export)
    return Rows(pl.DataFrame()) if table is None else export.read(table, NVTX_COLUMNS, ["text"])


def process_of(global_tid: pl.Expr) -> pl.Expr:
    """Return the global id of a thread's process, as GPU rows carry it."""
    return global_tid - (global_tid & THREAD_BITS)


def pid_of(process: int) -> int:
    """Return the process id within its machine."""
    return (process >> 24) & THREAD_BITS


@dataclass(frozen=True, slots=True)
class Ranges:
    """NVTX events that lie in time.

    Attributes:
        rows: ``thread``, ``start_ns``, ``end_ns`` (null: never closed, or ended before it began), ``is_mark``, ``domain``.
        keep: Which rows of the table these are.
        domains: ``process``, ``domain``, ``label`` of the domains that the file names; ids are per process.
        by_type: Rows of the table by event type.
        open: Ranges that were never closed, by global process id.
        reversed: Ranges that end before they start.
    """

    rows: pl.DataFrame
    keep: pl.Series
    domains: pl.DataFrame
    by_type: dict[int, int]
    reversed: int


def ranges(raw: pl.DataFrame, codes: pl.Series, texts: pl.Series) -> Ranges:
    """Tell ranges and marks from the rows that only name things.

    Args:
        raw: The table as `nvtx` reads it.
        codes: For each row the number of its text among `texts`.
        texts: Distinct texts.
    """
    held = set(raw.columns)
    frame = raw.select(
        *(
            (pl.col(name) if name in held else pl.lit(default, dtype=pl.Int64)).alias(name)
            for name, default in (("start", None), ("end", None), ("eventType", 59), ("globalTid", None))
        ),
        (pl.col("domainId") if "domainId" in held else pl.lit(0, dtype=pl.Int64)).fill_null(0).alias("domain"),
    )
    counts = frame["eventType"].value_counts().drop_nulls().sort("eventType")
    timed = frame["eventType"].is_in([*RANGES, MARK]) & frame["start"].is_not_null() & frame["globalTid"].is_not_null()
    is_domain = frame["eventType"] == _DOMAIN
    domains = (
        frame.filter(is_domain)
        .with_columns(texts.gather(codes.filter(is_domain)).alias("label"))
        .filter(pl.col("globalTid").is_not_null() & pl.col("label").is_not_null())
        .select(process_of(pl.col("globalTid")).alias("process"), "domain", "label")
        .unique(["process", "domain"], keep="last", maintain_order=True)
    )
    kept = frame if timed.all() else frame.filter(timed)
    backwards = kept["end"] < kept["start"]
    rows = kept.select(
        pl.col("globalTid").alias("thread"),
        pl.col("start").alias("start_ns"),
        pl.when(pl.col("end") >= pl.col("start")).then("end").alias("end_ns"),
        (pl.col("eventType") == MARK).alias("is_mark"),
        "domain",
    )
    return Ranges(rows, timed, domains, dict(counts.iter_rows()), int(backwards.sum()))
