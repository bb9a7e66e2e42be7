"""What an export holds, by its tables: enough to tell a capture from an empty one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from moeprof.errors import WindowFailedError

_TABLES = {
    "kernels": "CUPTI_ACTIVITY_KIND_KERNEL",
    "graphs": "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "ranges": "NVTX_EVENTS",
    "calls": "CUPTI_ACTIVITY_KIND_RUNTIME",
}


@dataclass(frozen=True, slots=True)
class Contents:
    """Rows by table."""

    kernels: int
    graphs: int
    ranges: int
    calls: int

    @property
    def empty(self) -> bool:
        """Tell whether nothing of the server was recorded."""
        return not (self.kernels or self.graphs or self.ranges or self.calls)


def contents(file: Path) -> Contents:
    """Count the rows of an export.

    Raises:
        WindowFailedError: It is no SQLite file.
    """
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as base:
            there = {name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            return Contents(**{key: _rows(base, table) if table in there else 0 for key, table in _TABLES.items()})
    except sqlite3.Error as error:
        raise WindowFailedError(f"nsys' export cannot be read: {error}", path=str(file)) from error


def _rows(base: sqlite3.Connection, table: str) -> int:
    return int(base.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
