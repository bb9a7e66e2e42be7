"""Every `$ moeprof ...` example of README and docs prints what the page says; MOEPROF_GOLDEN=write puts it there."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, Block, blocks, check_session, pages, rewrite, run

ALL = [block for page in pages() for block in blocks(page)]
COMMANDS = [block for block in ALL if block.runs]
SESSIONS = [block for block in ALL if block.language == "pycon"]


def where(block: Block) -> str:
    return f"{block.page}:{block.line}"


@pytest.fixture
def at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("moeprof._native", reason="the native module is not built; run: make build")
    monkeypatch.chdir(ROOT)
    for name in ("NO_COLOR", "FORCE_COLOR", "MOEPROF_STORE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("at_root")
@pytest.mark.parametrize("block", COMMANDS, ids=where)
def test_the_command_prints_what_the_page_says(block: Block) -> None:
    from moeprof.cli import main

    # GIVEN a page, which is brought up to date first where that is asked for
    if os.environ.get("MOEPROF_GOLDEN") == "write":
        rewrite(ROOT / block.page, main)
        pytest.skip("rewritten")
    # WHEN its commands run
    printed = run(block, main)
    # THEN they print what it says
    assert printed == block.text


@pytest.mark.usefixtures("at_root")
@pytest.mark.parametrize("block", SESSIONS, ids=where)
def test_the_python_session_gives_what_the_page_says(block: Block) -> None:
    # GIVEN a session of the Python API
    # WHEN it runs as a doctest
    # THEN nothing differs
    assert check_session(block) == ""


def test_there_are_examples() -> None:
    # GIVEN the pages
    # WHEN their examples are listed
    # THEN README has commands and a session: an empty list would test nothing
    assert any(block.page == "README.md" for block in COMMANDS)
    assert any(block.page == "README.md" for block in SESSIONS)


def fake(argv: list[str], stdout: io.StringIO, stderr: io.StringIO) -> int:
    stdout.write("".join(f"{word}\n" for word in argv))
    if "bad" in argv:
        stderr.write("no\n")
        return 2
    return 0


def block_of(text: str) -> Block:
    return Block("page.md", 1, "console", text, 0, len(text))


def test_a_block_runs_only_when_all_commands_are_ours() -> None:
    # GIVEN blocks of our commands, of others, and of both
    # WHEN they are asked
    # THEN only the first runs
    assert block_of("$ moeprof a\n$ echo $?\n0\n").runs
    assert not block_of("$ make demo\n").runs
    assert not block_of("$ moeprof a\n$ make demo\n").runs
    assert not block_of("no prompt\n").runs


def test_a_run_shows_output_errors_and_the_code() -> None:
    # GIVEN a block with a cut output, an error whose code is shown and one whose code is not
    block = block_of("$ moeprof a b c | head -2\n$ moeprof bad\n$ echo $?\n$ moeprof bad\n")
    # WHEN it runs
    # THEN the last code, which the page hides, stands out
    assert run(block, fake) == (
        "$ moeprof a b c | head -2\na\nb\n$ moeprof bad\nbad\nno\n$ echo $?\n2\n$ moeprof bad\nbad\nno\n(exit code 2)\n"
    )


def test_rewriting_changes_only_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a page with two examples whose outputs are old, and a block that is not run
    monkeypatch.setattr("tests.docs.blocks.ROOT", tmp_path)
    page = tmp_path / "page.md"
    old = "# A\n\n```console\n$ moeprof x\nold\n```\n\n```sh\nmake demo\n```\n\n```console\n$ moeprof y\n```\n"
    page.write_text(old, encoding="utf-8")
    # WHEN it is rewritten twice
    first, second = rewrite(page, fake), rewrite(page, fake)
    # THEN the outputs are new, the rest is as it was, and the second time changes nothing
    assert page.read_text(encoding="utf-8") == old.replace("old\n", "x\n").replace("$ moeprof y\n", "$ moeprof y\ny\n")
    assert (first, second) == (True, False)
