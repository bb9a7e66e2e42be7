"""docs/configuration.md explains every key with type, default and an example, and its examples load."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, asdict, fields
from pathlib import Path

import pytest

from moeprof.config import keys
from moeprof.config.schema import Compare, Config, Gates, Passes, Profiler, Sampler, Server, Window, Workload

from .files import load

PAGE = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text(encoding="utf-8")
TABLES = {
    "server": keys.SERVER,
    "workloads.NAME": keys.WORKLOAD,
    "passes": keys.PASSES,
    "window": keys.WINDOW,
    "profiler": keys.PROFILER,
    "gates": keys.GATES,
    "sampler": keys.SAMPLER,
    "compare": keys.COMPARE,
    "store": keys.STORE,
    "gate": keys.GATE,
    "arms.NAME.expect": keys.EXPECT,
}
DEFAULTS: dict[str, Mapping[str, object]] = {
    "server": asdict(Server()),
    "passes": asdict(Passes()),
    "window": asdict(Window()),
    "profiler": asdict(Profiler()),
    "gates": asdict(Gates()),
    "sampler": asdict(Sampler()),
    "compare": asdict(Compare()),
    "workloads.NAME": {"kind": "decode"} | {f.name: f.default for f in fields(Workload) if f.default is not MISSING},
    "store": {"path": next(f.default for f in fields(Config) if f.name == "store")},
}


def rows(table: str) -> Iterator[tuple[str, str, str]]:
    """Yield key, default and example of a table's rows."""
    part = PAGE.split(f"## `[{table}]`")[1].split("\n## ")[0].split("\n\n**Flags**")[0]
    for line in part.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| `") and len(cells) == 5:
            yield cells[0].strip("`"), cells[2], cells[3]


@pytest.mark.parametrize("table", TABLES)
def test_every_key_is_explained_once_in_order(table: str) -> None:
    # GIVEN a table's keys WHEN the page is read THEN it has these, and no others
    known = [*TABLES[table], *([keys.KERNELS] if table == "arms.NAME.expect" else [])]
    assert [key for key, _, _ in rows(table)] == known


def test_the_keys_of_an_arm_are_explained() -> None:
    # GIVEN the keys of an arm WHEN the page is read THEN it has these
    assert [key for key, _, _ in rows("arms.NAME")] == list(keys.ARM)


@pytest.mark.parametrize("table", DEFAULTS)
def test_defaults_on_the_page_are_those_of_the_program(table: str) -> None:
    # GIVEN the page's defaults that are values
    stated = {key: tomllib.loads(f"x = {text.strip('`')}")["x"] for key, text, _ in rows(table) if text.startswith("`")}
    assert stated
    # WHEN they are held against the program's THEN they are the same
    program = {key: list(value) if isinstance(value, tuple) else value for key, value in DEFAULTS[table].items()}
    assert stated == {key: program[key] for key in stated}
    # AND what has no value there has none in the program
    silent = [key for key, text, _ in rows(table) if not text.startswith("`")]
    assert [key for key in silent if program.get(key) not in (None, [])] == []


@pytest.mark.parametrize("table", TABLES)
def test_examples_on_the_page_are_taken(table: str) -> None:
    # GIVEN the page's example of each key WHEN its check sees it THEN it is taken, and differs from the default
    for key, default, example in rows(table):
        value = tomllib.loads(f"x = {example.strip('`')}")["x"]
        assert example != default
        if key in TABLES[table]:
            TABLES[table][key](value)


def test_the_example_at_the_head_of_the_page_loads(tmp_path: Path) -> None:
    # GIVEN the first block of the page WHEN it is loaded THEN it has its two arms
    block = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    assert list(load(tmp_path, block[1]).arms) == ["base", "triton"]
