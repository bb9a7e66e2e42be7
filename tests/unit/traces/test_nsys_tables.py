"""The native reader of SQLite files against SQLite itself, and against files that are damaged."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moeprof.errors import MoeprofError, NotATraceError, TraceTruncatedError
from moeprof.traces.nsys.export import open_export
from moeprof.traces.open import open_trace
from tests.nsys_files import write_tables

INTEGERS = st.none() | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 1, -1, 127, 128, 32768, 2**23, 2**47])
TEXTS = st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40)
ROWS = st.lists(st.tuples(INTEGERS, TEXTS, INTEGERS, TEXTS), max_size=60)


def database(path: Path, rows: list[Any], *, page: int = 4096, extra: str = "") -> Path:
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA page_size = {page}")
    connection.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT)")
    connection.execute("CREATE TABLE NVTX_EVENTS (start INTEGER, text TEXT, end INTEGER, more TEXT)")
    connection.executemany("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?)", rows)
    connection.executescript(extra)
    connection.commit()
    connection.close()
    return path


def read(path: Path, table: str = "NVTX_EVENTS") -> list[tuple[Any, ...]]:
    rows = open_export(path).read(table, ["start", "end"], ["text", "more"])
    frame = rows.frame.with_columns(rows.words(name) for name in ("text", "more"))
    return frame.select("start", "text", "end", "more").rows()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, page=st.sampled_from([512, 1024, 4096, 65536]), compressed=st.booleans())
def test_rows_are_those_that_sqlite_wrote(tmp_path: Path, rows: list[Any], page: int, compressed: bool) -> None:
    # GIVEN rows of any numbers and texts, in pages of any size
    path = database(tmp_path / "a.sqlite", rows, page=page)
    if compressed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    # THEN they come back as they were
    assert read(path) == rows


@pytest.mark.parametrize("page", [512, 4096, 65536])
def test_texts_longer_than_a_page_and_trees_of_many_pages(tmp_path: Path, page: int) -> None:
    # GIVEN rows over several levels of pages, some of which go on in pages of their own
    rows = [(i, "x" * (i * 37 % (3 * page)), -i, None if i % 3 else f"{i}") for i in range(1500)]
    path = database(tmp_path / "a.sqlite", rows, page=page)
    assert read(path) == rows
    assert open_export(path).rows("NVTX_EVENTS") == 1500


def test_a_key_is_the_number_of_its_row(tmp_path: Path) -> None:
    # GIVEN a table whose key SQLite does not store
    path = write_tables(tmp_path / "a.sqlite", {"StringIds": [(7, "seven"), (-3, "minus three"), (2**40, "many")]})
    rows = open_export(path).read("StringIds", ["id"], ["value"])
    assert dict(zip(rows.frame["id"], rows.words("value"), strict=True)) == {
        -3: "minus three",
        7: "seven",
        2**40: "many",
    }


def test_columns_that_were_added_later_are_null_in_old_rows(tmp_path: Path) -> None:
    extra = "ALTER TABLE NVTX_EVENTS ADD COLUMN domainId INTEGER; INSERT INTO NVTX_EVENTS VALUES (5, 'b', 6, NULL, 9);"
    path = database(tmp_path / "a.sqlite", [(1, "a", 2, None)], extra=extra)
    assert open_export(path).read("NVTX_EVENTS", ["domainId"]).frame["domainId"].to_list() == [None, 9]


def test_values_of_another_type_are_counted(tmp_path: Path) -> None:
    # GIVEN numbers as reals and as texts, and what is no number
    rows = [(1.0, "a", "12", None), (1.5, 3, b"x", None), ("word", "b", 4, None)]
    path = tmp_path / "a.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE NVTX_EVENTS (start, text, end, more)")
    connection.executemany("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()
    found = open_export(path).read("NVTX_EVENTS", ["start", "end"], ["text"])
    # THEN whole numbers are kept, the others are null and counted
    assert found.frame["start"].to_list() == [1, None, None]
    assert found.frame["end"].to_list() == [12, None, 4]
    assert found.words("text").to_list() == ["a", None, "b"]
    assert found.mismatched == 4


def test_texts_that_are_not_utf8_are_replaced_and_counted(tmp_path: Path) -> None:
    path = database(tmp_path / "a.sqlite", [], extra="")
    connection = sqlite3.connect(path)
    for text in ("61ff62", "61fe62", "61"):
        connection.execute(f"INSERT INTO NVTX_EVENTS VALUES (1, CAST(x'{text}' AS TEXT), 2, NULL)")
    connection.commit()
    connection.close()
    found = open_export(path).read("NVTX_EVENTS", [], ["text"])
    assert found.words("text").to_list() == ["a\ufffdb", "a\ufffdb", "a"]
    assert found.invalid_utf8 == 2


def test_tables_without_row_numbers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE NVTX_EVENTS (start INTEGER PRIMARY KEY, text TEXT) WITHOUT ROWID")
    connection.commit()
    connection.close()
    with pytest.raises(MoeprofError, match="WITHOUT ROWID"):
        open_trace(path)


@pytest.mark.parametrize("suffix", ["-journal", "-wal"])
def test_a_database_that_is_being_written_is_refused(tmp_path: Path, suffix: str) -> None:
    # GIVEN a database whose newest rows lie beside it
    extra = "PRAGMA journal_mode = WAL;" if suffix == "-wal" else ""
    path = database(tmp_path / "a.sqlite", [(1, "a", 2, None)])
    if extra:
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
    path.with_name(path.name + suffix).write_bytes(b"something")
    with pytest.raises(TraceTruncatedError, match="beside the database"):
        open_trace(path)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_is_an_error_or_a_value_and_never_more(tmp_path: Path, data: st.DataObject) -> None:
    # GIVEN a database with bytes overwritten anywhere, or cut anywhere
    whole = database(tmp_path / "a.sqlite", [(i, f"text {i}" * 9, i, None) for i in range(80)], page=512).read_bytes()
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 6))):
        damaged[data.draw(st.integers(16, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "b.sqlite"
    path.write_bytes(damaged[: data.draw(st.integers(100, len(whole)))])
    # THEN it is read, or refused with the file and what to do
    caught = None
    try:
        open_trace(path)
    except MoeprofError as error:
        caught = error
    assert caught is None or (caught.path == str(path) and caught.hint)


def test_a_database_of_another_program_is_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE cookies (name TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(NotATraceError, match="did not write"):
        open_trace(path)


def test_a_damaged_table_of_a_folder_names_its_file(tmp_path: Path) -> None:
    pl.DataFrame({"id": [1], "value": ["a"]}).write_parquet(tmp_path / "StringIds.parquet")
    (tmp_path / "NVTX_EVENTS.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(MoeprofError, match="cannot be read") as caught:
        open_trace(tmp_path)
    assert caught.value.path == str(tmp_path / "NVTX_EVENTS.parquet")
