"""The tokenizer of the plain reader: values with their positions, the notices about the text, and the two faults."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

MAX_DEPTH = 256

_BLANK = re.compile(rb"[ \t\r\n]*")
_PLAIN = re.compile(rb'"([\x20\x21\x23-\x5b\x5d-\x7f]*)"')
_RUN = re.compile(rb'[^"\\]*')
_WORD = re.compile(rb"[^ \t\r\n,:\[\]{}\"]*")
NUMBER = re.compile(rb"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?\Z")
NON_FINITE_WORD = re.compile(rb"[+-]?(nan|inf|infinity)\Z", re.IGNORECASE)
_LETTERS = re.compile(rb"[A-Za-z0-9+.-]+\Z")
_WORDS = {b"true": True, b"false": False, b"null": None}
_CONTROL = re.compile(rb"[\x00-\x1f]")
_ESCAPES = {ord(a): b for a, b in zip('"\\/bfnrt', '"\\/\b\f\n\r\t', strict=True)}


def _end(pattern: re.Pattern[bytes], data: bytes, start: int) -> int:
    """Return where a pattern that may be empty stops matching."""
    found = pattern.match(data, start)
    return found.end() if found else start


class MalformedError(Exception):
    def __init__(self, message: str, byte: int) -> None:
        self.message, self.byte = message, byte


class EndedError(Exception):
    """The text ended inside the document."""


class Number:
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class NonFinite:
    __slots__ = ()


NON_FINITE = NonFinite()
Notice = Callable[[str, int, str], None]
Node: TypeAlias = object  # str, Number, NonFinite, bool, None, list of nodes, dict of key to (node, byte)


class Text:
    """The tokenizer: nodes with positions, and the notices that concern the text alone."""

    def __init__(self, data: bytes, notice: Notice) -> None:
        self.data, self.size, self.pos, self.notice = data, len(data), 0, notice

    def blank(self) -> int:
        """Step over white space; return the next byte, or -1 at the end."""
        self.pos = _end(_BLANK, self.data, self.pos)
        return self.data[self.pos] if self.pos < self.size else -1

    def string(self) -> str:
        plain = _PLAIN.match(self.data, self.pos)
        if plain:
            self.pos = plain.end()
            return plain[1].decode("ascii")
        i, parts = self.pos + 1, []
        first: dict[str, int] = {}
        while True:
            raw = self.data[i : _end(_RUN, self.data, i)]
            control = _CONTROL.search(raw)
            if control:
                first.setdefault("control-character", i + control.start())
            try:
                parts.append(raw.decode("utf-8"))
            except UnicodeDecodeError as error:
                first.setdefault("invalid-utf8", i + error.start)
                parts.append(raw.decode("utf-8", errors="replace"))
            i += len(raw)
            if i >= self.size:
                raise EndedError
            if self.data[i] == 0x22:
                break
            i = self._escape(i, parts, first)
        for slug, byte in first.items():
            self.notice(slug, byte, "".join(parts))
        self.pos = i + 1
        return "".join(parts)

    def _escape(self, i: int, parts: list[str], first: dict[str, int]) -> int:
        if i + 1 >= self.size:
            raise EndedError
        letter = self.data[i + 1]
        if letter in _ESCAPES:
            parts.append(_ESCAPES[letter])
            return i + 2
        if letter != 0x75:
            shown = chr(letter) if 0x20 <= letter < 0x7F else f"0x{letter:02x}"
            raise MalformedError(f"invalid escape \\{shown}", i)
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
                raise MalformedError("invalid escape \\u", i)
        if len(digits) < 4:
            raise EndedError
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
        end = _end(_WORD, self.data, start)
        raw = self.data[start:end]
        if end >= self.size and _LETTERS.match(raw):  # it might have gone on
            raise EndedError
        self.pos = end
        if raw in _WORDS:
            return _WORDS[raw]
        if NUMBER.match(raw):
            return Number(raw.decode("ascii"))
        if NON_FINITE_WORD.match(raw):
            self.notice("non-finite-number", start, raw.decode("ascii"))
            return NON_FINITE
        self.pos = start
        if not raw:
            raise MalformedError("a value is missing", start)
        raise MalformedError("bad number" if raw[0] in b"+-.0123456789" else "unexpected text", start)

    def open(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise MalformedError(f"nesting above {MAX_DEPTH}", self.pos)
        self.pos += 1

    def key(self) -> str:
        """Read a key and its colon; `pos` stands on what should be a quote."""
        start = self.pos
        if self.data[start] != 0x22:
            raise MalformedError("a key is missing", start)
        key = self.string()
        byte = self.blank()
        if byte < 0:
            raise EndedError
        if byte != 0x3A:
            raise MalformedError("unescaped quote in a string", start)
        self.pos += 1
        if self.blank() < 0:
            raise EndedError
        return key

    def separator(self, close: int, value_start: int) -> bool:
        """Read a comma or the closing bracket; return True when the container is closed."""
        byte = self.blank()
        if byte < 0:
            raise EndedError
        if byte == close:
            self.pos += 1
            return True
        if byte != 0x2C:
            if self.data[value_start] == 0x22:
                raise MalformedError("unescaped quote in a string", value_start)
            raise MalformedError("a comma is missing", self.pos)
        comma = self.pos
        self.pos += 1
        byte = self.blank()
        if byte < 0:
            raise EndedError
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
            raise EndedError
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
            raise EndedError
        if byte == 0x5D:
            self.pos += 1
            return found
        while True:
            start = self.pos
            found.append(self.value(depth))
            if self.separator(0x5D, start):
                return found
