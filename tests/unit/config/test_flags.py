"""Flags: written in two ways, grouped, merged, looked up."""

from __future__ import annotations

from pathlib import Path

import pytest

from moeprof.config.flags import Flag, find, grouped, merged

from .files import LEAST, load, refusal


def flags_of(folder: Path, value: str) -> tuple[str, ...]:
    return load(folder, LEAST.replace("[arms.base]", f"[arms.base]\nflags = {value}")).arms["base"].flags


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("[]", ()),
        ("{}", ()),
        ('["--a", "1", "--b=2", "-c"]', ("--a", "1", "--b=2", "-c")),
        ("{ a = 1, --b = true, c_d = 'x y', e = 0.5 }", ("--a", "1", "--b", "--c_d", "x y", "--e", "0.5")),
        ("{ sizes = [4, 32], -dp = 2 }", ("--sizes", "4", "32", "-dp", "2")),
        (
            "{ spec = { method = 'mtp', rates = [0.8, 0.5], deep = { on = true } } }",
            ("--spec", '{"method":"mtp","rates":[0.8,0.5],"deep":{"on":true}}'),
        ),
    ],
)
def test_a_list_and_a_table_become_words(tmp_path: Path, value: str, words: tuple[str, ...]) -> None:
    # GIVEN flags in either form WHEN the file is loaded THEN they are the words of a command line
    assert flags_of(tmp_path, value) == words


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("'--a 1'", 'a list of words, as in ["--name", "value"], or a table, not text'),
        ("['--a 1']", 'a list with each word by itself: "--a", "1" instead of "--a 1"'),
        ("['--a', 1]", "a list of words, each in quotes; a whole number (1) is in it"),
        ("{ 'a b' = 1 }", "a table of flags, and 'a b' is none"),
        ("{ a = [true] }", "a table of flags, and a holds true where a word belongs"),
        ("{ a = 2026-01-01 }", "a table of flags, and a holds a date or time where a word belongs"),
        ("{ a = { b = nan } }", "a table of flags, and a holds what JSON cannot: "),
    ],
)
def test_what_is_no_flag_is_refused(tmp_path: Path, value: str, message: str) -> None:
    # GIVEN a wrong value WHEN the file is loaded THEN the error says what flags must be, at their line
    said, line, _ = refusal(tmp_path, LEAST.replace("[arms.base]", f"[arms.base]\nflags = {value}"))
    assert said.startswith(f"flags in [arms.base] must be {message}")
    assert line == 5


@pytest.mark.parametrize("flag", ["--host", "--port=1", "--served_model_name", "--model"])
def test_what_moeprof_sets_itself_is_refused_for_a_server_only(tmp_path: Path, flag: str) -> None:
    # GIVEN a flag that [server] decides
    text = LEAST.replace("[arms.base]", f'[arms.base]\nflags = ["{flag}", "x"]')
    # WHEN the backend is a server THEN it is refused
    message, line, hint = refusal(tmp_path, text)
    assert message.endswith("which moeprof sets itself")
    assert line == 5
    assert hint is not None and hint.endswith("in [server] or [arms.base.server] instead")
    # WHEN it is a program of one's own THEN it is the program's flag
    own = text.replace("[server]", '[server]\nbackend = "command"\ncommand = ["x"]')
    assert load(tmp_path, own).arms["base"].flags == (flag, "x")


def test_words_are_grouped_by_flag() -> None:
    # GIVEN words before the first flag, negative numbers, short names and an equals sign
    words = ["run", "--n", "-1", "-dp", "2", "--a_b=c=d", "--no-x"]
    # WHEN they are grouped THEN names are alike however written, and numbers are values
    assert list(grouped(words)) == [
        Flag("", ("run",)),
        Flag("n", ("--n", "-1")),
        Flag("data-parallel-size", ("-dp", "2")),
        Flag("a-b", ("--a_b=c=d",)),
        Flag("no-x", ("--no-x",)),
    ]
    assert [flag.values for flag in grouped(words)][1:] == [("-1",), ("2",), ("c=d",), ()]
    assert list(grouped([])) == []


def test_a_flag_given_again_replaces_the_parents_however_it_is_written() -> None:
    # GIVEN a parent's flags
    parent = ["sub", "--sizes", "4", "32", "--no-cache", "-dp", "2", "--keep"]
    # WHEN a child gives three of them again
    own = ["--cache", "--data_parallel_size=8", "--sizes", "8"]
    # THEN the parent's are gone with their values, the rest comes first
    assert merged(parent, own) == ("sub", "--keep", "--cache", "--data_parallel_size=8", "--sizes", "8")


def test_the_last_of_two_equal_flags_counts() -> None:
    # GIVEN a flag twice, once as its opposite WHEN it is looked up THEN the last one is found
    assert find(["--x", "--no-x"], "x") == Flag("no-x", ("--no-x",))
    assert find(["--n", "1", "--n=2"], "n") == Flag("n", ("--n=2",))
    assert find(["--n", "1"], "m") is None
