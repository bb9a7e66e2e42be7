"""Markdown output: the same content as GitHub tables, with names that cannot break them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from moeprof.reports.look import Look
from moeprof.reports.markdown import escape
from moeprof.reports.outcome import Outcome
from moeprof.reports.render import render_diff, render_reports

from . import samples

NONE = Outcome(0, "because --fail-on none")


def test_a_diff_starts_with_the_verdict_and_the_summary() -> None:
    # WHEN a diff is rendered THEN heading, verdict, sides and summary come in this order
    text = render_diff(samples.diff(), "markdown", Look(), NONE)
    order = ["## moeprof diff", "**verdict: changed; exit 0", "- base: ", "### Summary", "### Launches per iteration"]
    positions = [text.index(part) for part in order]
    assert positions == sorted(positions)
    assert "| moe_fused | target | 0 | 42 | +42 | added |" in text


def test_long_tables_are_folded() -> None:
    # WHEN a diff is rendered THEN the table of kernels is inside <details>
    text = render_diff(samples.diff(), "markdown", Look(), NONE)
    details = text[text.index("<details>") : text.index("</details>")]
    assert "<summary>Kernels that came, went or changed in number</summary>\n\n|" in details


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a|b", r"a\|b"),
        ("a`b`", r"a\`b\`"),
        ("<img src=x>", "&lt;img src=x&gt;"),
        ("a&lt;", "a&amp;lt;"),
        ("half*, half*", r"half\*, half\*"),
        ("__nv_bfloat16", r"\_\_nv_bfloat16"),
        ("moe_gemm_1", "moe_gemm_1"),
        ("[x](y)", r"\[x](y)"),
        ("a\nb", r"a\\nb"),
        ("back\\|slash", r"back\\\|slash"),
    ],
)
def test_names_are_escaped(name: str, shown: str) -> None:
    # WHEN a name has a character that Markdown or HTML reads THEN it is escaped
    assert escape(name) == shown


def test_every_row_has_as_many_cells_as_its_head() -> None:
    # GIVEN kernel names with pipes
    diff = samples.diff()
    hostile = replace(diff.kernels[0], name="gemm<a|b>||`x`")
    text = render_diff(replace(diff, kernels=(hostile,)), "markdown", Look(), NONE)
    # WHEN cells are counted, escaped pipes aside THEN each table is rectangular
    tables = re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE)
    widths = [{len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()} for table in tables]
    assert len(widths) == 4
    assert all(len(width) == 1 for width in widths)


def test_a_report_in_markdown() -> None:
    # WHEN a report is rendered THEN its figures are those of the text
    text = render_reports([samples.report(2)], "markdown", Look())
    assert "| moe_gemm | 84 | 6 | 0 | 1980 |" in text
    assert "| AG/RS (dispatch, combine) | 42 | 3 | 0 | 45 | 990 | 0 AG, 0 RS |" in text


def test_quoted_names_are_code_and_nothing_else_is() -> None:
    # GIVEN a sentence with quoted kernel names and a stray backtick
    summary = ("-`a<b>` x42, +`c_d` x1 and ` <i>",)
    # WHEN rendered THEN the names are code as they are, and the rest is escaped
    text = render_diff(replace(samples.diff(), summary=summary), "markdown", Look(), NONE)
    assert "\n- \\-`a<b>` x42, +`c_d` x1 and \\` &lt;i&gt;\n" in text
