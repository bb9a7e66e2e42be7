"""Whatever a trace or a result calls its things, formats for CI stay what they are."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import xmlschema
from hypothesis import given
from hypothesis import strategies as st

from moeprof.reports import buildkite, github, gitlab, junit
from moeprof.reports.checks import LEVELS, Anchor, Check, Checks

XSD = xmlschema.XMLSchema(str(Path(__file__).parents[1] / "data" / "xsd" / "junit.xsd"))
TEXTS = st.text(st.characters(codec=None), max_size=60)
CHECKS = st.lists(
    st.builds(
        Check,
        st.sampled_from(["structure", "serving"]),
        TEXTS,
        st.sampled_from(["ok", "failure", "error", "skipped"]),
        st.sampled_from(["", "structure", "missing"]),
        TEXTS,
        st.sampled_from([None, *LEVELS]),
    ),
    max_size=25,
).map(tuple)


@given(CHECKS, TEXTS)
def test_every_format_holds_every_text(checks: tuple[Check, ...], title: str) -> None:
    # GIVEN checks with any text WHEN they are rendered
    found = Checks(title, "verdict: x", checks, {title: title}, (), Anchor(title, {}))
    # THEN JUnit is valid, with one case per check
    text = junit.render(found)
    XSD.validate(text)
    assert len(list(ElementTree.fromstring(text.encode()).iter("testcase"))) == len(checks)
    # AND GitHub gets ten commands at most, each on one line of its own, and a last line that is none
    lines = github.render(found).split("\n")
    assert lines[-2:] == ["verdict: x", ""]
    assert len(lines) - 2 == min(10, sum(check.level is not None for check in checks))
    assert all(line.startswith(tuple(f"::{level} " for level in LEVELS)) and "\r" not in line for line in lines[:-2])
    # AND GitLab's JSON has one entry for each that is not good, AND Buildkite's table one row
    assert len(json.loads(gitlab.render(found))) == sum(bool(check.word) for check in checks)
    rows = [line for line in buildkite.render(found).split("\n") if line.startswith("| ")]
    said = sum(check.level is not None for check in checks)
    assert len(rows) == (said + 2 if said else 0)
