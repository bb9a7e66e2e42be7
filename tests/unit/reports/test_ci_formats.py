"""Formats for CI: valid, escaped, short enough, worst first, and equal for equal results."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema

from moeprof.reports import buildkite, github, gitlab, junit, markdown
from moeprof.reports.checks import Anchor, Check, Checks, Level, State
from moeprof.reports.document import Column, Lines, Page, Section, Table

DATA = Path(__file__).parents[2] / "data"
CASES = Path(__file__).parents[2] / "golden" / "cases"
XSD = xmlschema.XMLSchema(str(DATA / "xsd" / "junit.xsd"))
NASTY = 'a\x00b\x1b[31m 5 % <x> & "q"\r\n::error::no, never: \ud800 \ufffe | `c`'


def check(name: str, state: State = "failure", level: Level | None = "error", message: str = "x 1 -> 2") -> Check:
    return Check("structure", name, state, "structure" if level == "error" else "", message, level)


def found(*checks: Check, anchor: Anchor | None = None) -> Checks:
    return Checks("moeprof gate base", "verdict: fail", checks, {"m.base_median": "1.5"}, (), anchor)


@pytest.mark.parametrize("path", sorted(CASES.glob("*junit.stdout")), ids=lambda path: path.stem)
def test_every_stored_junit_is_valid(path: Path) -> None:
    # GIVEN what the program wrote WHEN it is held against the common schema THEN it is valid, and its counts are those of its elements
    text = path.read_text(encoding="utf-8")
    XSD.validate(text)
    suite = ElementTree.fromstring(text).find("testsuite")
    assert suite is not None
    for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.attrib[name]) == len(list(suite.iter(tag)))


def test_junit_holds_whatever_text_there_is() -> None:
    # GIVEN text that XML cannot hold WHEN it is rendered THEN the file is valid and the message stands in attribute and body
    states: tuple[State, ...] = ("ok", "failure", "error", "skipped")
    text = junit.render(found(*(check(f"{NASTY}{state}", state, "error", NASTY) for state in states)))
    XSD.validate(text)
    failure = ElementTree.fromstring(text).find(".//failure")
    assert failure is not None
    assert '5 % <x> & "q"' in failure.attrib["message"]
    assert '5 % <x> & "q"' in (failure.text or "")


def test_annotations_escape_as_github_wants() -> None:
    # GIVEN a message and a name with everything that steers a command
    text = github.render(found(check("a:b,c%\r\nd", message="5 %\r\n::error::x"), anchor=Anchor("a,b:c.json", {})))
    # WHEN it is rendered THEN it is one command, and percent signs, line ends, colons and commas are escaped
    command, verdict = text.splitlines()
    head, _, message = command.removeprefix("::error ").partition("::")
    assert head == "file=a%2Cb%3Ac.json,line=1,title=moeprof%3A a%3Ab%2Cc%25%0D%0Ad"
    assert message == "5 %25%0D%0A::error::x"
    assert verdict == "verdict: fail"


@pytest.mark.parametrize(("count", "shown"), [(0, 0), (1, 1), (10, 10), (11, 10), (300, 10)])
def test_ten_annotations_at_most_worst_first(count: int, shown: int) -> None:
    # GIVEN many checks, the errors last WHEN rendered THEN ten commands at most, errors first, and the rest is counted
    checks = [check(f"n{i}", "ok", "notice") for i in range(count // 2)] + [
        check(f"e{i}") for i in range(count - count // 2)
    ]
    lines = [line for line in github.render(found(*checks)).splitlines() if line.startswith("::")]
    assert len(lines) == shown
    assert [line for line in lines[: min(5, count)] if not line.startswith("::error ")] == [] or count < 10
    if count > 10:
        assert f"and {count - 9} more" in lines[-1]


def test_a_verdict_is_never_a_command() -> None:
    # GIVEN a verdict that looks like a command WHEN rendered THEN it is a plain line
    text = github.render(Checks("t", "::error::boo", ()))
    assert not text.startswith("::")


def test_gitlab_keeps_the_fingerprint_whatever_the_values() -> None:
    # GIVEN one issue with two values, and another issue
    one, two, other = (
        json.loads(gitlab.render(found(check(name, message=message), anchor=Anchor("p/b.json", {"a": 7}))))
        for name, message in (("a", "1 -> 2"), ("a", "1 -> 3"), ("b", "1 -> 2"))
    )
    # WHEN rendered THEN the first two are the same issue, with what GitLab needs
    assert one[0]["fingerprint"] == two[0]["fingerprint"] != other[0]["fingerprint"]
    assert re.fullmatch("[0-9a-f]{64}", one[0]["fingerprint"])
    assert one[0]["location"] == {"path": "p/b.json", "lines": {"begin": 7}}
    assert one[0]["severity"] in ("info", "minor", "major", "critical", "blocker")
    assert gitlab.render(found(check("good", "ok", None))) == "[]\n"


def test_buildkite_fits_its_limit_and_says_what_is_left_out() -> None:
    # GIVEN more checks than fit WHEN rendered THEN the text is short enough, whole rows are left out, and counted
    text = buildkite.render(found(*(check(f"n{i}", message="m" * 50) for i in range(500))), limit=5000)
    assert len(text.encode()) <= 5000
    rows = [line for line in text.splitlines() if line.startswith("| ❌")]
    assert f"{500 - len(rows)} more are not shown" in text
    assert all(line.endswith(" |") for line in rows)
    # AND text of others cannot become markup
    assert "<x>" not in buildkite.render(found(check("a", message="<x> | `y`")))


def test_markdown_fits_a_comment() -> None:
    # GIVEN a page with a table and sentences that are far too long
    table = Table((Column("a"),), tuple((f"row {i} " + "x" * 90,) for i in range(5000)))
    lines = Lines(tuple(f"line {i}" for i in range(5000)), bullets=True)
    page = Page("t", (("a", "b"),), (Section("S", (lines,)), Section("T", (table,))), "verdict: fail")
    # WHEN it is rendered for a comment THEN the verdict and first rows stay, and the rest is counted
    text = markdown.render(page, limit=markdown.COMMENT)
    assert len(text) <= markdown.COMMENT
    assert text.startswith("## t\n\n**verdict: fail**")
    assert "row 0 " in text
    assert "more are not shown" in text
    # AND a page that fits is not touched
    assert markdown.render(page) == markdown.render(page, limit=10**9)


def test_a_page_of_endless_names_is_cut() -> None:
    # GIVEN one sentence that is longer than a comment WHEN rendered THEN it is cut, and says so
    page = Page("t", (), (Section("S", (Lines(("x" * 100_000,)),)),), "v")
    text = markdown.render(page, limit=1000)
    assert len(text) == 1000
    assert text.endswith("(cut here: a comment cannot be longer)\n")
