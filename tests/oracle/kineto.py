"""A slow and plain reader of Kineto files, written from docs/native.md alone, that the native reader is held against.

The whole text is in memory, one token is read at a time, and an event is judged only after it has been read whole.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

MAX_DEPTH = 256
INT64 = range(-(2**63), 2**63)
UINT64 = range(2**64)

_BLANK = re.compile(rb"[ \t\r\n]*")
_PLAIN = re.compile(rb'"([\x20\x21\x23-\x5b\x5d-\x7f]*)"')
_RUN = re.compile(rb'[^"\\]*')
_WORD = re.compile(rb"[^ \t\r\n,:\[\]{}\"]*")
_NUMBER = re.compile(rb"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?\Z")
_CUT_NUMBER = re.compile(rb"-?((0|[1-9][0-9]*)(\.([0-9]+([eE][+-]?)?)?|[eE][+-]?)?)?\Z")
_NON_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)\Z", re.IGNORECASE)
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)\Z")
_CONTROL = re.compile(rb"[\x00-\x1f]")
_ESCAPES = {ord(a): b for a, b in zip('"\\/bfnrt', '"\\/\b\f\n\r\t', strict=True)}
_EVENT_START = re.compile(rb'\{[ \t\r\n]*"(ph|cat|name|args|ts|dur|pid|tid|id|bp|s)"[ \t\r\n]*:')
_FORMATS = (
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"NVIDIA Tegra Profiler Report", "an Nsight Systems report (.nsys-rep)"),
    (b"NVIDIA Nsight Systems Stream", "an Nsight Systems stream (.qdstrm)"),
)
_UTF_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_TIME_KEYS = ("ts", "dur")


class TraceFormatError(Exception):
    """Mirror of the native error."""

    def __init__(self, slug: str, message: str, path: str, line: int | None, byte: int | None) -> None:
        super().__init__(message)
        self.slug, self.message, self.path, self.line, self.byte = slug, message, path, line, byte


@dataclass(frozen=True)
class KinetoFile:
    """Mirror of the native result; the tables are polars frames."""

    events: pl.DataFrame
    names: pl.DataFrame
    tracks: pl.DataFrame
    device_args: pl.DataFrame
    collective_args: pl.DataFrame
    labels: pl.DataFrame
    categories: list[str]
    phases: list[str]
    metadata_json: str
    notices: list[tuple[str, int, int, int, str]]
    event_counts: list[tuple[str, int, int]]
    partial: bool
    bytes_read: int


class _Malformed(Exception):
    def __init__(self, message: str, byte: int) -> None:
        self.message, self.byte = message, byte


class _Ended(Exception):
    """The text ended inside the document."""


class _Number:
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class _NonFinite:
    __slots__ = ()


NON_FINITE = _NonFinite()
Node = object  # str, _Number, _NonFinite, bool, None, list of nodes, dict of key to (node, byte)


class _Text:
    """The tokenizer: nodes with positions, and the notices that concern the text alone."""

    def __init__(self, data: bytes, notice) -> None:
        self.data, self.size, self.pos, self.notice = data, len(data), 0, notice

    def blank(self) -> int:
        """Step over white space; return the next byte, or -1 at the end."""
        self.pos = _BLANK.match(self.data, self.pos).end()
        return self.data[self.pos] if self.pos < self.size else -1

    def string(self) -> str:
        plain = _PLAIN.match(self.data, self.pos)
        if plain:
            self.pos = plain.end()
            return plain[1].decode("ascii")
        i, parts = self.pos + 1, []
        first: dict[str, int] = {}
        while True:
            run = _RUN.match(self.data, i)
            raw = run[0]
            control = _CONTROL.search(raw)
            if control:
                first.setdefault("control-character", i + control.start())
            try:
                parts.append(raw.decode("utf-8"))
            except UnicodeDecodeError as error:
                first.setdefault("invalid-utf8", i + error.start)
                parts.append(raw.decode("utf-8", errors="replace"))
            i = run.end()
            if i >= self.size:
                raise _Ended
            if self.data[i] == 0x22:
                break
            i = self._escape(i, parts, first)
        for slug, byte in first.items():
            self.notice(slug, byte, "".join(parts))
        self.pos = i + 1
        return "".join(parts)

    def _escape(self, i: int, parts: list[str], first: dict[str, int]) -> int:
        if i + 1 >= self.size:
            raise _Ended
        letter = self.data[i + 1]
        if letter in _ESCAPES:
            parts.append(_ESCAPES[letter])
            return i + 2
        if letter != 0x75:
            shown = chr(letter) if 0x20 <= letter < 0x7F else f"0x{letter:02x}"
            raise _Malformed(f"invalid escape \\{shown}", i)
        code = self._hex(i)
        if 0xD800 <= code < 0xDC00 and self.data[i + 6 : i + 8] == b"\\u":
            low = self._hex(i + 6)
            if 0xDC00 <= low < 0xE000:
                parts.append(chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)))
                return i + 12
        if 0xD800 <= code < 0xE000:
            first.setdefault("lone-surrogate", i)
            parts.append("\ufffd")
        else:
            parts.append(chr(code))
        return i + 6

    def _hex(self, i: int) -> int:
        digits = self.data[i + 2 : i + 6]
        for digit in digits:
            if digit not in b"0123456789abcdefABCDEF":
                raise _Malformed("invalid escape \\u", i)
        if len(digits) < 4:
            raise _Ended
        return int(digits, 16)

    def value(self, depth: int) -> Node:
        """Read one value whose container is `depth` deep; `pos` stands on its first byte."""
        byte = self.data[self.pos]
        if byte == 0x22:
            return self.string()
        if byte == 0x7B:
            return self.object(depth + 1)
        if byte == 0x5B:
            return self.array(depth + 1)
        return self.word()

    def word(self) -> Node:
        start = self.pos
        raw = _WORD.match(self.data, start)[0]
        end = start + len(raw)
        at_end = end >= self.size
        if raw in (b"true", b"false", b"null"):
            self.pos = end
            return {b"true": True, b"false": False, b"null": None}[raw]
        if _NUMBER.match(raw):
            self.pos = end
            if at_end:
                raise _Ended
            return _Number(raw.decode("ascii"))
        if _NON_FINITE.match(raw):
            self.pos = end
            self.notice("non-finite-number", start, raw.decode("ascii"))
            return NON_FINITE
        if at_end and raw and self._may_go_on(raw):
            raise _Ended
        if not raw:
            raise _Malformed("a value is missing", start)
        if raw[0] in b"+-.0123456789":
            raise _Malformed("bad number", start)
        raise _Malformed("unexpected text", start)

    @staticmethod
    def _may_go_on(raw: bytes) -> bool:
        words = (b"true", b"false", b"null")
        if any(word.startswith(raw) for word in words) or _CUT_NUMBER.match(raw):
            return True
        bare = raw.lstrip(b"+-")[-len(raw) :].lower()
        return len(raw) - len(bare) <= 1 and any(word.startswith(bare) for word in (b"nan", b"infinity"))

    def open(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise _Malformed(f"nesting above {MAX_DEPTH}", self.pos)
        self.pos += 1

    def key(self) -> str:
        """Read a key and its colon; `pos` stands on what should be a quote."""
        start = self.pos
        if self.data[start] != 0x22:
            raise _Malformed("a key is missing", start)
        key = self.string()
        byte = self.blank()
        if byte < 0:
            raise _Ended
        if byte != 0x3A:
            raise _Malformed("unescaped quote in a string", start)
        self.pos += 1
        if self.blank() < 0:
            raise _Ended
        return key

    def separator(self, close: int, value_start: int) -> bool:
        """Read a comma or the closing bracket; return True when the container is closed."""
        byte = self.blank()
        if byte < 0:
            raise _Ended
        if byte == close:
            self.pos += 1
            return True
        if byte != 0x2C:
            if self.data[value_start] == 0x22:
                raise _Malformed("unescaped quote in a string", value_start)
            raise _Malformed("a comma is missing", self.pos)
        comma = self.pos
        self.pos += 1
        byte = self.blank()
        if byte < 0:
            raise _Ended
        if byte == close:
            self.notice("trailing-comma", comma, ",")
            self.pos += 1
            return True
        return False

    def object(self, depth: int) -> dict[str, tuple[Node, int]]:
        self.open(depth)
        found: dict[str, tuple[Node, int]] = {}
        byte = self.blank()
        if byte < 0:
            raise _Ended
        if byte == 0x7D:
            self.pos += 1
            return found
        while True:
            key = self.key()
            start = self.pos
            node = self.value(depth)
            found[key] = (node, start)
            if self.separator(0x7D, start):
                return found

    def array(self, depth: int) -> list[Node]:
        self.open(depth)
        found: list[Node] = []
        byte = self.blank()
        if byte < 0:
            raise _Ended
        if byte == 0x5D:
            self.pos += 1
            return found
        while True:
            start = self.pos
            found.append(self.value(depth))
            if self.separator(0x5D, start):
                return found


def to_ns(text: str) -> tuple[int, bool] | None:
    """Return the ns of a decimal text in us and whether digits were rounded away; None beyond int64."""
    mantissa, _, exponent = text.lower().partition("e")
    sign = -1 if mantissa.startswith("-") else 1
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return 0, False
    shift = int(exponent or "0") - len(fraction) + 3
    if len(digits) + shift > 20:
        return None
    if shift >= 0:
        ns, rounded = int(digits) * 10**shift, False
    elif -shift > len(digits):
        ns, rounded = 0, True
    else:
        kept, lost = digits[:shift] or "0", digits[shift:]
        ns, rounded = int(kept), lost.strip("0") != ""
        half = "5" + "0" * (len(lost) - 1)
        if lost > half or (lost == half and ns % 2):
            ns += 1
    ns *= sign
    return (ns, rounded) if ns in INT64 else None


@dataclass
class _Event:
    """One event, judged: what becomes a row, with the notices it causes."""

    fields: dict[str, tuple[Node, int]]
    byte: int
    notices: list[tuple[str, int, str]] = field(default_factory=list)

    def text(self, key: str) -> str:
        node = self.fields.get(key, (None, 0))[0]
        return node if isinstance(node, str) else ""

    def label(self, key: str) -> str:
        node = self.fields.get(key, (None, 0))[0]
        if isinstance(node, _Number):
            return node.text
        return node if isinstance(node, str) else ""

    @property
    def args(self) -> dict[str, tuple[Node, int]]:
        node = self.fields.get("args", (None, 0))[0]
        return node if isinstance(node, dict) else {}

    def number(self, where: dict[str, tuple[Node, int]], key: str) -> tuple[str, int] | None:
        """Return the digits of a number, or of a number in a string, and their position."""
        node, byte = where.get(key, (None, 0))
        if isinstance(node, _Number):
            return node.text, byte
        if isinstance(node, str):
            if _NON_FINITE.match(node.encode("utf-8")):
                self.notices.append(("non-finite-number", byte, node))
            elif _NUMBER.match(node.encode("utf-8")):
                return node, byte
        return None

    def time(self, key: str) -> int | None:
        found = self.number(self.fields, key)
        if found is None:
            return None
        ns = to_ns(found[0])
        if ns is None:
            raise _Malformed(f"{key} is beyond 64 bits of ns", found[1])
        if ns[1]:
            self.notices.append(("sub-nanosecond", found[1], found[0]))
        return ns[0]

    def identifier(self, *keys: str) -> int | None:
        """Return an id; of several spellings the last one in the file counts."""
        present = [key for key in keys if key in self.args]
        if not present:
            return None
        found = self.number(self.args, max(present, key=lambda key: self.args[key][1]))
        if found is None:
            return None
        if _INTEGER.match(found[0]) and not found[0].startswith("-") and int(found[0]) in UINT64:
            return int(found[0])
        self.notices.append(("bad-id", found[1], found[0]))
        return None

    def integer(self, *keys: str, span: range = INT64) -> int | None:
        present = [key for key in keys if key in self.args]
        if not present:
            return None
        found = self.number(self.args, max(present, key=lambda key: self.args[key][1]))
        return _whole(found[0], span) if found else None

    def triple(self, key: str) -> list[int | None]:
        node = self.args.get(key, (None, 0))[0]
        values = node if isinstance(node, list) else []
        whole = [_whole(item.text, INT64) if isinstance(item, _Number) else None for item in values[:3]]
        return whole + [None] * (3 - len(whole))

    def string(self, key: str) -> str | None:
        node = self.args.get(key, (None, 0))[0]
        return node if isinstance(node, str) else None


def _whole(text: str, span: range) -> int | None:
    return int(text) if _INTEGER.match(text) and int(text) in span else None


_EVENTS = {
    "ph": pl.UInt8,
    "category": pl.UInt16,
    "name": pl.UInt32,
    "track": pl.UInt32,
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "correlation": pl.UInt64,
    "external_id": pl.UInt64,
}
_DEVICE = {"row": pl.UInt32} | dict.fromkeys(
    (
        *("device", "stream", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
        *("registers_per_thread", "shared_memory", "bytes"),
    ),
    pl.Int64,
)
_DEVICE |= {"graph_id": pl.UInt64, "graph_node_id": pl.UInt64}
_COLLECTIVE = {
    "row": pl.UInt32,
    "collective": pl.String,
    "dtype": pl.String,
    "group_name": pl.String,
    "group_description": pl.String,
    "group_ranks": pl.String,
    "in_elements": pl.Int64,
    "out_elements": pl.Int64,
    "group_size": pl.Int64,
    "source_rank": pl.Int64,
    "destination_rank": pl.Int64,
    "sequence": pl.UInt64,
    "comms_id": pl.UInt64,
}


def _frame(rows: list[tuple], schema: dict[str, object]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=schema, orient="row")


class _Tables:
    """The rows of the tables, filled event by event."""

    def __init__(self, skipped: Sequence[str]) -> None:
        self.skipped = frozenset(skipped)
        self.phases: dict[str, int] = {}
        self.categories: dict[str, int] = {}
        self.names: dict[str, int] = {}
        self.tracks: dict[tuple[str, str], int] = {}
        self.counts: dict[str, list[int]] = {}
        self.events: list[tuple] = []
        self.device: list[tuple] = []
        self.collective: list[tuple] = []
        self.labels: list[tuple] = []

    def add(self, event: _Event) -> bool:
        """Take one event; return False for one that is only counted."""
        category = event.text("cat")
        if category in self.skipped:
            self.counts.setdefault(category, [0, 0])[1] += 1
            return False
        start, duration = event.time("ts"), event.time("dur")
        correlation, external = event.identifier("correlation"), event.identifier("External id", "external id")
        phase = event.text("ph")
        if phase == "X" and start is None:
            event.notices.append(("missing-time", event.byte, event.text("name")))
        row = len(self.events)
        device, collective, label = self._device(event, row), self._collective(event, row), self._label(event, row)
        self.counts.setdefault(category, [0, 0])[0] += 1
        self.events.append(
            (
                _code(self.phases, phase),
                _code(self.categories, category),
                _code(self.names, event.text("name")),
                _code(self.tracks, (event.label("pid"), event.label("tid"))),
                start,
                duration,
                correlation,
                external,
            )
        )
        for table, values in ((self.device, device), (self.collective, collective), (self.labels, label)):
            if values:
                table.append(values)
        return True

    @staticmethod
    def _device(event: _Event, row: int) -> tuple | None:
        device, stream, size = event.integer("device"), event.integer("stream"), event.integer("bytes", "Bytes")
        if device is None and stream is None and size is None:
            return None
        return (
            row,
            device,
            stream,
            *event.triple("grid"),
            *event.triple("block"),
            event.integer("registers per thread"),
            event.integer("shared memory"),
            size,
            event.integer("graph id", span=UINT64),
            event.integer("graph node id", span=UINT64),
        )

    @staticmethod
    def _collective(event: _Event, row: int) -> tuple | None:
        name = event.string("Collective name")
        if name is None:
            return None
        return (
            row,
            name,
            event.string("dtype"),
            event.string("Process Group Name"),
            event.string("Process Group Description"),
            event.string("Process Group Ranks"),
            event.integer("In msg nelems"),
            event.integer("Out msg nelems"),
            event.integer("Group size"),
            event.integer("Src Rank"),
            event.integer("Dst Rank"),
            event.integer("Seq", span=UINT64),
            event.integer("Comms Id", span=UINT64),
        )

    @staticmethod
    def _label(event: _Event, row: int) -> tuple | None:
        if event.text("ph") != "M":
            return None
        for key in ("name", "labels"):
            value = event.string(key)
            if value is not None:
                return row, value
        node = event.args.get("sort_index", (None, 0))[0]
        if isinstance(node, _Number):
            return row, node.text
        return (row, node) if isinstance(node, str) else None


def _code(table: dict, value: object) -> int:
    return table.setdefault(value, len(table))


class _Reader:
    def __init__(self, path: str, *, recover: bool, skipped: Sequence[str]) -> None:
        self.path, self.recover, self.skipped = path, recover, skipped
        self.tables = _Tables(skipped)
        self.metadata: dict[str, Node] = {}
        self.found: dict[str, tuple[int, int, str]] = {}
        self.partial = False
        self.seen_events = False

    def notice(self, slug: str, byte: int, example: str) -> None:
        count, first, shown = self.found.get(slug, (0, byte, example))
        if byte < first:
            first, shown = byte, example
        self.found[slug] = (count + 1, first, shown)

    def error(self, slug: str, message: str, byte: int | None = None) -> TraceFormatError:
        line = None if byte is None else self.data.count(b"\n", 0, byte) + 1
        return TraceFormatError(slug, message, self.path, line, byte)

    def read(self) -> KinetoFile:
        raw = open(self.path, "rb").read()
        self.data, self.stream_fault, zeros = inflate(raw)
        if zeros:
            self.notice("trailing-data", len(self.data), "zero bytes after the compressed data")
        self.text = _Text(self.data, self.notice)
        self._check_start()
        try:
            self._document()
            self._rest()
        except _Malformed as fault:
            raise self.error("trace-malformed", fault.message, fault.byte) from None
        except _Ended:
            self._ended()
        if not self.seen_events and not self.partial:
            raise self.error("not-a-trace", "a JSON object without traceEvents")
        return self._result()

    def _ended(self) -> None:
        size = len(self.data)
        if self.stream_fault == "corrupt" and not self.recover:
            raise self.error("trace-malformed", "the compressed data is corrupt", size)
        if not self.recover:
            cut = self.stream_fault == "cut"
            raise self.error(
                "trace-truncated", "the compressed data ends early" if cut else "the file ends inside the document", size
            )
        self.partial = True
        self.notice("truncated", size, "the file ends early")

    def _check_start(self) -> None:
        data = self.data
        if data.startswith(_UTF_MARKS):
            raise self.error("trace-malformed", "the text is UTF-16 or UTF-32, not UTF-8", 0)
        if data.startswith(b"\xef\xbb\xbf"):
            self.text.pos = 3
        if self.text.blank() < 0:
            if self.stream_fault:
                if self.stream_fault == "corrupt":
                    raise self.error("trace-malformed", "the compressed data is corrupt", len(data))
                raise self.error("trace-truncated", "the compressed data ends early", len(data))
            raise self.error("trace-empty", "the file is empty")
        if data[self.text.pos] in b"{[":
            return
        for magic, what in _FORMATS:
            if data.startswith(magic):
                raise self.error("not-a-trace", f"{what}, not a JSON trace")
        raise self.error("not-a-trace", "neither JSON nor gzip")

    def _document(self) -> None:
        text = self.text
        if text.data[text.pos] == 0x5B:
            self.seen_events = True
            self._events(1, bare=True)
            return
        text.open(1)
        byte = text.blank()
        if byte < 0:
            raise _Ended
        if byte == 0x7D:
            text.pos += 1
            return
        while True:
            key = text.key()
            start = text.pos
            if key == "traceEvents":
                self.tables = _Tables(self.skipped)
                self.seen_events = text.data[start] == 0x5B
                if self.seen_events:
                    self._events(2, bare=False)
                else:
                    text.value(1)
            else:
                self.metadata[key] = text.value(1)
            if text.separator(0x7D, start):
                return

    def _events(self, depth: int, *, bare: bool) -> None:
        text = self.text
        text.open(depth)
        whole = False  # an event has been read: the bare form may end here
        byte = text.blank()
        if byte < 0:
            raise _Ended
        if byte == 0x5D:
            text.pos += 1
            return
        while True:
            try:
                start = text.pos
                self._event(depth)
                whole = True
                byte = text.blank()
                if byte == 0x2C:
                    comma = text.pos
                    text.pos += 1
                    byte = text.blank()
                    if byte == 0x5D:
                        self.notice("trailing-comma", comma, ",")
                elif byte not in (0x5D, -1):
                    raise _Malformed("a comma is missing between events", text.pos)
                if byte < 0 and not (bare and whole and not self.stream_fault):
                    raise _Ended
                if byte < 0:
                    self.notice("missing-end-mark", len(self.data), "]")
                    return
                if byte == 0x5D:
                    text.pos += 1
                    return
            except _Malformed as fault:
                if not self.recover:
                    raise
                self.partial = True
                self.notice("dropped-event", fault.byte, fault.message)
                if not self._resume(max(fault.byte, start + 1)):
                    raise _Ended from None
                if text.data[text.pos] == 0x5D:
                    text.pos += 1
                    return

    def _resume(self, byte: int) -> bool:
        """Go to the next event, else to the end of the array."""
        for match in _EVENT_START.finditer(self.data, byte):
            if self.data[: match.start()].rstrip(b" \t\r\n")[-1:] == b",":
                self.text.pos = match.start()
                return True
        end = re.compile(rb"[},][ \t\r\n]*(\])[ \t\r\n]*[,}]").search(self.data, byte)
        if end:
            self.text.pos = end.start(1)
        return end is not None

    def _event(self, depth: int) -> None:
        text, start = self.text, self.text.pos
        held: list[tuple[str, int, str]] = []
        text.notice = lambda *found: held.append(found)
        try:
            node = text.value(depth)
        finally:
            text.notice = self.notice
        if node is None or node == {}:
            held.append(("empty-event", start, ""))
        elif not isinstance(node, dict):
            raise _Malformed("an event that is not an object", start)
        else:
            event = _Event(node, start)
            if self.tables.add(event):
                held += event.notices
        for found in held:
            self.notice(*found)

    def _rest(self) -> None:
        """See to it that nothing follows the document."""
        text = self.text
        zeros = -1
        while True:
            byte = text.blank()
            if byte != 0:
                break
            zeros = text.pos if zeros < 0 else zeros
            text.pos += 1
        if byte >= 0:
            if byte in b"{[":
                raise self.error("trace-many-documents", "another JSON document follows the first", text.pos)
            raise _Malformed("text after the end of the document", text.pos)
        if zeros >= 0:
            self.notice("trailing-data", zeros, "zero bytes")
        if self.stream_fault:
            raise _Ended

    def _result(self) -> KinetoFile:
        tables = self.tables
        notices = [
            (slug, count, byte, self.data.count(b"\n", 0, byte) + 1, example)
            for slug, (count, byte, example) in self.found.items()
        ]
        return KinetoFile(
            events=_frame(tables.events, _EVENTS),
            names=pl.DataFrame({"name": list(tables.names)}, schema={"name": pl.String}),
            tracks=_frame(list(tables.tracks), {"process": pl.String, "thread": pl.String}),
            device_args=_frame(tables.device, _DEVICE),
            collective_args=_frame(tables.collective, _COLLECTIVE),
            labels=_frame(tables.labels, {"row": pl.UInt32, "value": pl.String}),
            categories=list(tables.categories),
            phases=list(tables.phases),
            metadata_json=_dump({key: (node, 0) for key, node in self.metadata.items()}),
            notices=sorted(notices, key=lambda notice: (notice[2], notice[0])),
            event_counts=[(category, kept, skipped) for category, (kept, skipped) in tables.counts.items()],
            partial=self.partial,
            bytes_read=len(self.data),
        )


def _dump(node: Node) -> str:
    if isinstance(node, dict):
        return "{" + ", ".join(f"{_dump(key)}: {_dump(item)}" for key, (item, _) in node.items()) + "}"
    if isinstance(node, list):
        return "[" + ", ".join(_dump(item) for item in node) + "]"
    if isinstance(node, _Number):
        return node.text
    return "null" if node is NON_FINITE else json.dumps(node, ensure_ascii=False)


def inflate(raw: bytes) -> tuple[bytes, str, bool]:
    """Return the text, the fault of the compressed stream ("", "cut", "corrupt"), and whether zero bytes follow it."""
    if not raw.startswith(b"\x1f\x8b"):
        return raw, "", False
    text, rest = [], raw
    while rest:
        if not rest.strip(b"\x00"):
            return b"".join(text), "", True
        member = zlib.decompressobj(wbits=31)
        for start in range(0, len(rest), 512):  # small steps: what comes before a fault is kept
            try:
                text.append(member.decompress(rest[start : start + 512]))
            except zlib.error:
                return b"".join(text), "corrupt", False
            if member.eof:
                break
        if not member.eof:
            return b"".join(text), "cut", False
        rest = member.unused_data + rest[start + 512 :]
    return b"".join(text), "", False


def read_kineto(
    path: str | os.PathLike[str], *, recover: bool = False, skip_categories: Sequence[str] = ()
) -> KinetoFile:
    """Read one file as `moeprof._native.read_kineto` does."""
    return _Reader(os.fspath(path), recover=recover, skipped=skip_categories).read()


def build_info() -> dict[str, str]:
    """Tell that this is not the native reader."""
    return {"reader": "oracle"}
