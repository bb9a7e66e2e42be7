"""In which line of a TOML text each key stands: the parser of the standard library does not say."""

from __future__ import annotations

import re

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)+")
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BASIC = re.compile(r'"(?:[^"\\]|\\.)*"')
_LITERAL = re.compile(r"'[^']*'")
_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|' r"'''.*?'{3,5}|" + f"{_BASIC.pattern}|{_LITERAL.pattern}", re.DOTALL)
_PLAIN = re.compile(r"[^\[\]{}\"'#\n]+")

Path = tuple[str, ...]


def lines_of(text: str) -> dict[Path, int]:
    r"""Return the line, counted from 1, of every table header and every key that begins a line.

    Args:
        text: A TOML document that the standard library's parser has accepted.

    >>> lines_of('[arms.base]\nflags = [\n  "--x",\n]\nenv.A = "1"\n')
    {('arms', 'base'): 1, ('arms', 'base', 'flags'): 2, ('arms', 'base', 'env', 'A'): 5}
    """
    found: dict[Path, int] = {}
    header: Path = ()
    at = 0
    while (at := _skip(_BLANK, text, at)) < len(text):
        line = text.count("\n", 0, at) + 1
        if text[at] == "[":
            at += 2 if text.startswith("[[", at) else 1
            header, at = _key(text, at)
            found.setdefault(header, line)
            at = _line_end(text, at)
        else:
            key, at = _key(text, at)
            found.setdefault(header + key, line)
            at = _after_value(text, at)
    return found


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _key(text: str, at: int) -> tuple[Path, int]:
    """Return a dotted key and where it ends."""
    parts: list[str] = []
    while True:
        at = _skip(_SPACE, text, at)
        match = _BARE.match(text, at) or _BASIC.match(text, at) or _LITERAL.match(text, at)
        if match is None:  # nothing that the parser would have accepted
            return tuple(parts), at + 1
        word = match[0]
        parts.append(word[1:-1] if word[0] in "\"'" else word)
        at = _skip(_SPACE, text, match.end())
        if not text.startswith(".", at):
            return tuple(parts), at
        at += 1


def _after_value(text: str, at: int) -> int:
    """Return where the line ends on which the value does."""
    depth = 0
    while at < len(text):
        match = _STRING.match(text, at) or _PLAIN.match(text, at)
        if match is not None:
            at = match.end()
        elif text[at] == "#":
            at = _line_end(text, at)
        elif text[at] == "\n" and depth == 0:
            return at
        else:
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(text[at], 0)
            at += 1
    return at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
