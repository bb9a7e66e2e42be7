"""A page between result and format: what is said, in which order. Text and Markdown render the same page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

#: ``name``: a kernel name, cut to fit; ``change``: a word or sign that may be coloured.
Kind: TypeAlias = Literal["text", "number", "name", "change"]
Tone: TypeAlias = Literal["plain", "good", "bad", "look"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: str
    kind: Kind = "text"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; notes stand below it."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lines:
    """Sentences, one below the other."""

    items: tuple[str, ...]
    bullets: bool = False


Block: TypeAlias = Table | Lines


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of a page; `long` parts are folded where the format can fold."""

    title: str
    blocks: tuple[Block, ...]
    long: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A whole page.

    Attributes:
        title: The heading.
        facts: What it is about, as label and value.
        sections: The parts in order.
        closing: The last line, or None.
        tone: How the closing line is meant.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    closing: str | None = None
    tone: Tone = "plain"
