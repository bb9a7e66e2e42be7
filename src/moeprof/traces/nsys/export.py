"""The tables of an nsys export, whatever it is written as: a SQLite file, or a folder of Parquet or Arrow files.

Tables are lazy (an empty one does not exist) and their columns drift from version to version, so both are looked up,
never assumed: `Export.read` returns the columns that are there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import polars as pl

from moeprof.errors import NotATraceError, TraceMalformedError
from moeprof.traces import native

if TYPE_CHECKING:
    from moeprof import _native

SUFFIXES = (".parquet", ".arrow")
#: One of these tables makes a database, or a folder of tables, an nsys export.
_TELLING = ("StringIds", "META_DATA_EXPORT", "EXPORT_META_DATA", "ANALYSIS_DETAILS")
_TELLING_PREFIXES = ("CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "TARGET_INFO_")
_HINT = "give an export of Nsight Systems: nsys export --type sqlite REPORT.nsys-rep"


@dataclass(frozen=True, slots=True)
class Rows:
    """Some columns of a table.

    Attributes:
        frame: Whole numbers as Int64, texts as numbers (UInt32) of `texts`; only the columns that are there.
        texts: The distinct texts of all text columns.
        mismatched: Values of another type than asked for, which are null.
        invalid_utf8: Distinct texts whose bad bytes were replaced.
    """

    frame: pl.DataFrame
    texts: pl.Series = field(default_factory=lambda: pl.Series("text", dtype=pl.String))
    mismatched: int = 0
    invalid_utf8: int = 0

    def words(self, column: str) -> pl.Series:
        """Return the texts of a column, row by row."""
        return self.texts.gather(self.frame[column]).alias(column)


class Export(Protocol):
    """The tables of one export."""

    @property
    def tables(self) -> Mapping[str, tuple[str, ...]]:
        """Return the tables with the names of their columns."""

    def read(self, table: str, integers: Sequence[str] = (), texts: Sequence[str] = ()) -> Rows:
        """Read those of the named columns that the table has."""

    def rows(self, table: str) -> int:
        """Count the rows of a table; one that is not there has none."""


def is_export(tables: Sequence[str]) -> bool:
    """Tell whether tables of these names are those of an nsys export."""
    return any(name in _TELLING or name.startswith(_TELLING_PREFIXES) for name in tables)


def open_export(path: Path) -> Export:
    """Open a SQLite file (plain or gzip), or a folder of Parquet or Arrow files.

    Raises:
        MoeprofError: No readable export of nsys.
    """
    opened: Export = _Folder(path) if path.is_dir() else _Sqlite(path)
    if not is_export(list(opened.tables)):
        what = "folder of tables" if path.is_dir() else "SQLite database"
        raise NotATraceError(f"a {what} that Nsight Systems did not write", path=str(path), hint=_HINT)
    return opened


def table_files(folder: Path) -> dict[str, Path]:
    """Return the files of a folder that are tables of an export, by name of the table."""
    return {path.stem: path for path in sorted(folder.iterdir()) if path.suffix in SUFFIXES and path.is_file()}


class _Sqlite:
    """A SQLite file, read by the native module."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with native.mapped(path):
            self._database: _native.NsysDatabase = native.module().open_nsys(path)
        self._tables = {name: tuple(columns) for name, columns in self._database.tables()}

    @property
    def tables(self) -> Mapping[str, tuple[str, ...]]:
        return self._tables

    def read(self, table: str, integers: Sequence[str] = (), texts: Sequence[str] = ()) -> Rows:
        if not set(self._tables.get(table, ())).intersection((*integers, *texts)):
            return Rows(pl.DataFrame())
        with native.mapped(self._path):
            found = self._database.read(table, list(integers), list(texts))
        frame = pl.DataFrame(found.columns)
        distinct = pl.DataFrame(found.texts)["text"]
        if found.invalid_utf8:  # two texts may have become one
            distinct, same = _distinct(distinct)
            held = [name for name in texts if name in frame.columns]
            frame = frame.with_columns(same.gather(frame[name]).alias(name) for name in held)
        return Rows(frame, distinct, found.mismatched, found.invalid_utf8)

    def rows(self, table: str) -> int:
        with native.mapped(self._path):
            return self._database.rows(table)


class _Folder:
    """A folder with one Parquet file or one Arrow stream for each table (``nsys export --type parquetdir, arrowdir``)."""

    def __init__(self, path: Path) -> None:
        self._files = table_files(path)
        self._tables = {name: tuple(self._schema(file)) for name, file in self._files.items()}

    @property
    def tables(self) -> Mapping[str, tuple[str, ...]]:
        return self._tables

    def read(self, table: str, integers: Sequence[str] = (), texts: Sequence[str] = ()) -> Rows:
        names = [name for name in (*integers, *texts) if name in self._tables.get(table, ())]
        if not names:
            return Rows(pl.DataFrame())
        raw = self._load(self._files[table], names)
        whole = [_integer(raw[name]).alias(name) for name in names if name in integers]
        words = [raw[name].cast(pl.String) for name in names if name in texts]
        lost = sum(after.null_count() - raw[after.name].null_count() for after in whole)
        if not words:
            return Rows(pl.DataFrame(whole), mismatched=lost)
        distinct, codes = _distinct(pl.concat([column.rename("text") for column in words]))
        parts = [codes.slice(at * raw.height, raw.height).alias(column.name) for at, column in enumerate(words)]
        return Rows(pl.DataFrame([*whole, *parts]), distinct, lost)

    def rows(self, table: str) -> int:
        if not self._tables.get(table):
            return 0
        return self._load(self._files[table], [self._tables[table][0]]).height

    @staticmethod
    def _schema(file: Path) -> list[str]:
        try:
            if file.suffix == ".parquet":
                return list(pl.read_parquet_schema(file))
            return pl.read_ipc_stream(file, n_rows=0).columns
        except (pl.exceptions.PolarsError, OSError) as error:
            raise _damaged(file, error) from error

    @staticmethod
    def _load(file: Path, columns: list[str]) -> pl.DataFrame:
        try:
            if file.suffix == ".parquet":
                return pl.read_parquet(file, columns=columns, glob=False)
            return pl.read_ipc_stream(file, columns=columns)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise _damaged(file, error) from error


def _damaged(file: Path, error: Exception) -> TraceMalformedError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return TraceMalformedError(f"the table cannot be read: {reason}", path=str(file), hint="export the report again")


def _integer(column: pl.Series) -> pl.Series:
    """Return whole numbers as Int64; ids of threads come unsigned, and wrap as SQLite stores them."""
    if column.dtype == pl.UInt64:
        return column.reinterpret(signed=True)
    return column.cast(pl.Int64, strict=False)


def _distinct(texts: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the distinct texts, and the number of each text among them."""
    distinct = texts.drop_nulls().unique(maintain_order=True)
    return distinct, texts.cast(pl.Enum(distinct)).to_physical().cast(pl.UInt32)
