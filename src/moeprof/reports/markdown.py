"""Render a page as GitHub Markdown, fit for a comment on a pull request."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import cycle

from moeprof.reports.document import Block, Column, Lines, Page, Section, Table
from moeprof.wording import safe, shorten_all

_NAME_WIDTH = 80
#: A comment on GitHub has 65536 characters at most.
COMMENT = 65_000
_CUT_OFF = "\n\n(cut here: a comment cannot be longer)\n"
_SPECIAL = re.compile(r"([\\`*\[|~])|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_CODE = re.compile(r"`([^`]+)`")
_LINE_START = re.compile(r"^([-+#>])|^(\d+)([.)])(?=\s)")


def escape(text: str) -> str:
    r"""Return text that Markdown and HTML show as it is.

    >>> escape("gemm<a|b>(__half*)")
    'gemm&lt;a\\|b&gt;(\\_\\_half\\*)'
    """
    entities = safe(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(lambda match: f"\\{match[0]}", entities)


def _paragraph(text: str) -> str:
    # Names that a sentence quotes stay code: nothing inside a span can mean anything.
    parts = _CODE.split(text)
    escaped = "".join(
        f"`{safe(part)}`" if odd else escape(part) for part, odd in zip(parts, cycle((False, True)), strict=False)
    )
    return _LINE_START.sub(lambda match: f"\\{match[1]}" if match[1] else f"{match[2]}\\{match[3]}", escaped)


def render(page: Page, *, wide: bool = False, limit: int | None = None) -> str:
    """Return a page as Markdown: heading, verdict, facts, then the sections; long ones folded.

    Args:
        page: What to show; what matters most comes first in it.
        wide: Shorten no name.
        limit: Most characters, for a comment: long blocks lose their last rows, and say how many.
    """
    text = _render(page, wide=wide)
    rows = _longest(page)
    while limit is not None and len(text) > limit and rows > 1:
        rows //= 2
        text = _render(_cut(page, rows), wide=wide)
    if limit is None or len(text) <= limit:
        return text
    return f"{text[: limit - len(_CUT_OFF)]}{_CUT_OFF}"  # names alone are too long


def _longest(page: Page) -> int:
    return max((len(_items(block)) for section in page.sections for block in section.blocks), default=0)


def _items(block: Block) -> tuple[object, ...]:
    return block.rows if isinstance(block, Table) else block.items


def _cut(page: Page, most: int) -> Page:
    """Return a page without the rows and sentences of each block beyond some first ones."""
    sections = tuple(
        replace(section, blocks=tuple(_cut_block(block, most) for block in section.blocks)) for section in page.sections
    )
    return replace(page, sections=sections)


def _cut_block(block: Block, most: int) -> Block:
    left = len(_items(block)) - most
    if left <= 0:
        return block
    said = f"{left} more are not shown: a comment cannot be longer"
    if isinstance(block, Table):
        return replace(block, rows=block.rows[:most], notes=(*block.notes[:most], said))
    return replace(block, items=(*block.items[:most], said))


def _render(page: Page, *, wide: bool) -> str:
    parts = [f"## {escape(page.title)}"]
    if page.closing is not None:
        parts.append(f"**{escape(page.closing)}**")
    parts.append("\n".join(f"- {escape(label)}: {escape(value)}" for label, value in page.facts))
    parts.extend(_section(section, wide=wide) for section in page.sections)
    return "\n\n".join(parts) + "\n"


def _section(section: Section, *, wide: bool) -> str:
    body = "\n\n".join(
        _lines(block) if isinstance(block, Lines) else _table(block, wide=wide) for block in section.blocks
    )
    if section.long and any(isinstance(block, Table) for block in section.blocks):
        title = escape(section.title)
        return f"<details>\n<summary>{title}</summary>\n\n{body}\n\n</details>"
    return f"### {escape(section.title)}\n\n{body}"


def _lines(lines: Lines) -> str:
    if lines.bullets or len(lines.items) > 1:
        return "\n".join(f"- {_paragraph(item)}" for item in lines.items)
    return "\n".join(_paragraph(item) for item in lines.items)


def _table(table: Table, *, wide: bool) -> str:
    names = [row[i] for row in table.rows for i, column in enumerate(table.columns) if column.kind == "name"]
    short = {name: name for name in names} if wide else shorten_all(names, _NAME_WIDTH)
    lines = [_row([escape(column.title) for column in table.columns])]
    lines.append(_row(["---:" if column.kind == "number" else "---" for column in table.columns]))
    for row in table.rows:
        lines.append(_row([_cell(cell, column, short) for cell, column in zip(row, table.columns, strict=True)]))
    text = "\n".join(lines)
    return text + "".join(f"\n\n{_paragraph(note)}" for note in table.notes)


def _cell(cell: str, column: Column, short: dict[str, str]) -> str:
    return escape(short[cell] if column.kind == "name" else cell)


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
