from __future__ import annotations

import gzip
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from moeprof.traces import cache, kineto
from moeprof.traces.open import open_trace
from tests.builders import kernel, launch, trace_json

SAMPLES = [path for path in Path("samples").rglob("*.trace.json*") if path.is_file()]


@pytest.fixture
def entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MOEPROF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "traces"


def trace(path: Path, name: str = "k") -> Path:
    path.write_bytes(gzip.compress(trace_json([launch(1, correlation=1), kernel(name, 5, 1, correlation=1)])))
    return path


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the file was parsed")

    monkeypatch.setattr(kineto, "read", refuse)


@pytest.mark.parametrize("path", SAMPLES, ids=str)
@pytest.mark.parametrize("categories", [None, ("*",), ("kernel",)])
def test_second_opening_is_the_first(
    path: Path, categories: tuple[str, ...] | None, entries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN a sample that was opened once
    fresh = open_trace(path, categories=categories, cache=False)
    assert not entries.exists()
    open_trace(path, categories=categories)
    # WHEN it is opened where parsing is impossible
    forbid(monkeypatch)
    again = open_trace(path, categories=categories)
    # THEN every table, type and field is as read from the file
    assert again.findings == fresh.findings
    assert again.ranks == fresh.ranks
    assert all(cache.same(again[key], fresh[key]) for key in fresh.ranks)


def test_damaged_entry_is_read_anew(tmp_path: Path, entries: Path) -> None:
    # GIVEN an entry with one bit flipped, at each of some places
    file = trace(tmp_path / "rank0.pt.trace.json.gz")
    fresh = open_trace(file)
    (entry,) = entries.iterdir()
    whole = entry.read_bytes()
    for place in range(0, len(whole), 97):
        entry.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        # WHEN the trace is opened THEN it is right, and so is the entry again
        again = open_trace(file)
        assert all(cache.same(again[key], fresh[key]) for key in fresh.ranks)
        assert entry.read_bytes() == whole


def test_content_decides(tmp_path: Path, entries: Path) -> None:
    # GIVEN a file replaced by another of the same name
    file = tmp_path / "rank0.pt.trace.json.gz"
    open_trace(trace(file, "one"))
    # WHEN it is opened THEN the new content is seen
    (rank,) = open_trace(trace(file, "two"))
    assert rank.kernels["name"].to_list() == ["two"]
    assert len(list(entries.iterdir())) == 2


def test_unusable_folder_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a cache folder that is a file WHEN a trace is opened THEN it is read
    (tmp_path / "cache").write_text("")
    monkeypatch.setenv("MOEPROF_CACHE", str(tmp_path / "cache"))
    assert len(open_trace(trace(tmp_path / "rank0.pt.trace.json.gz"))) == 1


def test_oldest_entries_go(tmp_path: Path, entries: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN no room WHEN a trace is opened THEN nothing stays
    monkeypatch.setattr(cache, "LIMIT_BYTES", 0)
    open_trace(trace(tmp_path / "rank0.pt.trace.json.gz"))
    assert list(entries.iterdir()) == []


def test_many_processes(tmp_path: Path, entries: Path) -> None:
    # GIVEN one file WHEN processes open it at once THEN all see it and one whole entry stays
    file = trace(tmp_path / "rank0.pt.trace.json.gz")
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        opened = list(pool.map(open_ranks, [file] * 6))
    assert opened == [("rank0",)] * 6
    assert len(list(entries.iterdir())) == 1


def open_ranks(file: Path) -> tuple[str | None, ...]:
    return open_trace(file).ranks
