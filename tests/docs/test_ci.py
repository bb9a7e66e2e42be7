"""The action and the chapters on CI: they parse, name what exists, and hold the figures of the simulation."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from moeprof.cli import _COMMANDS
from moeprof.commands.group import LazyGroup
from moeprof.config.gate import load_gate
from tests.docs.blocks import ROOT, Block, blocks

CI = ROOT / "docs" / "ci.md"
ACTION = ROOT / "action.yml"
CHAPTERS = [block for block in blocks(CI) if block.language == "yaml"]


def commands(node: Any) -> Iterator[str]:
    """Yield every line of a CI file that calls moeprof."""
    if isinstance(node, dict):
        for value in node.values():
            yield from commands(value)
    elif isinstance(node, list):
        for value in node:
            yield from commands(value)
    elif isinstance(node, str):
        for line in node.splitlines():
            match = re.match(r"\s*(moeprof .*?)(?:\s*(?:&&|\|\|).*)?$", line)
            if match:
                yield match[1]


def accepted(line: str) -> None:
    """Parse a command line as the program does, and run nothing."""
    words = shlex.split(line)[1:]
    group = LazyGroup("moeprof", summary="", epilog="", modules=_COMMANDS)
    command = group.get_command(click.Context(group), words[0])
    assert command is not None, line
    command.make_context(words[0], words[1:])


@pytest.mark.parametrize("block", CHAPTERS, ids=lambda block: f"line {block.line}")
def test_chapters_parse_and_their_commands_exist(block: Block) -> None:
    # GIVEN a chapter to copy WHEN it is parsed as YAML THEN it is, and every moeprof command in it has the options that it names
    found = yaml.safe_load(block.text)
    assert isinstance(found, dict)
    lines = list(commands(found))
    assert lines or "uses" in block.text
    for line in lines:
        accepted(line)


def test_the_chapters_are_there() -> None:
    # GIVEN the page WHEN its chapters are counted THEN GitHub has two, GitLab and Buildkite one each
    assert len(CHAPTERS) == 4


def test_the_action_is_composite_and_documented() -> None:
    # GIVEN the action WHEN it is parsed THEN it is composite, every input is explained and used, and none is a secret
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    assert action["runs"]["using"] == "composite"
    text = ACTION.read_text(encoding="utf-8")
    for name, told in action["inputs"].items():
        assert told["description"].strip()
        assert f"inputs.{name}" in text
    assert "secrets" not in text
    # AND nothing that a caller writes becomes text of a script
    for step in action["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]
    assert action["outputs"]["exit-code"]["value"] == "${{ steps.gate.outputs.exit-code }}"


def test_inputs_of_the_example_exist() -> None:
    # GIVEN the chapter that uses the action WHEN its inputs are read THEN the action has them
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    job = yaml.safe_load(CHAPTERS[0].text)["jobs"]["gate"]
    (use,) = [step for step in job["steps"] if "moeprof@" in step.get("uses", "")]
    assert set(use["with"]) <= set(action["inputs"])


@pytest.mark.parametrize("page", ["docs/commands/gate.md"])
def test_rules_on_the_page_load(page: str, tmp_path: Path) -> None:
    # GIVEN the rules that a page shows WHEN they are read THEN they are taken
    (block,) = [block for block in blocks(ROOT / page) if block.language == "toml"]
    tomllib.loads(block.text)
    (tmp_path / "moeprof.toml").write_text(block.text, encoding="utf-8")
    assert load_gate(None, start=tmp_path).structure["pairs/ag_rs/per_iteration"] == (3,)
