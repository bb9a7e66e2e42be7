"""Standard streams: colour, width, character set, and writing that survives a closed pipe."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TextIO

from moeprof.reports.look import Look

_PIPE_WIDTH = 100
_LEAST_WIDTH = 60
_FANCY = "─•…"


@dataclass(frozen=True, slots=True)
class Streams:
    """The streams of one run; None where the process was started without."""

    stdout: TextIO | None
    stderr: TextIO | None


def look_of(stream: TextIO | None, *, color: str, wide: bool, environ: Mapping[str, str]) -> Look:
    """Return the look that suits a stream.

    Args:
        stream: Where the text will go.
        color: ``auto``, ``always`` or ``never``.
        wide: Whether nothing is to be shortened.
        environ: The environment.
    """
    return Look(
        width=_width(stream),
        color=use_color(color, stream, environ),
        unicode=can_encode(_FANCY, stream),
        wide=wide,
    )


def use_color(choice: str, stream: TextIO | None, environ: Mapping[str, str]) -> bool:
    """Tell whether colour is wanted: option, then NO_COLOR, FORCE_COLOR, TERM=dumb, then whether it is a terminal."""
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return environ.get("TERM") != "dumb" and is_terminal(stream)


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether a stream is a terminal."""
    if stream is None:
        return False
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def can_encode(text: str, stream: TextIO | None) -> bool:
    """Tell whether a stream's encoding has all characters of a text; a stream without encoding has all."""
    encoding = getattr(stream, "encoding", None)
    if encoding is None:
        return True
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def fitted(text: str, encoding: str, *, as_json: bool) -> str:
    """Return text whose every character an encoding has; others are escaped, in JSON by JSON's own escape."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        if as_json:
            return "".join(char if char.isascii() else json.dumps(char)[1:-1] for char in text)
        return text.encode(encoding, "backslashreplace").decode(encoding)
    return text


def write(stream: TextIO | None, text: str, *, as_json: bool = False) -> None:
    """Write and flush; a reader who has gone away is no error, a full disk is.

    Raises:
        OSError: When the stream cannot take the text for another reason than a closed pipe.
    """
    if stream is None:
        return
    try:
        stream.write(fitted(text, getattr(stream, "encoding", None) or "utf-8", as_json=as_json))
        stream.flush()
    except BrokenPipeError:
        _silence(stream)
    except OSError:
        _silence(stream)
        raise


def _silence(stream: TextIO) -> None:
    """Point a stream at nothing, so that the flush at the end of the process does not fail again."""
    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)


def _width(stream: TextIO | None) -> int:
    if stream is None or not is_terminal(stream):
        return _PIPE_WIDTH
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return _PIPE_WIDTH
    return max(columns, _LEAST_WIDTH) if columns else _PIPE_WIDTH
