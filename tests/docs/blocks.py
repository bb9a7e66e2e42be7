"""Find, run and rewrite the `$ moeprof ...` examples of Markdown pages.

A fenced block marked ``console`` holds commands and what they print: stdout, then stderr. ``| head -N`` after a command is
honoured; a line ``$ echo $?`` shows the exit code, which is 0 where a block does not say otherwise. Blocks with other
commands are for people and are not run. Blocks marked ``pycon`` are doctests.
"""

from __future__ import annotations

import doctest
import io
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEAD = re.compile(r"^(.*?)\s*\|\s*head -(\d+)$")

Main = Callable[[list[str], io.StringIO, io.StringIO], int]


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text, and where the text lies in the page."""

    page: str
    line: int
    language: str
    text: str
    start: int
    end: int

    @property
    def commands(self) -> list[str]:
        """Return the command lines of the block without the prompt."""
        return [line[2:] for line in self.text.splitlines() if line.startswith("$ ")]

    @property
    def runs(self) -> bool:
        """Tell whether the block's commands are moeprof's own (and the question for the exit code)."""
        ours = [c for c in self.commands if c.split()[0] == "moeprof"]
        return (
            self.language == "console"
            and bool(ours)
            and len(ours) + self.commands.count("echo $?") == len(self.commands)
        )


def pages() -> list[Path]:
    """Return README and every page under docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(ROOT).as_posix()
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Block(name, line, match[1], match[2], match.start(2), match.end(2))


def run(block: Block, main: Main) -> str:
    """Return what the block should read: its commands, each followed by what it prints now."""
    lines: list[str] = []
    shown = True  # a code that the block does not show must be 0
    code = 0
    for command in block.commands:
        if command == "echo $?":
            lines += ["$ echo $?", str(code)]
            shown = True
            continue
        if not shown and code != 0:
            lines.append(f"(exit code {code})")
        match = HEAD.match(command)
        out, err = io.StringIO(), io.StringIO()
        code = main(shlex.split(match[1] if match else command)[1:], out, err)
        shown = match is not None
        printed = out.getvalue().splitlines()
        lines += [f"$ {command}", *(printed[: int(match[2])] if match else printed), *err.getvalue().splitlines()]
    if not shown and code != 0:
        lines.append(f"(exit code {code})")
    return "".join(f"{line.rstrip()}\n" for line in lines)


def rewrite(page: Path, main: Main) -> bool:
    """Put the present output into the blocks of a page; tell whether it changed."""
    text = page.read_text(encoding="utf-8")
    fresh = text
    for block in reversed([b for b in blocks(page) if b.runs]):
        fresh = fresh[: block.start] + run(block, main) + fresh[block.end :]
    if fresh != text:
        page.write_text(fresh, encoding="utf-8")
    return fresh != text


def check_session(block: Block) -> str:
    """Run a ``pycon`` block as a doctest; return the report of what differed, "" when nothing did."""
    test = doctest.DocTestParser().get_doctest(block.text, {}, f"{block.page}:{block.line}", block.page, block.line)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(test, out=report.append)
    return "".join(report)
