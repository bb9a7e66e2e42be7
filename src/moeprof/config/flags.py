"""Flags of an arm: written as words or as a table, merged with the parent's, and asked for by name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from moeprof.config.values import WrongValueError, kind

_FLAG = re.compile(r"--?[A-Za-z]")
_WITH_VALUE = re.compile(r"(--[A-Za-z][A-Za-z0-9._-]*)\s+(\S.*)", re.DOTALL)
#: vLLM's short spellings of flags that decide what an arm is.
_SHORT = {
    "-dp": "data-parallel-size",
    "-ep": "enable-expert-parallel",
    "-pp": "pipeline-parallel-size",
    "-sc": "speculative-config",
    "-tp": "tensor-parallel-size",
}


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag with its values.

    Attributes:
        name: Without leading dashes, with ``-`` for ``_``; "" for the words before the first flag.
        words: As they stand in the command line, the flag's own first.
    """

    name: str
    words: tuple[str, ...]

    @property
    def key(self) -> str:
        """Return what the flag shares with its opposite: ``--no-x`` and ``--x`` replace each other."""
        return self.name.removeprefix("no-")

    @property
    def values(self) -> tuple[str, ...]:
        """Return the values, whether after ``=`` or as words of their own."""
        _, sign, value = self.words[0].partition("=")
        return ((value,) if sign else ()) + self.words[1:]


def grouped(words: Sequence[str]) -> Iterator[Flag]:
    """Yield the flags of a command line, each with the words up to the next one.

    >>> [(flag.name, flag.values) for flag in grouped(["--sizes", "4", "32", "-dp=2", "--enforce_eager"])]
    [('sizes', ('4', '32')), ('data-parallel-size', ('2',)), ('enforce-eager', ())]
    """
    starts = [index for index, word in enumerate(words) if _FLAG.match(word)]
    if words and (not starts or starts[0] > 0):
        yield Flag("", tuple(words[: starts[0] if starts else None]))
    for start, end in zip(starts, [*starts[1:], len(words)], strict=False):
        yield Flag(_name(words[start]), tuple(words[start:end]))


def merged(parent: Sequence[str], own: Sequence[str]) -> tuple[str, ...]:
    """Return the parent's flags, then the own ones; a flag given again replaces the parent's.

    >>> merged(["--moe-backend", "humming", "--sizes", "4", "32"], ["--moe-backend=triton"])
    ('--sizes', '4', '32', '--moe-backend=triton')
    """
    given = {flag.key for flag in grouped(own) if flag.name}
    kept = [word for flag in grouped(parent) if flag.key not in given for word in flag.words]
    return (*kept, *own)


def without(words: Sequence[str], removed: Sequence[str]) -> tuple[str, ...]:
    """Return the words without some flags and their values."""
    return tuple(word for flag in grouped(words) if flag.key not in removed for word in flag.words)


def find(words: Sequence[str], name: str) -> Flag | None:
    """Return the flag of a name or its opposite ``no-name``; the last one counts, as on any command line."""
    return next((flag for flag in reversed(list(grouped(words))) if flag.key == name), None)


def from_list(value: list[object]) -> tuple[str, ...]:
    """Take flags written as words, one each."""
    for word in value:
        if not isinstance(word, str) or "\0" in word:
            raise WrongValueError(f"a list of words, each in quotes; {kind(word)} is in it")
        pair = _WITH_VALUE.fullmatch(word)
        if pair:
            raise WrongValueError(f'a list with each word by itself: "{pair[1]}", "{pair[2]}" instead of "{word}"')
    return tuple(str(word) for word in value)


def from_table(value: dict[str, object]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Take flags written as a table.

    Args:
        value: Flag, with or without dashes, to its value: true for none, false to remove an inherited one, a number or
            text, a list of these for several words, a table for JSON.

    Returns:
        The words, and the keys of the flags to remove.
    """
    found: list[str] = []
    removed: list[str] = []
    for written, item in value.items():
        word = written if written.startswith("-") else f"--{written}"
        if not _FLAG.match(word) or re.search(r"[\s=\0]", word):
            raise WrongValueError(f"a table of flags, and {written!r} is none")
        if item is False:
            removed.append(_name(word).removeprefix("no-"))
        else:
            found += [word, *_values(written, item)]
    return tuple(found), tuple(removed)


def _values(name: str, value: object) -> list[str]:
    if value is True:
        return []
    if isinstance(value, dict):
        try:
            return [json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)]
        except (TypeError, ValueError) as error:
            raise WrongValueError(f"a table of flags, and {name} holds what JSON cannot: {error}") from error
    if isinstance(value, list):
        return [_word(name, item) for item in value]
    return [_word(name, value)]


def _word(name: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise WrongValueError(f"a table of flags, and {name} holds {kind(value)} where a word belongs")
    word = str(value)
    if "\0" in word:
        raise WrongValueError(f"a table of flags, and {name} holds a zero character")
    return word


def _name(word: str) -> str:
    bare = word.partition("=")[0]
    return _SHORT.get(bare) or bare.lstrip("-").replace("_", "-")
