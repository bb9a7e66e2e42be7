"""Results in a notebook: a short escaped summary."""

from __future__ import annotations

from dataclasses import replace

from . import samples


def test_a_report_shows_itself() -> None:
    # WHEN a notebook asks a report for HTML THEN pairs per iteration are in it
    html = samples.report(1)._repr_html_()
    assert "22 iterations; per iteration 45 AG/RS pairs, 45 GEMM pairs" in html


def test_a_diff_shows_itself_escaped() -> None:
    # GIVEN a source with HTML in its name WHEN a notebook asks THEN it is escaped
    diff = samples.diff()
    html = replace(diff, base=replace(diff.base, source="<script>"))._repr_html_()
    assert html.startswith("<pre>moeprof diff: &lt;script&gt; against")
    assert "AG/RS pairs fell from 45 to 3" in html


def test_no_data_is_said() -> None:
    # WHEN nothing is known per iteration THEN no number is shown
    assert "no data on AG/RS pairs" in samples.empty_report()._repr_html_()
