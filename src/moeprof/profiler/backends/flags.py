"""Flags of an arm as vLLM's parser sees them: ``--a-b``, ``--a_b``, ``--a-b=value`` and ``--a-b.key value`` are one name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_FLAG = re.compile(r"--?[A-Za-z]")  # a negative number is a value


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag and the words that follow it.

    Attributes:
        word: As written, without ``=value``.
        name: With hyphens, without what follows a dot.
        key: What follows the dot; "" without one.
        values: Its values.
    """

    word: str
    name: str
    key: str
    values: tuple[str, ...]


def parse(words: Sequence[str]) -> list[Flag]:
    """Return the flags of a command line's words, in order; words before the first flag are passed over.

    >>> [flag.name for flag in parse(("--max_num_seqs", "8", "-tp", "2", "--profiler-config.profiler=torch"))]
    ['--max-num-seqs', '-tp', '--profiler-config']
    """
    found: list[Flag] = []
    for word in words:
        if _FLAG.match(word):
            head, equals, value = word.partition("=")
            name, _, key = head.partition(".")
            found.append(Flag(head, name.replace("_", "-"), key, (value,) if equals else ()))
        elif found:
            last = found[-1]
            found[-1] = Flag(last.word, last.name, last.key, (*last.values, word))
    return found


def without(words: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the words without a flag and its values."""
    kept: list[str] = []
    dropping = False
    for word in words:
        if _FLAG.match(word):
            dropping = parse((word,))[0].name == name
        if not dropping:
            kept.append(word)
    return tuple(kept)
