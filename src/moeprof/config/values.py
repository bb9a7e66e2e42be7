"""Checks of single values. Each returns the value in its final type or raises WrongValueError, which completes "KEY must be"."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from ipaddress import ip_address
from typing import TypeVar

T = TypeVar("T")
Check = Callable[[object], T]

_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text", list: "a list", dict: "a table"}


class WrongValueError(ValueError):
    """A value that a key does not take; the message says what it must be."""


def kind(value: object) -> str:
    """Return what a value of TOML is called."""
    if isinstance(value, bool):
        return str(value).lower()
    shown = f" ({value!r})" if isinstance(value, int | float) else ""
    return _KINDS.get(type(value), "a date or time") + shown


def truth(value: object) -> bool:
    """Take true or false."""
    if not isinstance(value, bool):
        raise WrongValueError(f"true or false, not {kind(value)}")
    return value


def text(value: object) -> str:
    """Take text with something in it."""
    if not isinstance(value, str):
        raise WrongValueError(f"text, not {kind(value)}")
    if not value.strip() or "\0" in value:
        raise WrongValueError("text with something in it")
    return value


def whole(least: int, greatest: int | None = None) -> Check[int]:
    """Take a whole number in a range."""

    def check(value: object) -> int:
        wanted = f"a whole number of at least {least}" if greatest is None else f"a whole number {least} to {greatest}"
        if isinstance(value, bool) or not isinstance(value, int):
            raise WrongValueError(f"{wanted}, not {kind(value)}")
        if value < least or (greatest is not None and value > greatest):
            raise WrongValueError(f"{wanted}, not {value}")
        return value

    return check


def positive(value: object) -> float:
    """Take a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongValueError(f"a number above 0, not {kind(value)}")
    try:
        number = float(value)
    except OverflowError as error:
        raise WrongValueError("a number above 0, and not one so large") from error
    if not math.isfinite(number) or number <= 0:
        raise WrongValueError(f"a number above 0, not {value}")
    return number


def between(least: float, greatest: float) -> Check[float]:
    """Take a number in a range, its ends included."""

    def check(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WrongValueError(f"a number from {least:g} to {greatest:g}, not {kind(value)}")
        if not least <= value <= greatest:
            raise WrongValueError(f"a number from {least:g} to {greatest:g}, not {value}")
        return float(value)

    return check


def fraction(value: object) -> float:
    """Take a number above 0 and below 1."""
    number = between(0, 1)(value)
    if not 0 < number < 1:
        raise WrongValueError(f"a number above 0 and below 1, not {number:g}")
    return number


def choice(*words: str) -> Check[str]:
    """Take one of a few words."""

    def check(value: object) -> str:
        wanted = " or ".join(f'"{word}"' for word in words)
        if not isinstance(value, str):
            raise WrongValueError(f"{wanted}, not {kind(value)}")
        if value not in words:
            raise WrongValueError(f'{wanted}, not "{value}"')
        return value

    return check


def several(one: Check[T], *, least: int = 0, distinct: bool = False) -> Check[tuple[T, ...]]:
    """Take a list, or a single value in its place.

    Args:
        one: Check of each value.
        least: How many there must be.
        distinct: Whether each may be there only once.
    """

    def check(value: object) -> tuple[T, ...]:
        values = value if isinstance(value, list) else [value]
        if len(values) < least:
            raise WrongValueError("a list with something in it")
        found = []
        for item in values:
            try:
                found.append(one(item))
            except WrongValueError as error:
                raise WrongValueError(f"a list in which each is {error}") from error
        if distinct and len(set(found)) < len(found):
            raise WrongValueError("a list without repetition")
        return tuple(found)

    return check


def words(value: object) -> tuple[str, ...]:
    """Take a list of the words of a command; one text is not split, since nobody would see how."""
    if isinstance(value, str):
        raise WrongValueError(f"a list of words, as in {value.split()!r}, not one text".replace("'", '"'))
    return several(text, least=1)(value)


def expression(value: object) -> str:
    """Take a regular expression."""
    pattern = text(value)
    try:
        re.compile(pattern)
    except re.error as error:
        raise WrongValueError(f"a regular expression, and {pattern!r} is none: {error}") from error
    return pattern


def slug(value: object) -> str:
    """Take a name in kebab case."""
    name = text(value)
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise WrongValueError(f"a name such as token-counts, not {name!r}")
    return name


def url_path(value: object) -> str:
    """Take the path of a URL."""
    path = text(value)
    if not path.startswith("/") or re.search(r"\s", path):
        raise WrongValueError(f"a path that begins with /, not {path!r}")
    return path


def is_loopback(host: str) -> bool:
    """Tell whether an address stays on this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
