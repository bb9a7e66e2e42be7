"""Both readers against values worked out by hand from docs/native.md."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.conftest import HAS_NATIVE
from tests.oracle import kineto as oracle

Read = Callable[..., Any]


@pytest.fixture(params=["plain", "native"])
def reader(request: pytest.FixtureRequest) -> Any:
    if request.param == "plain":
        return oracle
    if not HAS_NATIVE:
        pytest.skip("moeprof._native is not built: run `maturin develop`")
    from moeprof import _native

    return _native


@pytest.fixture
def read(reader: Any, tmp_path: Path) -> Read:
    def read_bytes(data: bytes, **options: Any) -> Any:
        (tmp_path / "t.json").write_bytes(data)
        return reader.read_kineto(tmp_path / "t.json", **options)

    return read_bytes


@pytest.fixture
def fault(reader: Any, read: Read) -> Callable[..., tuple[str, int | None, int | None]]:
    def read_fault(data: bytes, **options: Any) -> tuple[str, int | None, int | None]:
        with pytest.raises(reader.TraceFormatError) as caught:
            read(data, **options)
        assert caught.value.message
        return caught.value.slug, caught.value.byte, caught.value.line

    return read_fault


def one(file: Any, column: str) -> Any:
    return pl.DataFrame(file.events)[column].item()


def notices(file: Any) -> list[tuple[str, int, int, int]]:
    return sorted(notice[:4] for notice in file.notices)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1", 1_000),
        ("1.001", 1_001),
        ('"1.001"', 1_001),
        ("-0.001", -1),
        ("1712195495521957.920", 1_712_195_495_521_957_920),
        ("1e3", 1_000_000),
        ("15E-1", 1_500),
        ("0e999999999999999999999", 0),
        ("1e-999999999999999999999", 0),
        ("0.0005", 0),
        ("0.0015", 2),
        ("0.0025", 2),
        ("0.00250000000000000000000000001", 3),
        ("-0.0015", -2),
        ("9223372036854775.807", 2**63 - 1),
        ("-9223372036854775.808", -(2**63)),
        ("9223372036854775.8074", 2**63 - 1),
        ("null", None),
        ('" 1"', None),
        ('"+1"', None),
        ("[1]", None),
        ("NaN", None),
    ],
)
def test_times_come_from_the_digits(read: Read, text: str, ns: int | None) -> None:
    assert one(read(b'[{"ph": "i", "ts": %s}]' % text.encode()), "start_ns") == ns


@pytest.mark.parametrize("text", ["9223372036854775.808", "9223372036854775.8075", "1e400", "-1e99999999999999999999"])
def test_times_beyond_64_bits_are_refused(fault: Any, text: str) -> None:
    assert fault(b'{"traceEvents": [\n{"ts": %s}]}' % text.encode()) == ("trace-malformed", 18, 2)


@pytest.mark.parametrize(
    ("text", "value", "bad"),
    [
        ("18446744073709551615", 2**64 - 1, False),
        ('"18446744073709551615"', 2**64 - 1, False),
        ("18446744073709551616", None, True),
        ("-1", None, True),
        ("1.5", None, True),
        ('"1.5"', None, True),
        ("1e3", None, True),
        ("-0", 0, False),
        ('"x"', None, False),
        ("true", None, False),
    ],
)
def test_ids_are_unsigned_64_bits(read: Read, text: str, value: int | None, bad: bool) -> None:
    found = read(b'[{"args": {"correlation": %s}}]' % text.encode())
    assert one(found, "correlation") == value
    assert [notice[0] for notice in found.notices] == (["bad-id"] if bad else [])


@pytest.mark.parametrize(
    ("raw", "name", "notice"),
    [
        (b"a\xffb", "a\ufffdb", ("invalid-utf8", 1, 12)),
        (b"\xe2\x82x\xe2\x82\xac", "\ufffdx\u20ac", ("invalid-utf8", 1, 11)),
        (b"\xed\xa0\x80", "\ufffd" * 3, ("invalid-utf8", 1, 11)),
        (b"\xf0\x9f\x98\\n", "\ufffd\n", ("invalid-utf8", 1, 11)),
        (b"x\\ud800y", "x\ufffdy", ("lone-surrogate", 1, 12)),
        (b"\\udc00", "\ufffd", ("lone-surrogate", 1, 11)),
        (b"\\ud800\\ud83d\\ude00", "\ufffd\U0001f600", ("lone-surrogate", 1, 11)),
        (b"a\x01\x02", "a\x01\x02", ("control-character", 1, 12)),
        (b'\\u0041\\/\\\\\\"', 'A/\\"', None),
    ],
)
def test_text_is_repaired(read: Read, raw: bytes, name: str, notice: tuple[str, int, int] | None) -> None:
    found = read(b'[\n{"name":"' + raw + b'"}]')
    assert pl.DataFrame(found.names)["name"].to_list() == [name]
    assert notices(found) == ([(*notice, 2)] if notice else [])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", ("trace-empty", None, None)),
        (b"\xef\xbb\xbf \n", ("trace-empty", None, None)),
        (b"5", ("not-a-trace", None, None)),
        (b"{}", ("not-a-trace", None, None)),
        (b'{"traceEvents": 5}', ("not-a-trace", None, None)),
        (b"PAR1xxxx", ("format-unsupported", None, None)),
        (b"SQLite format 3\x00", ("format-unsupported", None, None)),
        (b"\x28\xb5\x2f\xfdxxxx", ("format-unsupported", None, None)),
        (gzip.compress(b"PAR1xxxx"), ("format-unsupported", None, None)),
        (b'{"n":[-7.5"28"],"traceEvents":[]}', ("trace-malformed", 10, 1)),
        (b'[{"a":[true"x"]}]', ("trace-malformed", 11, 1)),
        (b'[{"a":[true.x]}]', ("trace-malformed", 7, 1)),
        (b'{"a": 1}\n{"b": 2}', ("not-a-trace", None, None)),
        (b"[{}]\n\n[]", ("trace-many-documents", 6, 3)),
        (b"[{}]\x00 {", ("trace-many-documents", 6, 1)),
        (b"[{}]x", ("trace-malformed", 4, 1)),
        (b"\xff\xfe[\x00]\x00", ("trace-malformed", 0, 1)),
        (b'[{"name": "a"b"}]', ("trace-malformed", 10, 1)),
        (b'[{"a"b": 1}]', ("trace-malformed", 2, 1)),
        (b'{"traceEvents": [], "h": "a"b"}', ("trace-malformed", 25, 1)),
        (b'[{"name": "a\\Wb"}]', ("trace-malformed", 12, 1)),
        (b'[{"name": "a\\u12g4"}]', ("trace-malformed", 12, 1)),
        (b'[{"a": 007}]', ("trace-malformed", 7, 1)),
        (b'[{"a": +1}]', ("trace-malformed", 7, 1)),
        (b'[{"a": 1,,"b": 2}]', ("trace-malformed", 9, 1)),
        (b"[5]", ("trace-malformed", 1, 1)),
        (b"[", ("trace-truncated", 1, 1)),
        (b'[{"a": 1', ("trace-truncated", 8, 1)),
        (b'[{"a": "x', ("trace-truncated", 9, 1)),
        (b'{"traceEvents": [\n{}]', ("trace-truncated", 21, 2)),
        (b'{"traceEvents": [{}], "a": 1', ("trace-truncated", 28, 1)),
        (gzip.compress(b'{"traceEvents": [{}]}')[:-4], ("trace-truncated", 21, 1)),
        (gzip.compress(b'{"traceEvents": [{}]}')[:-8] + b"XXXXXXXX", ("trace-malformed", 21, 1)),
        (gzip.compress(b'{"traceEvents": [{}]}') + b"junk", ("trace-malformed", 21, 1)),
        (gzip.compress(b"[{}]") + gzip.compress(b"[{}]"), ("trace-many-documents", 4, 1)),
    ],
)
def test_what_is_refused_and_where(fault: Any, data: bytes, expected: tuple[str, int | None, int | None]) -> None:
    assert fault(data) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'[{"a": [1,]},{"b": 2,},]', [("trailing-comma", 3, 9, 1)]),
        (b'[{}, null, {"a": 1}]', [("empty-event", 2, 1, 1)]),
        (b'[{"a": 1}', [("missing-end-mark", 1, 9, 1)]),
        (b'[{"a": 1},\n', [("missing-end-mark", 1, 11, 2)]),
        (b'[{"a": -inf, "b": NaN}]', [("non-finite-number", 2, 7, 1)]),
        (b'[{"ts": "nan"}]', [("non-finite-number", 1, 9, 1)]),
        (b'[{"a": "nan"}]', []),
        (b'[{"ph": "X"}]', [("missing-time", 1, 1, 1)]),
        (b'[{"ts": 1.00005}, {"ts": "1.0009"}]', [("sub-nanosecond", 2, 8, 1)]),
        (b"[]\x00\x00\n", [("trailing-data", 1, 2, 1)]),
        (gzip.compress(b"[]") + b"\x00" * 9, [("trailing-data", 1, 2, 1)]),
        (b'\xef\xbb\xbf[{"ph": "X", "ts": 0}]', []),
    ],
)
def test_what_is_accepted_with_a_notice(read: Read, data: bytes, expected: list[tuple[str, int, int, int]]) -> None:
    assert notices(read(data)) == expected


def test_codes_tracks_and_counts(read: Read) -> None:
    # GIVEN events of three categories, one of them skipped, and pids as numbers and texts
    data = b'[{"ph":"X","ts":1,"cat":"k","name":"n","pid":4100,"tid":"4100"},{"ph":"i","cat":"f","name":"lost"},{"ph":"i","name":"m","pid":"4100","tid":4100},{"cat":"k","name":"n","pid":null}]'
    found = read(data, skip_categories=["f"])
    # THEN codes are in order of first appearance, and the skipped event is counted only
    assert (found.phases, found.categories) == (["X", "i", ""], ["k", ""])
    assert pl.DataFrame(found.names)["name"].to_list() == ["n", "m"]
    assert pl.DataFrame(found.tracks).rows() == [("4100", "4100"), ("", "")]
    assert pl.DataFrame(found.events).select("ph", "category", "name", "track").rows() == [
        (0, 0, 0, 0),
        (1, 1, 1, 0),
        (2, 0, 0, 1),
    ]
    assert found.event_counts == [("k", 2, 0), ("f", 0, 1), ("", 1, 0)]
    assert found.bytes_read == len(data)


def test_the_last_of_two_equal_keys_counts(read: Read) -> None:
    found = read(b'[{"ts": 5, "ts": 6, "args": {"correlation": 1}, "args": {"External id": 2, "external id": 3}}]')
    assert (one(found, "start_ns"), one(found, "correlation"), one(found, "external_id")) == (6_000, None, 3)


def test_args_of_the_device(read: Read) -> None:
    found = read(
        b'[{}, {"a": 1}, {"args": {"device": "1", "grid": [1, "2", 3], "block": [1.5, 2]}}, {"args": {"Bytes": -5}}, {"args": {"device": 1.0}}]'
    )
    assert pl.DataFrame(found.device_args).select(
        "row", "device", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "bytes"
    ).rows() == [
        (1, 1, 1, None, 3, None, 2, None),
        (2, None, None, None, None, None, None, -5),
    ]


def test_args_of_collectives(read: Read) -> None:
    found = read(
        b'[{"args": {"Collective name": "allreduce", "In msg nelems": 5, "Group size": "8", "Process Group Ranks": "[0, 1]", "Comms Id": 18446744073709551615, "dtype": 5}}, {"args": {"Collective name": 5}}]'
    )
    columns = ["row", "collective", "in_elements", "group_size", "group_ranks", "comms_id", "dtype", "sequence"]
    assert pl.DataFrame(found.collective_args).select(columns).rows() == [
        (0, "allreduce", 5, 8, "[0, 1]", 2**64 - 1, None, None)
    ]


def test_labels_of_metadata_events(read: Read) -> None:
    found = read(
        b'[{"ph":"M","args":{"sort_index":5,"labels":"l","name":"n"}},{"ph":"M","args":{"labels":"l"}},{"ph":"M","args":{"sort_index":5}},{"ph":"M"},{"ph":"X","ts":1,"args":{"name":"n"}}]'
    )
    assert pl.DataFrame(found.labels).rows() == [(0, "n"), (1, "l"), (2, "5")]


def test_metadata_keeps_order_and_is_repaired(read: Read) -> None:
    found = read(
        b'{"b": [1.50, NaN], "traceEvents": [], "a\xff": {"x": "\\ud800"}, "big": 123456789012345678901234567890}'
    )
    assert (
        "".join(found.metadata_json.split())
        == '{"b":[1.50,null],"a\ufffd":{"x":"\ufffd"},"big":123456789012345678901234567890}'
    )
    assert read(b"[]").metadata_json == "{}"


@pytest.mark.parametrize(
    ("data", "rows", "expected"),
    [
        (b'{"traceEvents": [{"name": "a"b", "x": 1},\n{"ph": "i"}]}', 1, [("dropped-event", 1, 26, 1)]),
        (b'{"traceEvents": [{"ph": "i"},{"name": "\\q"}, {"name": "\\w"}], "b": 1}', 1, [("dropped-event", 2, 39, 1)]),
        (b'{"traceEvents": [{"ph": "i"},{"ts": 1e400}, {"ph": "i"}]}', 2, [("dropped-event", 1, 29, 1)]),
        (
            b'{"traceEvents":[{"a":\\,"args":{"x":[{"id":1}]}},{"ph":2}]}',
            0,
            [("dropped-event", 1, 21, 1), ("trailing-data", 1, 46, 1)],
        ),
        (b'{"traceEvents":[{"ph":1},}],"b":1}', 1, [("dropped-event", 1, 25, 1)]),
        (b"[{}, } ]", 0, [("dropped-event", 1, 5, 1), ("empty-event", 1, 1, 1)]),
        (b'[{"args":{"x":[1,{"id":1}]},"bad":\\q},{"ph":"i"}]', 1, [("dropped-event", 1, 34, 1)]),
        (b'[{"ph":"Q","name":"\\ud800","ts":1.0001,"dur":1e300},{"ph":"i"}]', 1, [("dropped-event", 1, 1, 1)]),
        (b'{"traceEvents": [{"ph": "i"},{"ph": "i"', 1, [("truncated", 1, 39, 1)]),
        (b'{"traceEvents": [{"ph": "i"}], "b": "x', 1, [("truncated", 1, 38, 1)]),
        (gzip.compress(b'{"traceEvents": [{"ph": "i"}]}')[:-4], 1, [("truncated", 1, 30, 1)]),
    ],
)
def test_recovery(read: Read, fault: Any, data: bytes, rows: int, expected: list[tuple[str, int, int, int]]) -> None:
    # GIVEN a damaged file, which is refused as it is
    assert fault(data)[0] in ("trace-malformed", "trace-truncated")
    # WHEN it is read with recover, THEN what is whole is there and the loss is told
    found = read(data, recover=True)
    assert found.partial is True
    assert (len(pl.DataFrame(found.events)), notices(found)) == (rows, expected)
    # AND dropped events have left no codes
    assert found.phases in ([], [""], ["i"])


@pytest.mark.parametrize("data", [b"", b"[{}] []", b"{}", b'{"traceEvents"', b'{"a": tru, "traceEvents": []}'])
def test_what_recovery_cannot_help(fault: Any, data: bytes) -> None:
    assert fault(data, recover=True) == fault(data)


def test_nesting_has_a_limit(read: Read, fault: Any) -> None:
    def nested(depth: int) -> bytes:
        return b'{"traceEvents": [{"a": ' + b"[" * depth + b"]" * depth + b"}]}"

    # GIVEN brackets inside an event, which is itself at depth 3
    assert len(pl.DataFrame(read(nested(253)).events)) == 1
    assert fault(nested(254)) == ("trace-malformed", 23 + 253, 1)


def test_a_missing_file_is_an_error_of_the_operating_system(reader: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        reader.read_kineto(tmp_path / "nothing.json")
