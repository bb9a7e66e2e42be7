"""Render a page as text for a terminal or a pipe."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO

from rich.box import Box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from moeprof.reports.document import Column, Kind, Lines, Page, Section, Table
from moeprof.reports.look import Look
from moeprof.wording import safe, shorten_all

_INDENT = 2
_GAP = 2
_LEAST_NAME = 20
_TONES = {"plain": "bold", "good": "bold green", "bad": "bold red", "look": "bold yellow"}
_WORDS = {"added": "green", "removed": "red", "more": "yellow", "fewer": "yellow", "same": "dim", "no data": "dim"}
_SEVERITIES = {"error[": "bold red", "warning[": "yellow", "note[": "dim"}
_BLANK = "    \n"


def render(page: Page, look: Look) -> str:
    """Return a page as text whose lines fit `look.width`; under `look.wide` full names may stick out."""
    blocks = [_print(Text(page.title, "bold"), look), _facts(page, look)]
    blocks.extend(_section(section, look) for section in page.sections)
    if page.closing is not None:
        whole = max(look.width, len(page.closing))  # one line, so that the last line of the output holds all of it
        blocks.append(_print(Text(page.closing, _TONES[page.tone]), look, whole))
    return "\n".join(blocks)


def _print(renderable: RenderableType, look: Look, width: int | None = None) -> str:
    target = StringIO()
    console = Console(
        file=target,
        width=width or look.width,
        force_terminal=look.color,
        force_jupyter=False,
        force_interactive=False,
        color_system="standard" if look.color else None,
        no_color=not look.color,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
    )
    console.print(renderable, overflow="fold")
    lines = target.getvalue().splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _facts(page: Page, look: Look) -> str:
    grid = Grid.grid(padding=(0, _GAP, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for label, value in page.facts:
        grid.add_row(Text(label), Text(value))
    return _print(Padding(grid, (0, 0, 0, _INDENT)), look)


def _section(section: Section, look: Look) -> str:
    blocks = [_block(block, look) for block in section.blocks]
    return _print(Text(section.title, "bold"), look) + "\n".join(blocks)


def _block(block: Lines | Table, look: Look) -> str:
    return _lines(block, look) if isinstance(block, Lines) else _table(block, look)


def _lines(lines: Lines, look: Look) -> str:
    grid = Grid.grid(padding=(0, 1, 0, 0))
    if lines.bullets:
        grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for item in lines.items:
        text = Text(item)
        for start, style in _SEVERITIES.items():
            if lines.bullets and item.startswith(start):
                text.stylize(style, 0, item.index("]") + 1)
        grid.add_row(*([Text("•" if look.unicode else "-")] if lines.bullets else []), text)
    return _print(Padding(grid, (0, 0, 0, _INDENT)), look)


def _table(table: Table, look: Look) -> str:
    rows = list(_fitted(table, look))
    rule = "─" if look.unicode else "-"
    box = Box(_BLANK * 2 + f" {rule * 2} \n" + _BLANK * 5, ascii=not look.unicode)
    grid = Grid(box=box, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for column in table.columns:
        right = column.kind == "number"
        grid.add_column(
            Text(column.title), justify="right" if right else "left", no_wrap=column.kind != "text", overflow="fold"
        )
    for row in rows:
        grid.add_row(*(_cell(cell, column.kind) for cell, column in zip(row, table.columns, strict=True)))
    full = _INDENT + sum(_widths(table.columns, rows)) + _GAP * (len(table.columns) - 1)
    text = _print(Padding(grid, (0, 0, 0, _INDENT)), look, max(full, look.width) if look.wide else None)
    if look.wide:
        text = "".join(_cut_rule(line, rule, look.width) for line in text.splitlines(keepends=True))
    return text + (_lines(Lines(table.notes), look) if table.notes else "")


def _cell(cell: str, kind: Kind) -> Text:
    return Text(cell, _WORDS.get(cell, "") if kind == "change" else "")


def _fitted(table: Table, look: Look) -> Iterator[tuple[str, ...]]:
    names = [index for index, column in enumerate(table.columns) if column.kind == "name"]
    rest = [column for column in table.columns if column.kind != "name"]
    others = [tuple(cell for index, cell in enumerate(row) if index not in names) for row in table.rows]
    used = _INDENT + sum(_widths(rest, others)) + _GAP * (len(table.columns) - 1)
    room = max((look.width - used) // max(len(names), 1), _LEAST_NAME)
    ellipsis = "…" if look.unicode else "..."
    shown = [row[index] for row in table.rows for index in names]
    short = {name: safe(name) for name in shown} if look.wide else shorten_all(shown, room, ellipsis=ellipsis)
    for row in table.rows:
        yield tuple(short[cell] if index in names else cell for index, cell in enumerate(row))


def _widths(columns: tuple[Column, ...] | list[Column], rows: list[tuple[str, ...]]) -> list[int]:
    return [
        max(Text(cell).cell_len for cell in (column.title, *(row[index] for row in rows)))
        for index, column in enumerate(columns)
    ]


def _cut_rule(line: str, rule: str, width: int) -> str:
    return line if line.strip(f" {rule}\n") else f"{line.rstrip()[:width]}\n"
