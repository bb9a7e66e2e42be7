from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from moeprof.errors import WindowFailedError
from moeprof.profiler.nsys.contents import contents
from moeprof.profiler.nsys.scrub import REDACTED, scrub

SECRET = "s3cr3t-of-the-house"


def export(tmp_path: Path) -> Path:
    """A file with the tables in which nsys keeps environments, and what must stay."""
    file = tmp_path / "w.sqlite"
    with closing(sqlite3.connect(file)) as base, base:
        base.execute("CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT)")
        base.executemany(
            "INSERT INTO META_DATA_CAPTURE VALUES (?, ?)",
            [
                ("PROCESS_0:ENVIRONMENT_VARIABLE", f"MY_TOKEN={SECRET}"),
                ("PROCESS_0:ARGUMENT_1", f"--key={SECRET}"),
                ("DEVICE_DISPLAY_NAME", "builder-7"),
                ("CUDA_GRAPH_TRACE_OPTIONS:MODE", "Node"),
            ],
        )
        base.execute("CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT)")
        base.executemany(
            "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (?, ?)",
            [("DeviceEnvironment", f"A=1\nMY_TOKEN={SECRET}"), ("Hostname", "builder-7"), ("CpuCores", "16")],
        )
        base.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        base.executemany(
            "INSERT INTO StringIds VALUES (?, ?)",
            [
                (1, f"HOME=/home/x\0MY_TOKEN={SECRET}\0"),
                (2, "moeprof.iter#3"),
                (3, f"curl --header 'Authorization: Bearer {SECRET}'"),
                (4, f"a text with {SECRET} inside"),
                (5, b"fused\xffname".decode("utf-8", errors="surrogateescape").encode("utf-8", "surrogateescape")),
            ],
        )
        base.execute("CREATE TABLE NVTX_EVENTS (start INTEGER, textId INTEGER)")
        base.execute("INSERT INTO NVTX_EVENTS VALUES (5, 2)")
        base.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER)")
        base.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?)", [(1,), (2,)])
    return file


def test_environments_arguments_and_hosts_are_gone_from_every_page_of_the_file(tmp_path: Path) -> None:
    # GIVEN an export that holds a secret in all places where nsys keeps some
    file = export(tmp_path)
    assert SECRET.encode() in file.read_bytes()
    # WHEN it is redacted
    taken = scrub(file, [SECRET])
    # THEN no byte of it is left, of hosts and environments neither
    data = file.read_bytes()
    assert SECRET.encode() not in data
    assert b"builder-7" not in data and b"/home/x" not in data
    assert taken == 8
    # AND what the recording needs is as it was
    with closing(sqlite3.connect(file)) as base:
        base.text_factory = bytes
        strings = dict(base.execute("SELECT id, value FROM StringIds"))
        capture = dict(base.execute("SELECT name, value FROM META_DATA_CAPTURE"))
    assert strings[2] == b"moeprof.iter#3"
    assert strings[5] == b"fused\xffname"
    assert strings[1] == REDACTED.encode()
    assert capture[b"CUDA_GRAPH_TRACE_OPTIONS:MODE"] == b"Node"


def test_an_export_without_these_tables_stays_as_it_is(tmp_path: Path) -> None:
    # GIVEN an export of a version that lacks the tables
    file = tmp_path / "w.sqlite"
    with closing(sqlite3.connect(file)) as base, base:
        base.execute("CREATE TABLE NVTX_EVENTS (start INTEGER)")
    # WHEN it is redacted THEN nothing is taken, and nothing fails
    assert scrub(file) == 0


def test_what_is_no_database_is_told(tmp_path: Path) -> None:
    # GIVEN a file that is cut or something else
    file = tmp_path / "w.sqlite"
    file.write_bytes(b"not a database" * 100)
    # WHEN it is redacted or counted THEN one sentence says so
    with pytest.raises(WindowFailedError, match="cannot be redacted"):
        scrub(file)
    with pytest.raises(WindowFailedError, match="cannot be read"):
        contents(file)


def test_contents_tell_an_empty_recording_from_a_full_one(tmp_path: Path) -> None:
    # GIVEN an export with kernels and ranges, without calls and graphs
    found = contents(export(tmp_path))
    # THEN rows are counted, and absent tables hold none
    assert (found.kernels, found.graphs, found.ranges, found.calls, found.empty) == (2, 0, 1, 0, False)
