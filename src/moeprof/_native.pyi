"""Types of the native reader (crates/moeprof-py). Checked against the compiled module by stubtest."""

import os
from collections.abc import Sequence
from typing import Self, final

__all__ = [
    "ArrowTable",
    "KinetoBatch",
    "KinetoBatches",
    "KinetoFile",
    "NsysDatabase",
    "NsysTable",
    "TraceFormatError",
    "build_info",
    "open_nsys",
    "read_kineto",
    "read_kineto_batches",
]

class TraceFormatError(Exception):
    """A file that is not a well-formed trace: ``slug``, ``message``, ``path``, ``line`` (from 1), ``byte`` (from 0)."""

    @property
    def slug(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def line(self) -> int | None: ...
    @property
    def byte(self) -> int | None: ...

@final
class ArrowTable:
    """A table that hands its columns over through the Arrow C stream interface, without a copy: ``pl.DataFrame(table)``."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...

@final
class KinetoFile:
    """One Kineto file in columns. See docs/native.md for the tables."""

    @property
    def events(self) -> ArrowTable: ...
    @property
    def names(self) -> ArrowTable: ...
    @property
    def tracks(self) -> ArrowTable: ...
    @property
    def device_args(self) -> ArrowTable: ...
    @property
    def collective_args(self) -> ArrowTable: ...
    @property
    def labels(self) -> ArrowTable: ...
    @property
    def categories(self) -> list[str]: ...
    @property
    def phases(self) -> list[str]: ...
    @property
    def metadata_json(self) -> str: ...
    @property
    def notices(self) -> list[tuple[str, int, int, int, str]]: ...
    @property
    def event_counts(self) -> list[tuple[str, int, int]]: ...
    @property
    def partial(self) -> bool: ...
    @property
    def bytes_read(self) -> int: ...

@final
class KinetoBatch:
    """Some events of a file with what belongs to them. See docs/native.md."""

    @property
    def events(self) -> ArrowTable: ...
    @property
    def names(self) -> ArrowTable: ...
    @property
    def tracks(self) -> ArrowTable: ...
    @property
    def device_args(self) -> ArrowTable: ...
    @property
    def collective_args(self) -> ArrowTable: ...
    @property
    def labels(self) -> ArrowTable: ...
    @property
    def categories(self) -> list[str]: ...
    @property
    def phases(self) -> list[str]: ...

@final
class KinetoBatches:
    """The batches of a file, one after the other; ``rest`` holds what belongs to the whole file once they are through."""

    @property
    def rest(self) -> KinetoFile | None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> KinetoBatch: ...

@final
class NsysTable:
    """Some columns of one table: whole numbers, and texts as numbers of the distinct ``texts``."""

    @property
    def columns(self) -> ArrowTable: ...
    @property
    def texts(self) -> ArrowTable: ...
    @property
    def mismatched(self) -> int: ...
    @property
    def invalid_utf8(self) -> int: ...

@final
class NsysDatabase:
    """An nsys export as SQLite, plain or gzip: its tables, and the rows of one as columns."""

    def tables(self) -> list[tuple[str, list[str]]]: ...
    def rows(self, table: str) -> int: ...
    def read(self, table: str, integers: Sequence[str], texts: Sequence[str]) -> NsysTable: ...

def open_nsys(path: str | os.PathLike[str]) -> NsysDatabase: ...
def read_kineto(
    path: str | os.PathLike[str],
    *,
    recover: bool = False,
    skip_categories: Sequence[str] = (),
    time_range: tuple[int, int] | None = None,
    max_event_bytes: int = 1073741824,
) -> KinetoFile: ...
def read_kineto_batches(
    path: str | os.PathLike[str],
    *,
    rows: int = 262144,
    recover: bool = False,
    skip_categories: Sequence[str] = (),
    time_range: tuple[int, int] | None = None,
    max_event_bytes: int = 1073741824,
) -> KinetoBatches: ...
def build_info() -> dict[str, str]: ...
