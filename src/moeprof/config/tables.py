"""Read tables of a configuration: only known keys, each with a value that it takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, TypeVar

from moeprof.config.keys import Keys
from moeprof.config.schema import Compare, Expect, Gates, Passes, Profiler, Sampler, Server, Window, Workload
from moeprof.config.source import Source
from moeprof.config.values import Check, WrongValueError, kind

T = TypeVar("T")
D = TypeVar("D", Compare, Expect, Gates, Passes, Profiler, Sampler, Server, Window, Workload)
Path = tuple[str, ...]


def subtable(source: Source, table: Mapping[str, object], at: Path) -> dict[str, object]:
    """Return the table under the last key of a path; an empty one where there is none."""
    value = table.get(at[-1], {})
    if not isinstance(value, dict):
        raise source.error(f"{at[-1]} in {source.table(at[:-1])} must be a table, not {kind(value)}", at)
    return value


def read(source: Source, table: Mapping[str, object], at: Path, keys: Keys) -> dict[str, object]:
    """Return the checked values of a table that takes only these keys."""
    only(source, table, at, keys)
    return {key: checked(source, value, (*at, key), keys[key]) for key, value in table.items()}


def checked(source: Source, value: object, at: Path, check: Check[T]) -> T:
    """Return a value as its check gives it; an error points to its key."""
    try:
        return check(value)
    except WrongValueError as error:
        raise source.error(f"{at[-1]} in {source.table(at[:-1])} must be {error}", at) from error


def only(source: Source, table: Mapping[str, object], at: Path, known: Iterable[str]) -> None:
    """Refuse a key that is not known, and name the nearest one that is."""
    names = list(known)
    for key in table:
        if key not in names:
            raise source.error(f"unknown key {key!r} in {source.table(at)}", (*at, key), nearest(key, names))


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint: the nearest known name, or all of them."""
    names = list(known)
    close = get_close_matches(name.lower().replace("-", "_"), names, n=1) or get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(names) or 'none'}"


def changed(default: D, values: Mapping[str, object]) -> D:
    """Return a dataclass with values in place of its defaults; each value went through the check of its key."""
    changes: dict[str, Any] = dict(values)
    return replace(default, **changes)
