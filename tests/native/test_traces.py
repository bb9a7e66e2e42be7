"""Real and odd traces: golden counts."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import polars as pl
import pytest

from moeprof import _native

H200 = {"base": (91118, 36387), "triton": (79468, 32202), "mega_derived": (78182, 29919)}
CPU = {"base_idle/dp0": 171437, "base_idle/dp1": 171437, "base/dp0": 30411, "mega/dp0": 26595}


def one(folder: Path, start: str) -> Path:
    (path,) = folder.glob(f"{start}_*.gz")
    return path


def frame(file: _native.KinetoFile) -> pl.DataFrame:
    """Return the events with their categories and names as text."""
    names = pl.DataFrame(file.names)["name"]
    categories = pl.Series(file.categories, dtype=pl.String)
    events = pl.DataFrame(file.events)
    return events.with_columns(category=categories.gather(events["category"]), name=names.gather(events["name"]))


def kernels(file: _native.KinetoFile) -> pl.DataFrame:
    return frame(file).filter(pl.col("category").str.to_lowercase() == "kernel")


@pytest.mark.parametrize("arm", H200)
@pytest.mark.parametrize("rank", ["dp0", "dp1"])
def test_h200(traces: Path, arm: str, rank: str) -> None:
    file = _native.read_kineto(one(traces / "h200" / arm, rank))
    assert (len(file.events), kernels(file).height) == H200[arm]
    assert sum(kept for _, kept, _ in file.event_counts) == H200[arm][0]
    assert file.notices == []
    metadata = json.loads(file.metadata_json)
    assert metadata["distributedInfo"]["rank"] == int(rank[2:])
    assert list(metadata)[-1] == "traceName"


def test_h200_sums_are_exact(traces: Path) -> None:
    file = _native.read_kineto(one(traces / "h200/base", "dp0"))
    rows = kernels(file)
    assert rows["duration_ns"].sum() == 163730073
    device = pl.DataFrame(file.device_args)
    assert device.height == 36387 + 285 + frame(file).filter(pl.col("category") == "cuda_event").height + sum(
        kept for category, kept, _ in file.event_counts if category in {"cuda_sync"}
    )
    assert rows["correlation"].null_count() == 0


@pytest.mark.parametrize("name", CPU)
def test_cpu(traces: Path, name: str) -> None:
    folder, rank = name.split("/")
    file = _native.read_kineto(one(traces / "cpu" / folder, rank))
    assert (len(file.events), kernels(file).height) == (CPU[name], 0)
    assert file.notices == []


def golden(table: Path) -> list[tuple[str, int, int, int | None]]:
    """Return path, events, kernels and kernel sum of the public files."""
    rows = [line.split("|") for line in table.read_text().splitlines() if re.match(r"\| \S+\.json\.gz ", line)]
    return [
        (cells[1].strip(), int(cells[4]), int(cells[6]), None if cells[9].strip() == "-" else int(cells[9]))
        for cells in rows
    ]


def test_public_files(traces: Path) -> None:
    # GIVEN the golden values of all public files
    rows = golden(traces / "public/README.md")
    assert len(rows) == 28
    # WHEN they are read, THEN events, kernels and kernel sums agree
    for path, events, count, total in rows:
        file = _native.read_kineto(traces / "public" / path)
        found = kernels(file)
        assert (len(file.events), found.height) == (events, count), path
        assert total is None or found["duration_ns"].sum() == total, path


def test_bad_utf8(traces: Path) -> None:
    # GIVEN a trace and its copy with six bad names
    clean = _native.read_kineto(one(traces / "badutf8/clean", "dp0"))
    bad = _native.read_kineto(one(traces / "badutf8/bad", "dp0"))
    # THEN there is one notice, eight replacement characters, and no other difference
    assert [notice[:4] for notice in bad.notices] == [("invalid-utf8", 6, 122674, 6288)]
    names = pl.DataFrame(bad.names)["name"]
    assert names.str.count_matches("\ufffd").sum() == 8
    assert names.str.contains("\ufffd").sum() == 6
    assert len(clean.events) == len(bad.events) == 7603
    columns = pl.exclude("name")
    assert pl.DataFrame(clean.events).select(columns).equals(pl.DataFrame(bad.events).select(columns))
    assert (clean.bytes_read, bad.bytes_read, clean.notices) == (2198833, 2198844, [])


ODD = {
    "04_control_char.json": (9, ["control-character"]),
    "05_invalid_utf8.json": (9, ["invalid-utf8"]),
    "07_printf_inf_nan.json": (8, ["non-finite-number"]),
    "08_trailing_comma.json": (8, ["trailing-comma"]),
    "10_array_no_bracket.json": (8, ["missing-end-mark"]),
    "11_toplevel_array.json": (8, []),
    "14_metadata_only.json": (2, []),
    "16_memory_only.json": (4, []),
    "17_gzip_named_json.json": (8, []),
    "19_multi_member.json.gz": (8, []),
    "29_wide_tid.json": (2, []),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_files_that_are_read(traces: Path, name: str) -> None:
    file = _native.read_kineto(traces / "odd" / name)
    assert (len(file.events), [notice[0] for notice in file.notices]) == ODD[name]


REFUSED = {
    "01_unescaped_quote.json": ("trace-malformed", 8, "unescaped quote in a string"),
    "02_backslash_path.json": ("trace-malformed", 8, "invalid escape \\c"),
    "13_zero_bytes.json": ("trace-empty", None, "the file is empty"),
    "61_nsys_nvtx_v3.sqlite": ("format-unsupported", None, "SQLite"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_odd_files_that_are_refused(traces: Path, name: str) -> None:
    with pytest.raises(_native.TraceFormatError) as caught:
        _native.read_kineto(traces / "odd" / name)
    slug, line, message = REFUSED[name]
    assert (caught.value.slug, caught.value.line) == (slug, line)
    assert message in caught.value.message


def test_two_documents(traces: Path) -> None:
    with pytest.raises(_native.TraceFormatError) as caught:
        _native.read_kineto(traces / "odd/20_two_documents.json.gz", recover=True)
    assert (caught.value.slug, caught.value.byte) == ("trace-many-documents", 1729)


@pytest.mark.parametrize(("name", "dropped"), [("01_unescaped_quote.json", 1), ("02_backslash_path.json", 2)])
def test_recovery_drops_what_is_malformed(traces: Path, name: str, dropped: int) -> None:
    file = _native.read_kineto(traces / "odd" / name, recover=True)
    assert (kernels(file).height, kernels(file)["duration_ns"].sum()) == (3, 120000)
    assert [notice[:2] for notice in file.notices] == [("dropped-event", dropped)]
    assert file.partial


def test_nineteen_digits_are_exact(traces: Path) -> None:
    rows = kernels(_native.read_kineto(traces / "odd/26_nineteen_digits.json")).sort("start_ns")
    gaps = rows["start_ns"].shift(-1) - rows["start_ns"] - rows["duration_ns"]
    assert gaps.drop_nulls().to_list() == [49, 49]


def test_a_cut_trace_gives_its_whole_events(traces: Path, tmp_path: Path) -> None:
    # GIVEN the first half of a trace
    text = gzip.decompress(one(traces / "h200/eager_cut", "dp0").read_bytes())
    path = tmp_path / "half.json"
    path.write_bytes(text[: len(text) // 2])
    # THEN it is refused with its length
    with pytest.raises(_native.TraceFormatError) as caught:
        _native.read_kineto(path)
    assert (caught.value.slug, caught.value.byte) == ("trace-truncated", len(text) // 2)
    # AND in recovery its events are the first ones of the whole
    whole = pl.DataFrame(_native.read_kineto(one(traces / "h200/eager_cut", "dp0")).events)
    half = pl.DataFrame(_native.read_kineto(path, recover=True).events)
    assert 0 < half.height < whole.height
    assert half.equals(whole.head(half.height))
