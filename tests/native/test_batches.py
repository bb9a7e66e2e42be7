"""Batches of a file, events of a time only, and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from moeprof import _native

TABLES = ("events", "names", "tracks", "device_args", "collective_args", "labels")


def write(path: Path, count: int) -> Path:
    events = [
        {"ph": "X", "cat": f"c{i % 3}", "name": f"n{i % 40}", "pid": 1, "tid": i % 5, "ts": i, "dur": 2}
        | ({"args": {"device": 0, "stream": i % 4, "grid": [1, 2, 3], "correlation": i}} if i % 2 else {})
        for i in range(count)
    ]
    path.write_text(json.dumps({"traceEvents": events, "k": 1}, indent=1))
    return path


def test_batches_one_after_the_other_are_the_file(tmp_path: Path) -> None:
    # GIVEN a file that is larger than one chunk
    path = write(tmp_path / "t.json", 9000)
    whole = _native.read_kineto(path)
    # WHEN it is read in batches
    batches = _native.read_kineto_batches(path, rows=1000)
    parts = list(batches)
    # THEN they have its rows, and the rest has what belongs to the file
    assert len(parts) > 2
    for table in TABLES:
        joined = pl.concat([pl.DataFrame(getattr(part, table)) for part in parts])
        assert joined.equals(pl.DataFrame(getattr(whole, table))), table
    assert batches.rest is not None
    assert (len(batches.rest.events), json.loads(batches.rest.metadata_json)) == (0, {"k": 1})
    assert batches.rest.event_counts == whole.event_counts
    assert (parts[-1].categories, parts[-1].phases) == (whole.categories, whole.phases)
    assert list(batches) == []


def test_who_stops_early_leaves_nothing_behind(tmp_path: Path) -> None:
    batches = _native.read_kineto_batches(write(tmp_path / "t.json", 9000), rows=100)
    assert len(next(batches).events) >= 100
    assert batches.rest is None
    del batches


def test_errors_come_when_batches_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{"traceEvents": [{"name": "a"b"}]}')
    with pytest.raises(_native.TraceFormatError, match="unescaped quote"):
        list(_native.read_kineto_batches(path))
    with pytest.raises(FileNotFoundError):
        list(_native.read_kineto_batches(tmp_path / "none.json"))


def test_events_of_a_time_only(tmp_path: Path) -> None:
    # GIVEN events from 0 on, one each us, of 2 us each
    path = write(tmp_path / "t.json", 100)
    # WHEN those of 50 to 60 us are asked for
    file = _native.read_kineto(path, time_range=(50_000, 60_000))
    # THEN the first one ends in it, and the last one begins in it
    assert pl.DataFrame(file.events)["start_ns"].to_list() == [i * 1000 for i in range(48, 60)]
    assert sum(kept + skipped for _, kept, skipped in file.event_counts) == 100
    [batch] = _native.read_kineto_batches(path, time_range=(50_000, 60_000))
    assert pl.DataFrame(batch.events).equals(pl.DataFrame(file.events))


PEAK = """
import resource, sys
from moeprof import _native
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = sum(len(batch.events) for batch in _native.read_kineto_batches(sys.argv[1], rows=10_000))
print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss counts KiB on Linux")
def test_a_file_in_batches_takes_the_memory_of_a_few(tmp_path: Path) -> None:
    # GIVEN a file of 60 MB
    event = '{"ph": "X", "cat": "c", "name": "n%d", "pid": 1, "tid": 2, "ts": %d.125, "dur": 2.000, "args": {"correlation": %d}}'
    path = tmp_path / "t.json"
    with path.open("w") as file:
        file.write('{"traceEvents": [')
        file.write(",\n".join(event % (i % 50, i, i) for i in range(600_000)))
        file.write("]}")
    assert path.stat().st_size > 50e6
    # WHEN a process of its own reads it in batches
    result = subprocess.run([sys.executable, "-c", PEAK, str(path)], check=True, capture_output=True, text=True)
    rows, peak = map(int, result.stdout.split())
    # THEN it has all rows, and at no time took the 26 MB that its columns would take
    assert rows == 600_000
    assert peak < 16 << 10
