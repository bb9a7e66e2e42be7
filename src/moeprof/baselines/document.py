"""The baseline file: versioned, deterministic JSON that a person can review line by line."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from moeprof.errors import BaselineError, InputNotFoundError
from moeprof.findings import JsonValue

FILE_NAME = "moeprof-baseline.json"
SCHEMA = "moeprof.baseline/1"
_ACCEPT = "moeprof baseline accept ARM_OR_PATH --reason TEXT writes one"

Object = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Document:
    """A baseline file as read: its arms as JSON objects, checked in shape by `moeprof.baselines.arms`."""

    path: str
    arms: Mapping[str, Object]


def read(path: str | os.PathLike[str]) -> Document:
    """Read a baseline file.

    Raises:
        InputNotFoundError: There is none, or it cannot be read.
        BaselineError: It is no baseline, or of another version.
    """
    name = os.fspath(path)
    try:
        content = Path(name).read_bytes()
    except OSError as error:
        reason = (
            "there is no baseline"
            if isinstance(error, FileNotFoundError)
            else f"cannot read the baseline: {error.strerror}"
        )
        raise InputNotFoundError(reason, path=name, hint=_ACCEPT) from error
    try:
        data = json.loads(content.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_refuse)
    except UnicodeDecodeError as error:
        raise BaselineError("the baseline is not UTF-8", path=name, byte=error.start) from error
    except json.JSONDecodeError as error:
        what = "the baseline is empty" if not content.strip() else f"the baseline is not JSON: {error.msg}"
        raise BaselineError(what, path=name, line=error.lineno, hint=_ACCEPT) from error
    except (ValueError, RecursionError) as error:
        raise BaselineError(f"the baseline cannot be used: {error}", path=name) from error
    return Document(name, _arms(data, name))


def _arms(data: object, path: str) -> dict[str, Object]:
    schema = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(schema, str) or not schema.startswith("moeprof.baseline/"):
        raise BaselineError("the file is no baseline of moeprof", path=path, hint=_ACCEPT)
    if schema != SCHEMA:
        raise BaselineError(f"the baseline has schema {schema}, and this moeprof reads {SCHEMA}", path=path)
    unknown = sorted(set(data) - {"schema", "arms"})
    if unknown:
        raise BaselineError(f"the baseline has an unknown key {unknown[0]!r}", path=path)
    arms = data.get("arms")
    if not isinstance(arms, dict) or not arms or not all(isinstance(arm, dict) for arm in arms.values()):
        raise BaselineError("the baseline holds no arm", path=path, hint=_ACCEPT)
    return cast("dict[str, Object]", arms)


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return found


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no number")


def text_of(arms: Mapping[str, Object]) -> str:
    """Return the text of a baseline file: keys sorted, lists of plain values on one line, one newline at the end."""
    return _text({"schema": SCHEMA, "arms": dict(arms)}, "") + "\n"


def _text(value: JsonValue, indent: str) -> str:
    if isinstance(value, dict) and value:
        inner = indent + "  "
        body = ",\n".join(
            f"{inner}{json.dumps(key, ensure_ascii=False)}: {_text(value[key], inner)}" for key in sorted(value)
        )
        return f"{{\n{body}\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        inner = indent + "  "
        body = ",\n".join(f"{inner}{_text(item, inner)}" for item in value)
        return f"[\n{body}\n{indent}]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True)


def line_of(text: str, *keys: str) -> int:
    r"""Return the line of the last key that is found, each sought below the one before; 1 where none is.

    >>> line_of('{\n  "a": {\n    "b": 1\n  }\n}', "a", "b", "absent")
    3
    """
    found = 0
    lines = text.splitlines()
    for key in keys:
        wanted = f"{json.dumps(key, ensure_ascii=False)}:"
        at = next((n for n in range(found, len(lines)) if lines[n].lstrip().startswith(wanted)), None)
        if at is None:
            break
        found = at + 1
    return max(found, 1)


class Reader:
    """Read an object of a baseline key by key; an error names the key with all above it.

    Args:
        value: The object.
        at: Where it stands, such as ``arms.base.structure``.
        path: The file.
    """

    def __init__(self, value: object, at: str, path: str) -> None:
        self.at = at
        self.path = path
        if not isinstance(value, dict):
            raise self.error("is no object")
        self.value = cast("Object", value)

    def error(self, what: str, key: str | None = None) -> BaselineError:
        """Return an error about a key, or the object itself."""
        at = self.at if key is None else f"{self.at}.{key}"
        return BaselineError(f"{at} of the baseline {what}", path=self.path)

    def only(self, *known: str) -> None:
        """Refuse a key that is not known."""
        unknown = sorted(set(self.value) - set(known))
        if unknown:
            raise self.error(f"has an unknown key {unknown[0]!r}")

    def part(self, key: str) -> Reader:
        """Return the object below a key."""
        return Reader(self.value.get(key), f"{self.at}.{key}", self.path)

    def parts(self, key: str) -> list[Reader]:
        """Return the objects of a list below a key."""
        items = self.value.get(key, [])
        if not isinstance(items, list):
            raise self.error("is no list", key)
        return [Reader(item, f"{self.at}.{key}[{n}]", self.path) for n, item in enumerate(items)]

    def text(self, key: str) -> str:
        """Return a text."""
        value = self.value.get(key)
        if not isinstance(value, str):
            raise self.error("is no text", key)
        return value

    def maybe_text(self, key: str) -> str | None:
        """Return a text, or None where the key is absent or null."""
        return None if self.value.get(key) is None else self.text(key)

    def whole(self, key: str) -> int:
        """Return a whole number from 0."""
        value = self.value.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.error("is no whole number from 0", key)
        return value

    def maybe_whole(self, key: str) -> int | None:
        """Return a whole number from 0, or None where the key is absent or null."""
        return None if self.value.get(key) is None else self.whole(key)

    def maybe_number(self, key: str) -> float | None:
        """Return a number, or None where the key is absent or null."""
        value = self.value.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self.error("is no number", key)
        return value

    def wholes(self, key: str) -> tuple[int, ...]:
        """Return a list of whole numbers."""
        values = self.value.get(key)
        if not isinstance(values, list) or any(isinstance(v, bool) or not isinstance(v, int) or v < 0 for v in values):
            raise self.error("is no list of whole numbers from 0", key)
        return tuple(cast("list[int]", values))

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        values = self.value.get(key)
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise self.error("is no list of texts", key)
        return tuple(cast("list[str]", values))
