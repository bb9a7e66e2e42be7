"""Read a result file: which format it is follows from what it holds."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import zlib
from dataclasses import replace
from pathlib import Path

from moeprof.errors import InputNotFoundError, ResultError
from moeprof.traces.benchmarks import document, evaluation, text
from moeprof.traces.benchmarks.results import ResultFile

_GZIP = b"\x1f\x8b"
_MOST_BYTES = 512 * 1024 * 1024
_SHOWN = 40
_HINT = "give what vllm bench serve, vllm-rs bench serve, moeprof or gsm8k_eval.py wrote, as text or JSON"


def read_results(path: str | os.PathLike[str]) -> ResultFile:
    """Return what a result file holds.

    Args:
        path: Text or JSON of a load client or an evaluator; may be compressed with gzip.

    Raises:
        InputNotFoundError: It does not exist or cannot be read.
        ResultError: It is empty, damaged, or of no format that is known.

    >>> found = read_results("samples/decode/base0_pass0.txt")
    >>> found.passes[0].values["output_throughput"], found.passes[0].printed["output_throughput"]
    (7142.76, '7142.76')
    """
    where = os.fspath(path)
    try:
        content = Path(where).read_bytes()
    except OSError as error:
        raise InputNotFoundError(f"cannot read the file: {error.strerror}", path=where) from error
    return parse_results(content, where)


def parse_results(content: bytes, path: str) -> ResultFile:
    """Return what the bytes of a result file hold; `path` stands in errors.

    Raises:
        ResultError: As `read_results`.
    """
    found = recognise(content, path)
    if found is None:
        raise ResultError("neither a client's result nor an evaluation", path=path, hint=_HINT)
    return found


def recognise(content: bytes, path: str) -> ResultFile | None:
    """Return what the bytes hold; None where they are of another kind, which may be a trace.

    Raises:
        ResultError: They are empty, or a damaged result.
    """
    plain = plain_of(content, path)
    if not plain.strip():
        raise ResultError("the file is empty", path=path, hint=_HINT)
    words = utf8(plain).decode("utf-8-sig", "replace")
    reported, evaluated = text.is_text(words), evaluation.is_text(words)
    if reported or evaluated:  # before JSON: a log may begin with a bracket
        return ResultFile(
            passes=text.from_text(words, path) if reported else (),
            evaluations=evaluation.from_text(words, path) if evaluated else (),
        )
    return _json(words, path) if words.lstrip()[:1] in ("{", "[") else None


def utf8(content: bytes) -> bytes:
    """Return bytes as UTF-8 where a mark at their beginning says UTF-16, which some shells make of all output.

    >>> utf8("x".encode("utf-16")), utf8(b"x")
    (b'x', b'x')
    """
    if not content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content
    return content[: len(content) // 2 * 2].decode("utf-16", "replace").encode("utf-8", "replace")


def _json(words: str, path: str) -> ResultFile | None:
    try:
        value: object = json.loads(words, object_pairs_hook=_object)
    except _TwiceError as error:
        raise ResultError(str(error), path=path, hint="the file is damaged: run the pass again") from error
    except RecursionError as error:
        raise ResultError("the JSON is nested too deeply", path=path) from error
    except ValueError as error:
        lines = _json_lines(words)
        if lines is None:
            position = error.pos if isinstance(error, json.JSONDecodeError) else None
            line = error.lineno if isinstance(error, json.JSONDecodeError) else None
            raise ResultError("the JSON is damaged or cut", path=path, line=line, byte=position) from error
        value = lines
    if isinstance(value, dict):
        if document.is_json(value):
            return ResultFile(passes=(document.from_json(value, path),))
        return ResultFile(evaluations=evaluation.from_json(value, path)) if evaluation.is_json(value) else None
    if isinstance(value, list) and value and all(isinstance(item, dict) and document.is_json(item) for item in value):
        passes = tuple(document.from_json(item, path) for item in value)
        return ResultFile(passes=tuple(replace(item, repeat=number) for number, item in enumerate(passes)))
    return None


class _TwiceError(ValueError):
    """A key of a JSON object stands twice, with two values."""


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        for name, value in pairs:
            if repr(found[name]) != repr(value) and len(repr(value)) < _SHOWN:
                raise _TwiceError(f"{name} stands twice, as {value} and {found[name]}")
    return found


def _json_lines(words: str) -> list[object] | None:
    """Return one object per line, as ``--append-result`` writes them; None where the text is not that."""
    lines = [line for line in words.splitlines() if line.strip()]
    if len(lines) < 2:
        return None
    try:
        return [json.loads(line, object_pairs_hook=_object) for line in lines]
    except (ValueError, RecursionError):
        return None


def plain_of(content: bytes, path: str) -> bytes:
    """Return the bytes of a file, inflated where they are compressed.

    Raises:
        ResultError: The compressed file is damaged, cut or far too large.
    """
    if not content.startswith(_GZIP):
        return content
    try:
        with gzip.open(io.BytesIO(content)) as stream:
            plain = stream.read(_MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ResultError(f"the compressed file is damaged or cut: {error}", path=path) from error
    if len(plain) > _MOST_BYTES:
        raise ResultError("the file is far too large for a result", path=path)
    return plain
