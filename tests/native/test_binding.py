"""The border to Python: capsules, errors, classes."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from moeprof import _native

Read = Callable[..., _native.KinetoFile]

EVENT = '{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1.5,"dur":2,"args":{"device":0,"correlation":%d}}'
TEXT = '{"traceEvents":[' + ",".join(EVENT % number for number in range(1000)) + '],"k":[1,NaN]}'

EVENTS = {
    "ph": pl.UInt8,
    "category": pl.UInt16,
    "name": pl.UInt32,
    "track": pl.UInt32,
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "correlation": pl.UInt64,
    "external_id": pl.UInt64,
}
DEVICE_NUMBERS = [
    "device",
    "stream",
    "grid_x",
    "grid_y",
    "grid_z",
    "block_x",
    "block_y",
    "block_z",
    "registers_per_thread",
    "shared_memory",
    "bytes",
]


def test_events_have_the_columns_of_the_manual(read: Read) -> None:
    # GIVEN a file
    file = read(TEXT)
    # WHEN its tables become frames
    frames = {
        name: pl.DataFrame(getattr(file, name))
        for name in ("events", "names", "tracks", "device_args", "collective_args", "labels")
    }
    # THEN names and types are those of docs/native.md
    assert dict(frames["events"].schema) == EVENTS
    assert dict(frames["names"].schema) == {"name": pl.String}
    assert dict(frames["tracks"].schema) == {"process": pl.String, "thread": pl.String}
    assert dict(frames["device_args"].schema) == {
        "row": pl.UInt32,
        **dict.fromkeys(DEVICE_NUMBERS, pl.Int64),
        "graph_id": pl.UInt64,
        "graph_node_id": pl.UInt64,
    }
    assert dict(frames["labels"].schema) == {"row": pl.UInt32, "value": pl.String}
    collective = frames["collective_args"].schema
    texts = ["collective", "dtype", "group_name", "group_description", "group_ranks"]
    numbers = ["in_elements", "out_elements", "group_size", "source_rank", "destination_rank"]
    assert list(collective) == ["row", *texts, *numbers, "sequence", "comms_id"]
    assert [collective[name] for name in texts] == [pl.String] * 5
    assert [collective[name] for name in numbers] == [pl.Int64] * 5


def test_values_cross_the_border(read: Read) -> None:
    file = read(TEXT)
    events = pl.DataFrame(file.events)
    assert len(file.events) == events.height == 1000
    assert events["correlation"].to_list() == list(range(1000))
    assert events["start_ns"].unique().to_list() == [1500]
    assert events["external_id"].null_count() == 1000
    assert json.loads(file.metadata_json) == {"k": [1, None]}
    assert file.notices == [("non-finite-number", 1, TEXT.index("NaN"), 1, "NaN")]
    assert file.event_counts == [("kernel", 1000, 0)]
    assert (file.categories, file.phases, file.partial, file.bytes_read) == (["kernel"], ["X"], False, len(TEXT))


def test_frames_share_the_memory_of_the_table(read: Read) -> None:
    file = read(TEXT)
    # WHEN one table is taken twice
    first, second = pl.DataFrame(file.events), pl.DataFrame(file.events)
    # THEN both frames look at the same buffers
    for name in ("start_ns", "correlation", "name"):
        assert first[name]._s.as_single_ptr() == second[name]._s.as_single_ptr()


def test_frames_outlive_the_file(read: Read) -> None:
    events = pl.DataFrame(read(TEXT).events)
    gc.collect()
    assert events["correlation"].sum() == 499500


def test_a_capsule_that_nobody_takes_is_freed(read: Read) -> None:
    table = read(TEXT).events
    for _ in range(3):
        table.__arrow_c_stream__()
        table.__arrow_c_stream__(None)
    assert pl.DataFrame(table).height == 1000


def test_a_malformed_file_says_where_and_why(tmp_path: Path) -> None:
    # GIVEN a name with a bare quote on line 2
    path = tmp_path / "bad.json"
    path.write_text('{"traceEvents":[\n{"name":"a"b"}]}')
    # WHEN it is read
    with pytest.raises(_native.TraceFormatError) as caught:
        _native.read_kineto(path)
    # THEN the error holds everything
    error = caught.value
    assert error.slug == "trace-malformed"
    assert error.message == "unescaped quote in a string"
    assert (error.path, error.line, error.byte) == (str(path), 2, 25)
    assert str(error) == f"{path}:2 (byte 25): unescaped quote in a string"


@pytest.mark.parametrize(
    ("content", "slug"),
    [
        (b"", "trace-empty"),
        (b" \n", "trace-empty"),
        (b'{"traceEvents":[', "trace-truncated"),
        (b'{"traceEvents":[]}{"traceEvents":[]}', "trace-many-documents"),
        (b'{"traceEvents":[01]}', "trace-malformed"),
        (b"{}", "not-a-trace"),
        (b"SQLite format 3\0", "format-unsupported"),
    ],
)
def test_each_error_has_its_slug(read: Read, content: bytes, slug: str) -> None:
    with pytest.raises(_native.TraceFormatError) as caught:
        read(content)
    assert caught.value.slug == slug
    assert (caught.value.line is None) == (slug in {"trace-empty", "not-a-trace", "format-unsupported"})


def test_a_missing_file_is_a_file_not_found_error(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    with pytest.raises(FileNotFoundError) as caught:
        _native.read_kineto(path)
    assert caught.value.filename == str(path)
    assert caught.value.errno == 2


def test_a_folder_is_an_is_a_directory_error(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError) as caught:
        _native.read_kineto(str(tmp_path))
    assert caught.value.filename == str(tmp_path)


def test_skipped_categories_are_counted(read: Read) -> None:
    file = read(TEXT, skip_categories=("kernel",))
    assert (len(file.events), file.event_counts, file.categories) == (0, [("kernel", 0, 1000)], [])


def test_one_string_is_no_sequence_of_categories(read: Read) -> None:
    with pytest.raises(TypeError):
        read(TEXT, skip_categories="kernel")


def test_recovery_is_asked_for_by_keyword(read: Read) -> None:
    file = read('{"traceEvents":[{"name":"a"},{"name":"b', recover=True)
    assert (len(file.events), file.partial, file.notices[0][0]) == (1, True, "truncated")


@pytest.mark.parametrize("thing", [_native.ArrowTable, _native.KinetoFile])
def test_native_classes_are_made_by_the_reader_only(thing: type) -> None:
    with pytest.raises(TypeError):
        thing()


def test_native_objects_are_frozen(read: Read) -> None:
    with pytest.raises(AttributeError):
        read(TEXT).partial = True  # type: ignore[misc]  # it must refuse


def test_build_info_tells_the_profile() -> None:
    info = _native.build_info()
    assert set(info) == {"version", "profile", "features"}
    assert info["profile"] in {"debug", "release"}


def test_the_length_of_an_event_is_bounded(read: Read, tmp_path: Path) -> None:
    # GIVEN an event of 111 bytes
    path = tmp_path / "long.json"
    path.write_text('{"traceEvents":[{"name":"%s"}]}' % ("x" * 100))
    # WHEN it may be as long, THEN it is read; WHEN one byte less, THEN it is refused with a sentence
    assert len(_native.read_kineto(path, max_event_bytes=111).events) == 1
    with pytest.raises(_native.TraceFormatError, match="longer than 110 bytes") as caught:
        _native.read_kineto(path, max_event_bytes=110)
    assert (caught.value.slug, caught.value.byte) == ("trace-malformed", 16)
