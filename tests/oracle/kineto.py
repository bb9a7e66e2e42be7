"""A slow and plain reader of Kineto files, written from docs/native.md alone, that the native reader is held against.

The whole text is in memory, one token is read at a time, and an event is judged only after it has been read whole.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tests.oracle.events import COLLECTIVE, DEVICE, EVENTS, Event, Tables, frame
from tests.oracle.text import NON_FINITE, EndedError, MalformedError, Node, Number, Text

_EVENT_START = re.compile(rb',[ \t\r\n]*(\{)[ \t\r\n]*"(?:ph|cat|name|args|ts|dur|pid|tid|id)"[ \t\r\n]*:')
_NSIGHT = "Nsight Systems exports are not read yet"
_FORMATS = (
    (b"SQLite format 3\x00", f"an SQLite database; {_NSIGHT}"),
    (b"PAR1", f"a Parquet file; {_NSIGHT}"),
    (b"ARROW1", f"an Arrow file; {_NSIGHT}"),
    (b"\xff\xff\xff\xff", f"an Arrow stream; {_NSIGHT}"),
    (b"NVIDIA Tegra Profiler Report", f"an Nsight Systems report; {_NSIGHT}"),
    (b"NVIDIA Nsight Systems Stream", f"an Nsight Systems stream; {_NSIGHT}"),
    *((magic, "of compressed files only gzip is read") for magic in (b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"BZh")),
    *((magic, "of compressed files only gzip is read") for magic in (b"\x04\x22\x4d\x18", b"\xfd7zXZ\x00")),
    (b"7z\xbc\xaf\x27\x1c", "of compressed files only gzip is read"),
    (b"\x1f\x8b", "gzip inside gzip; unpack it once"),
    *((magic, "not a Kineto trace in JSON") for magic in (b"\x7fELF", b"\x89HDF", b"\x89PNG", b"%PDF")),
)
_UTF_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")


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


class _Reader:
    def __init__(self, path: str, *, recover: bool, skipped: Sequence[str]) -> None:
        self.path, self.recover, self.skipped = path, recover, skipped
        self.tables = Tables(skipped)
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
        raw = Path(self.path).read_bytes()
        self.data, self.stream_fault, zeros = inflate(raw)
        if zeros:
            self.notice("trailing-data", len(self.data), "zero bytes after the compressed data")
        self.text = Text(self.data, self.notice)
        self._check_start()
        try:
            self._document()
            if not self.seen_events:
                raise self.error("not-a-trace", "a JSON object without traceEvents")
            self._rest()
        except MalformedError as fault:
            raise self.error("trace-malformed", fault.message, fault.byte) from None
        except EndedError:
            self._ended()
        return self._result()

    def _ended(self) -> None:
        size = len(self.data)
        if self.stream_fault == "corrupt" and not self.recover:
            raise self.error("trace-malformed", "the compressed data is corrupt", size)
        if not self.recover or not self.seen_events:
            cut = self.stream_fault == "cut"
            raise self.error(
                "trace-truncated",
                "the compressed data ends early" if cut else "the file ends inside the document",
                size,
            )
        self.partial = True
        self.notice("truncated", size, "the file ends early")

    def _check_start(self) -> None:
        data = self.data
        if data.startswith(_UTF_MARKS) or data[:2] in (b"\x00{", b"\x00[", b"{\x00", b"[\x00"):
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
                raise self.error("format-unsupported", what)
        raise self.error("not-a-trace", "neither JSON nor gzip")

    def _document(self) -> None:
        text = self.text
        if text.data[text.pos] == 0x5B:
            self.seen_events = True
            self._events(2, bare=True)
            return
        text.open(1)
        byte = text.blank()
        if byte < 0:
            raise EndedError
        if byte == 0x7D:
            text.pos += 1
            return
        while True:
            with self._held():
                key = text.key()
                start = text.pos
                if key != "traceEvents" or text.data[start] != 0x5B:
                    node = text.value(1)
            if key != "traceEvents":
                self.metadata[key] = node
            else:
                self.tables = Tables(self.skipped)
                self.seen_events = text.data[start] == 0x5B
                if self.seen_events:
                    self._events(2, bare=False)
            if text.separator(0x7D, start):
                return

    def _events(self, depth: int, *, bare: bool) -> None:
        text = self.text
        text.open(depth)
        whole = False  # an event has been read: the bare form may end here
        byte = text.blank()
        if byte < 0:
            raise EndedError
        if byte == 0x5D:
            text.pos += 1
            return
        while True:
            start = text.pos
            try:
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
                    raise MalformedError("a comma is missing between events", text.pos)
                if byte < 0 and not (bare and whole and not self.stream_fault):
                    raise EndedError
                if byte < 0:
                    self.notice("missing-end-mark", len(self.data), "]")
                    return
                if byte == 0x5D:
                    text.pos += 1
                    return
            except MalformedError as fault:
                if not self.recover:
                    raise
                self.partial = True
                self.notice("dropped-event", fault.byte, fault.message)
                if not self._resume(start, fault.byte, bare=bare):
                    if not bare or not whole or self.stream_fault:
                        raise EndedError from None
                    self.notice("missing-end-mark", len(self.data), "]")
                    text.pos = text.size
                    return
                if text.data[text.pos] == 0x5D:
                    text.pos += 1
                    return

    def _resume(self, start: int, byte: int, *, bare: bool) -> bool:
        """Go to the next event or to the end of the array, whichever comes first; `start` is the malformed event."""
        starts = _EVENT_START.finditer(self.data, max(self.data.rfind(b",", 0, byte), 0))
        fit = (match.start(1) for match in starts if match.start(1) >= max(byte, start + 1) and match.start() != byte)
        places = [place for place in (next(fit, -1),) if place >= 0]
        end = re.compile(rb"\}[ \t\r\n]*,?[ \t\r\n]*(\])[ \t\r\n]*" + (rb"\Z" if bare else rb"(?:[,}]|\Z)"))
        places += [match.start(1) for match in (end.search(self.data, byte),) if match]
        if places:
            self.text.pos = min(places)
        return bool(places)

    @contextmanager
    def _held(self) -> Iterator[list[tuple[str, int, str]]]:
        """Hold notices back until what they are about is whole; a fault forgets them."""
        held: list[tuple[str, int, str]] = []
        self.text.notice = lambda *found: held.append(found)
        try:
            yield held
        finally:
            self.text.notice = self.notice
        for found in held:
            self.notice(*found)

    def _event(self, depth: int) -> None:
        start = self.text.pos
        with self._held() as held:
            node = self.text.value(depth)
            if node is None or node == {}:
                held.append(("empty-event", start, ""))
            elif not isinstance(node, dict):
                raise MalformedError("an event that is not an object", start)
            else:
                event = Event(node, start)
                if self.tables.add(event):
                    held += event.notices

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
            if byte in b"{[" and "dropped-event" not in self.found:
                raise self.error("trace-many-documents", "another JSON document follows the first", text.pos)
            if not self.recover:
                raise MalformedError("text after the end of the document", text.pos)
            self.partial = True
            zeros = text.pos if zeros < 0 else zeros
        if zeros >= 0:
            self.notice("trailing-data", zeros, "after the document")
        if self.stream_fault:
            raise EndedError

    def _result(self) -> KinetoFile:
        tables = self.tables
        notices = [
            (slug, count, byte, self.data.count(b"\n", 0, byte) + 1, example)
            for slug, (count, byte, example) in self.found.items()
        ]
        return KinetoFile(
            events=frame(tables.events, EVENTS),
            names=pl.DataFrame({"name": list(tables.names)}, schema={"name": pl.String}),
            tracks=frame(list(tables.tracks), {"process": pl.String, "thread": pl.String}),
            device_args=frame(tables.device, DEVICE),
            collective_args=frame(tables.collective, COLLECTIVE),
            labels=frame(tables.labels, {"row": pl.UInt32, "value": pl.String}),
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
    if isinstance(node, Number):
        return node.text
    return "null" if node is NON_FINITE else json.dumps(node, ensure_ascii=False)


def inflate(raw: bytes) -> tuple[bytes, str, bool]:
    """Return the text, the fault of the compressed stream ("", "cut", "corrupt"), and whether zero bytes follow it."""
    if not raw.startswith(b"\x1f\x8b"):
        return raw, "", False
    texts: list[bytes] = []
    zeros = False
    while raw:
        text, rest, fault = _member(raw)
        texts.append(text)
        if fault:
            return b"".join(texts), fault, zeros
        raw = rest.lstrip(b"\x00")
        zeros = zeros or len(raw) < len(rest)
    return b"".join(texts), "", zeros


def _member(raw: bytes) -> tuple[bytes, bytes, str]:
    """Return the text of the first gzip member (RFC 1952), what follows it, and its fault."""
    if not b"\x1f\x8b\x08".startswith(raw[:3]):
        return b"", b"", "corrupt"
    if len(raw) < 10:
        return b"", b"", "cut"
    flags, start = raw[3], 10
    if flags & 0xE0:
        return b"", b"", "corrupt"
    if flags & 4:
        start += 2 + int.from_bytes(raw[10:12], "little")
    for _ in range((flags >> 3 & 1) + (flags >> 4 & 1)):
        start = raw.find(b"\x00", start) + 1 or len(raw) + 1
    start += flags & 2
    if start > len(raw):
        return b"", b"", "cut"
    inner = zlib.decompressobj(wbits=-15)
    text: list[bytes] = []
    while not inner.eof and start < len(raw):
        try:
            text.append(inner.decompress(raw[start : start + 512]))
        except zlib.error:
            return b"".join(text), b"", "corrupt"
        start += 512
    if not inner.eof:
        return b"".join(text), b"", "cut"
    rest = inner.unused_data + raw[start:]
    whole = b"".join(text)
    if len(rest) < 8:
        return whole, b"", "cut"
    checks = zlib.crc32(whole).to_bytes(4, "little") + (len(whole) % 2**32).to_bytes(4, "little")
    return whole, rest[8:], "" if rest[:8] == checks else "corrupt"


def read_kineto(
    path: str | os.PathLike[str], *, recover: bool = False, skip_categories: Sequence[str] = ()
) -> KinetoFile:
    """Read one file as `moeprof._native.read_kineto` does."""
    return _Reader(os.fspath(path), recover=recover, skipped=skip_categories).read()


def build_info() -> dict[str, str]:
    """Tell that this is not the native reader."""
    return {"reader": "oracle"}
