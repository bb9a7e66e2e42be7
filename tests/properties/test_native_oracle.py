"""The native reader against the plain one: every table, notice and error, on made, damaged and real files."""

from __future__ import annotations

import gzip
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from tests.conftest import HAS_NATIVE
from tests.oracle import kineto as oracle
from tests.shared import shared_root

if HAS_NATIVE:
    from moeprof import _native
else:
    pytest.skip(
        "moeprof._native is not built, so nothing is held against the plain reader: run `maturin develop`",
        allow_module_level=True,
    )

TABLES = ("events", "names", "tracks", "device_args", "collective_args", "labels")
PLAIN = ("categories", "phases", "event_counts", "partial", "bytes_read")


@dataclass(frozen=True)
class Outcome:
    """What a reader makes of a file, comparable."""

    tables: dict[str, pl.DataFrame]
    facts: dict[str, object]


def read(reader: Any, path: Path, **options: Any) -> Outcome:
    try:
        file = reader.read_kineto(path, **options)
    except reader.TraceFormatError as error:
        return Outcome({}, {"slug": error.slug, "byte": error.byte, "line": error.line})
    facts: dict[str, object] = {name: getattr(file, name) for name in PLAIN}
    facts["notices"] = sorted(notice[:4] for notice in file.notices)
    facts["metadata"] = json.loads(file.metadata_json, parse_float=str, parse_int=str, object_pairs_hook=_pairs)
    return Outcome({name: pl.DataFrame(getattr(file, name)) for name in TABLES}, facts)


def _pairs(pairs: list[tuple[str, object]]) -> list[tuple[str, object]]:
    """Keep the order of keys, which is part of what readers return."""
    return list(dict(pairs).items())


def assert_same(path: Path, **options: Any) -> None:
    native, plain = read(_native, path, **options), read(oracle, path, **options)
    assert native.facts == plain.facts
    for name, frame in plain.tables.items():
        assert_frame_equal(native.tables[name], frame)


def assert_same_bytes(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.json"
        path.write_bytes(data)
        for recover in (False, True):
            for skipped in ((), ("python_function",)):
                assert_same(path, recover=recover, skip_categories=skipped)


# Text of a JSON document, built so that layouts, spellings and oddities vary.

blank = st.sampled_from(["", "", "", " ", "\n", "\r\n", "\t ", "  \n"])


def joined(parts: list[str], gaps: list[str], opening: str, closing: str) -> str:
    """Put parts between brackets with white space from `gaps`, used round and round."""
    gap = iter(gaps * (2 * len(parts) + 2))
    inner = ",".join(f"{next(gap)}{part}{next(gap)}" for part in parts)
    return f"{opening}{inner or next(gap)}{closing}"


word = st.sampled_from(
    ["k", "aten::mm", "", "a b", "\u00fc\u4e2d", "\U0001f600", 'q"uote', "back\\slash", "tab\tline\n", "X" * 70]
)
raw_string = st.sampled_from(
    [
        '"\\u0041"',
        '"\\ud83d\\ude00"',
        '"\\ud800"',
        '"\\ud800\\u0041"',
        '"\\udc00x"',
        '"\\/\\b\\f"',
        '"raw\x01"',
        '"1.5"',
    ]
)
string = st.one_of(word.map(json.dumps), word.map(lambda text: json.dumps(text, ensure_ascii=False)), raw_string)

digits = st.integers(0, 10**7).map(str)
numbers = st.one_of(
    digits,
    st.integers(-(2**65), 2**65).map(str),
    st.builds("{}.{:03d}".format, st.integers(-(10**16), 10**16), st.integers(0, 999)),
    st.builds("{}.{}".format, digits, st.text("0123456789", min_size=1, max_size=9)),
    st.builds("{}e{}".format, digits, st.integers(-12, 12)),
    st.sampled_from(
        [
            "0",
            "-0",
            "-0.0",
            "0.0005",
            "0.0015",
            "-0.0005",
            "1E3",
            "1e-400",
            "0e99999999999",
            "5e-324",
            "9223372036854775.807",
        ]
    ),
)
odd_number = st.sampled_from(
    ["NaN", "-Infinity", "inf", "-nan", "Nan", "9223372036854775.808", "1e400", "007", "+1", "1.", ".5", "0x10", "-"]
)
scalar = st.one_of(numbers, numbers.map(lambda text: f'"{text}"'), string, st.sampled_from(["true", "false", "null"]))
number_like = st.one_of(numbers, numbers, numbers, numbers.map(lambda text: f'"{text}"'), scalar)
value = st.recursive(
    scalar,
    lambda inner: st.one_of(
        st.builds(
            lambda parts, gaps: joined(parts, gaps, "[", "]"),
            st.lists(inner, max_size=3),
            st.lists(blank, min_size=1, max_size=3),
        ),
        st.builds(
            lambda parts, gaps: joined([f"{key}:{item}" for key, item in parts], gaps, "{", "}"),
            st.lists(st.tuples(string, inner), max_size=3),
            st.lists(blank, min_size=1, max_size=3),
        ),
    ),
    max_leaves=6,
)

ARGS = {
    "correlation": number_like,
    "External id": number_like,
    "external id": number_like,
    "device": number_like,
    "stream": number_like,
    "bytes": number_like,
    "Bytes": number_like,
    "grid": st.sampled_from(["[1,2,3]", "[ 1 , 2 ]", "[]", '["4",5,6]', "[1,2,3,4]", "[1.5,2,3]", "7", "[null,[1],3]"]),
    "block": st.sampled_from(["[32,1,1]", "{}", '"x"']),
    "registers per thread": number_like,
    "shared memory": number_like,
    "graph id": number_like,
    "graph node id": number_like,
    "Collective name": string,
    "dtype": string,
    "Process Group Name": st.one_of(string, number_like),
    "Process Group Ranks": st.one_of(string, st.just("[0, 1]")),
    "In msg nelems": number_like,
    "Group size": number_like,
    "Seq": number_like,
    "Comms Id": number_like,
    "name": string,
    "labels": string,
    "sort_index": number_like,
    "other": value,
}
FIELDS = {
    "ph": st.sampled_from(['"X"', '"X"', '"X"', '"M"', '"i"', '"B"', "null", "1"]),
    "cat": st.sampled_from(['"kernel"', '"cpu_op"', '"python_function"', '"ac2g"', '"\\u006bernel"', "5"]),
    "name": st.one_of(string, string, number_like),
    "pid": st.one_of(digits, string, scalar),
    "tid": st.one_of(digits, string, scalar),
    "ts": number_like,
    "dur": number_like,
    "id": scalar,
    "bp": string,
    "extra": value,
}


def members(fields: dict[str, st.SearchStrategy[str]]) -> st.SearchStrategy[list[str]]:
    """Return members of an object in any order, some of them absent, now and then one twice."""
    one = st.sampled_from(sorted(fields)).flatmap(lambda key: fields[key].map(lambda text: f'"{key}":{text}'))
    return st.lists(one, max_size=9)


gaps = st.lists(blank, min_size=1, max_size=4)
args = st.builds(lambda parts, white: joined(parts, white, "{", "}"), members(ARGS), gaps)
event = st.builds(
    lambda parts, inner, white: joined([*parts, f'"args":{inner}'] if inner else parts, white, "{", "}"),
    members(FIELDS),
    st.one_of(st.none(), args, args, args, value),
    gaps,
)
element = st.one_of(event, event, event, event, st.sampled_from(["{}", "null", "{ }"]))
metadata = st.lists(
    st.tuples(
        st.sampled_from(
            ['"schemaVersion"', '"distributedInfo"', '"baseTimeNanoseconds"', '"traceName"', '"\\u0061"', '"\u00fc"']
        ),
        value,
    ),
    max_size=3,
)


def document(
    events: list[str], before: list[tuple[str, str]], after: list[tuple[str, str]], white: list[str], bare: bool
) -> str:
    array = joined(events, white, "[", "]")
    if bare:
        return array
    top = (
        [f"{key}:{item}" for key, item in before]
        + [f'"traceEvents":{array}']
        + [f"{key}:{item}" for key, item in after]
    )
    return joined(top, white, "{", "}")


documents = st.builds(document, st.lists(element, max_size=5), metadata, metadata, gaps, st.booleans())


@given(documents)
def test_well_formed_files(text: str) -> None:
    assert_same_bytes(text.encode("utf-8", errors="surrogatepass"))


@given(documents, st.data())
def test_files_with_changed_bytes(text: str, data: st.DataObject) -> None:
    # GIVEN a file with one to three bytes replaced, put in or taken out
    raw = bytearray(text.encode("utf-8"))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, max(len(raw) - 1, 0)))
        new = data.draw(
            st.sampled_from(
                [
                    b"",
                    b'"',
                    b"\\",
                    b",",
                    b"{",
                    b"}",
                    b"[",
                    b"]",
                    b":",
                    b"\xff",
                    b"\xe2\x82",
                    b"\x00",
                    b"\x1f",
                    b"0",
                    b"N",
                    b"x",
                    b"\n",
                ]
            )
        )
        raw[place : place + data.draw(st.integers(0, 1))] = new
    assert_same_bytes(bytes(raw))


@given(documents, st.data())
def test_cut_files(text: str, data: st.DataObject) -> None:
    raw = text.encode("utf-8")
    assert_same_bytes(raw[: data.draw(st.integers(0, len(raw)))])


@given(numbers, odd_number, st.sampled_from(["ts", "dur", "correlation", "device"]), st.booleans(), st.booleans())
def test_numbers(good: str, odd: str, key: str, quoted: bool, use_odd: bool) -> None:
    text = odd if use_odd else good
    shown = f'"{text}"' if quoted else text
    inside = f'"{key}": {shown}' if key in ("ts", "dur") else f'"args": {{"{key}": {shown}}}'
    assert_same_bytes(f'{{"traceEvents": [{{"ph": "X", {inside}}}, {{"ph": "M"}}]}}'.encode())


@given(st.binary(max_size=12))
@example(b"\xef\xbb\xbf")
@example(b"\xff\xfe{\x00}\x00")
@example(b"\xfe\xff\x00{")
@example(b"{\x00}\x00")
def test_any_bytes_at_the_start_of_a_name_and_alone(raw: bytes) -> None:
    assert_same_bytes(raw)
    assert_same_bytes(b'{"traceEvents": [{"name": "' + raw + b'"}]}')


TAILS = [b"", b"\n", b"\x00", b"\x00\x00 \n", b"{}", b"[", b"x", b"\x00{", b",", b"]", b"}", b" null"]


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize(
    "head",
    [
        b'{"traceEvents": [{"ph": "X", "ts": 1}], "a": 1}',
        b'[{"ph": "X", "ts": 1}]',
        b'[{"ph": "X", "ts": 1},',
        b'{"a": 1}',
        b"5",
        b'"x"',
        b"\xef\xbb\xbf[]",
    ],
)
def test_what_follows_the_document(head: bytes, tail: bytes) -> None:
    assert_same_bytes(head + tail)


@pytest.mark.parametrize("depth", [250, 251, 252, 253, 254, 255, 256, 257, 300])
def test_nesting(depth: int) -> None:
    assert_same_bytes(b'{"traceEvents": [{"args": {"x": ' + b"[" * depth + b"]" * depth + b"}}]}")
    assert_same_bytes(b"[" * depth + b"]" * depth)


@pytest.mark.parametrize(
    "tail",
    [b"", b"\x00" * 20, b"junk", gzip.compress(b"  "), gzip.compress(b'{"traceEvents": []}'), gzip.compress(b"\x00")],
)
def test_what_follows_a_gzip_member(tail: bytes) -> None:
    assert_same_bytes(gzip.compress(b'{"traceEvents": [{"ph": "X", "ts": 1}]}') + tail)


@given(documents, st.integers(1, 4))
def test_gzip_or_plain_one_member_or_many_is_irrelevant(text: str, members_: int) -> None:
    # GIVEN a text, and the same in gzip members
    raw = text.encode("utf-8")
    size = max(len(raw) // members_, 1)
    packed = b"".join(gzip.compress(raw[i : i + size]) for i in range(0, len(raw), size))
    with tempfile.TemporaryDirectory() as folder:
        plain, zipped = Path(folder) / "a.json", Path(folder) / "b.json"
        plain.write_bytes(raw)
        zipped.write_bytes(packed)
        # WHEN both are read, THEN the native reader returns the same
        first, second = read(_native, plain), read(_native, zipped)
    assert first.facts == second.facts
    for name, frame in first.tables.items():
        assert_frame_equal(frame, second.tables[name])


@pytest.mark.parametrize("cut", [1, 4, 8, 9, 20, 200, 2000])
def test_cut_gzip(cut: int) -> None:
    # GIVEN a stream that lacks its last bytes; how much text came out of it is the decoder's affair
    packed = gzip.compress(
        json.dumps({"traceEvents": [{"ph": "X", "ts": i, "name": str(i * i)} for i in range(900)]}).encode()
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.json.gz"
        path.write_bytes(packed[:-cut])
        assert read(_native, path).facts["slug"] == read(oracle, path).facts["slug"] == "trace-truncated"
        assert read(_native, path, recover=True).facts["partial"] is True


SHARED = shared_root() / "traces"


MEDIUM = 400_000


def _real() -> list[Any]:
    files = sorted(path for path in SHARED.rglob("*") if path.is_file() and path.stat().st_size < 3_000_000)
    picked = [
        path
        for path in files
        if path.suffix in (".json", ".sqlite", ".parquet", ".txt") or path.name.endswith((".json.gz", ".sqlite.gz"))
    ]
    slow = [pytest.mark.slow, pytest.mark.timeout(600)]
    return [
        pytest.param(path, id=str(path.relative_to(SHARED)), marks=slow if path.stat().st_size > 8_000 else [])
        for path in picked
    ]


@pytest.mark.parametrize(
    "path", _real() or [pytest.param(None, marks=pytest.mark.skip(reason=f"no shared traces at {SHARED}"))]
)
def test_real_files(path: Path) -> None:
    assert_same(path)
    if path.stat().st_size < MEDIUM:  # the plain reader takes minutes for the others
        assert_same(path, recover=True)
        assert_same(path, skip_categories=("python_function", "cpu_op", "kernel"))


@pytest.mark.parametrize(
    "text",
    [
        b'{"traceEvents":[{"ph":"X","ts":1},{"ph":"X","ts":1e99},{"ph":"X","ts":3}]}',
        b'[{"ph":"X","ts":1e99}',
        b'[{"ph":1} {"ph":2},{"ph":3}]',
    ],
)
def test_recovery_gets_past_an_event_that_is_wrong_at_its_first_byte(text: bytes) -> None:
    assert_same_bytes(text)
