"""Text output: what it says, how wide it is, and that names from a trace cannot harm a terminal."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from moeprof.analyzers.results import KernelCount
from moeprof.findings import Finding
from moeprof.reports.look import Look
from moeprof.reports.outcome import Outcome
from moeprof.reports.render import render_diff, render_reports

from . import samples

NONE = Outcome(0, "because --fail-on none")
PAGES = {
    "one rank": samples.report(1),
    "two ranks": samples.report(2),
    "eight ranks": samples.report(8),
    "unequal": samples.unequal_report(),
    "cpu": samples.cpu_report(),
    "empty": samples.empty_report(),
}


def words(text: str) -> list[str]:
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]


def named(name: str, **changes: object) -> str:
    """Render a report whose largest kernel has this name."""
    kernel = KernelCount(name, "other", "target", None, 22, 1, 99_000_000)
    report = samples.report(1)
    rank = replace(report.ranks[0], kernels=(kernel,))
    return render_reports([replace(report, ranks=(rank,))], "text", Look(**changes))  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize("name", PAGES)
def test_a_report_fits_100_columns(name: str) -> None:
    # WHEN a report is rendered for a pipe
    text = render_reports([PAGES[name]], "text", Look())
    # THEN no line is longer than 100 characters or ends with a blank
    assert [line for line in text.splitlines() if len(line) > 100 or line != line.rstrip()] == []


def test_a_diff_fits_100_columns() -> None:
    # WHEN a diff with long kernel names is rendered THEN no line is longer than 100 characters
    text = render_diff(samples.diff(), "text", Look(), NONE)
    assert [line for line in text.splitlines() if len(line) > 100] == []


@pytest.mark.parametrize("name", PAGES)
def test_ascii_is_enough_where_nothing_else_can_be_shown(name: str) -> None:
    # WHEN the receiver has no box characters THEN the page is plain ASCII
    assert render_reports([PAGES[name]], "text", Look(unicode=False)).isascii()


def test_the_summary_comes_first_and_the_verdict_last() -> None:
    # WHEN a diff is rendered
    lines = words(render_diff(samples.diff(), "text", Look(), NONE))
    # THEN both sources head it, the summary follows, and the verdict with the code ends it
    assert lines[2:4] == [
        "base traces/h200/base (2 ranks)",
        "candidate traces/h200/mega_derived (2 ranks)",
    ]
    assert lines[5] == "Summary"
    assert lines[-1] == "verdict: changed; exit 0 because --fail-on none"


def test_changed_rows_are_shown_and_unchanged_ones_folded() -> None:
    # WHEN a diff is rendered
    lines = words(render_diff(samples.diff(), "text", Look(), NONE))
    # THEN what changed stands with its difference, the rest is one line
    assert "moe_fused target 0 42 +42 added" in lines
    assert "moe_gemm target 84 0 -84 removed" in lines
    assert "AG/RS (dispatch, combine) 45 3 -42" in lines
    assert "26 rows unchanged (--wide shows them)" in lines
    assert not [line for line in lines if line.startswith("kv_cache")]


def test_wide_shows_unchanged_rows() -> None:
    # WHEN a diff is rendered wide THEN nothing is folded
    lines = words(render_diff(samples.diff(), "text", Look(wide=True), NONE))
    assert "kv_cache target 43 43 0 same" in lines
    assert not [line for line in lines if "--wide" in line]


def test_at_most_15_changed_kernels_are_listed() -> None:
    # GIVEN 19 kernels that came or went WHEN the diff is rendered
    text = render_diff(samples.diff(), "text", Look(), NONE)
    # THEN 15 are listed, the largest first, and 4 are counted
    assert "4 more kernels (--wide shows them)" in text
    assert sum("triton_poi_fused_add_" in line for line in text.splitlines()) == 10
    assert text.index("kernel_cutlass_mega") < text.index("ncclDevKernel_AllGather")


def test_nothing_changed() -> None:
    # WHEN a trace is compared with itself THEN the page says so
    lines = words(render_diff(samples.same_diff(), "text", Look(), NONE))
    assert "all 32 rows unchanged (--wide shows them)" in lines
    assert lines[-1].startswith("verdict: unchanged;")


def test_ranks_that_agree_share_one_table() -> None:
    # WHEN eight equal ranks are rendered
    text = render_reports([samples.report(8)], "text", Look())
    # THEN the structure is shown once
    assert "Launches per decode iteration (8 ranks agree)" in text
    assert len(re.findall("^Launches per decode iteration", text, re.MULTILINE)) == 1


def test_ranks_that_differ_have_a_table_each() -> None:
    # WHEN two unequal ranks are rendered
    lines = words(render_reports([samples.unequal_report()], "text", Look()))
    # THEN each has its table, and the difference is named
    assert "Launches per decode iteration (dp0)" in lines
    assert "Launches per decode iteration (dp1)" in lines
    assert "ranks differ" in lines
    assert "launches of copy in sample dp0 5, dp1 7" in lines


def test_figures_of_a_report() -> None:
    # WHEN the base arm is rendered
    lines = words(render_reports([samples.report(2)], "text", Look()))
    # THEN counts, pairs and the four times stand with their labels
    assert "moe_gemm 84 6 0 1980" in lines
    assert "AG/RS (dispatch, combine) 42 3 0 45 990 0 AG, 0 RS" in lines
    assert "kernel sum 163.730 180.980 durations of all kernels added; overlaps count twice" in lines
    assert "kernel busy 149.217 166.067 at least one kernel runs" in lines
    assert "GPU busy 149.541 166.380 at least one kernel, memcpy or memset runs" in lines
    assert "wall 272.447 285.455 first start to last end on the GPU" in lines


def test_values_that_are_not_constant_are_marked_and_listed() -> None:
    # WHEN elementwise has 218 launches, once 217 THEN the commonest is marked and both are named
    lines = words(render_reports([samples.report(2)], "text", Look()))
    assert "elementwise *218 180 4 8843" in lines
    assert "* not constant: elementwise in target is 217 or 218; the commonest is shown" in lines


def test_a_trace_without_gpu_says_so() -> None:
    # WHEN a CPU-only trace is rendered THEN its operators are counted and no time is 0
    text = render_reports([samples.cpu_report()], "text", Look())
    assert "no GPU activity recorded (CPU-only trace: operators are counted)" in text
    assert "moe_gemm         2     16" in text
    assert "0.000" not in text


def test_no_data_is_never_zero() -> None:
    # WHEN a trace with nothing in it is rendered
    lines = words(render_reports([samples.empty_report()], "text", Look()))
    # THEN figures per iteration are "-", the share is "no data", and coverage is still there
    assert "AG/RS (dispatch, combine) - - - - 0 -" in lines
    assert "0 0 0 0 0 0 no data" in lines
    assert "no iteration markers: the trace is one window, nothing is known per iteration" in lines


def test_the_unclassified_share_is_always_printed() -> None:
    # WHEN any report is rendered THEN the share of unclassified time is in it
    for report in PAGES.values():
        assert "share of time" in render_reports([report], "text", Look())


@pytest.mark.parametrize("hostile", ["a\x1b[2Jb", "a\x9b2Jb", "a\rb", "a\x07b", "a\u202eb", "a\udc80b", "a\nb"])
def test_names_cannot_steer_the_terminal(hostile: str) -> None:
    # WHEN a kernel name holds a control character THEN it is written out as an escape, on one line
    text = named(hostile)
    shown = hostile[1:-1].encode("unicode_escape").decode()
    assert f"a{shown}b" in text
    assert set(text) - {"\n"} == {char for char in text if char.isprintable()}


def test_markup_in_names_is_no_markup() -> None:
    # WHEN a name looks like markup THEN it is shown as it is, without colour
    text = named("[bold red]kernel[/]:smile:", color=True)
    assert "[bold red]kernel[/]:smile:" in text


def test_long_names_are_cut_in_the_middle_and_full_when_wide() -> None:
    # GIVEN a kernel name of hundreds of characters
    assert samples.CUTLASS not in named(samples.CUTLASS)
    assert "vllm::cutlass_3x_gemm_fp8_blockwise" in named(samples.CUTLASS)
    # WHEN the page is wide THEN the name is there in full
    assert samples.CUTLASS in named(samples.CUTLASS, wide=True)


def test_names_cut_alike_are_told_apart() -> None:
    # GIVEN w13 and w2, which differ in one number WHEN both are shown short THEN the number is kept
    text = render_reports([samples.report(1)], "text", Look())
    shown = [line.split("target")[1].strip() for line in text.splitlines() if "humming<" in line]
    assert len(set(shown)) == len(shown) == 2


def test_colour_only_on_request() -> None:
    # WHEN colour is off THEN there is no escape sequence; WHEN on THEN the words are the same
    plain = render_diff(samples.diff(), "text", Look(), NONE)
    coloured = render_diff(samples.diff(), "text", Look(color=True), NONE)
    assert "\x1b" not in plain
    assert words(re.sub(r"\x1b\[[0-9;]*m", "", coloured)) == words(plain)
    assert coloured != plain


def test_findings_are_worst_first_and_notes_fold() -> None:
    # GIVEN a warning, an error and 13 notes
    notes = tuple(Finding("a-note", "note", f"note {number:02}") for number in range(13))
    findings = (*notes, Finding("b", "warning", "second"), Finding("c", "error", "first"))
    report = samples.report(1, findings=findings)
    # WHEN rendered THEN the error leads, and three notes are counted
    lines = words(render_reports([report], "text", Look()))
    start = lines.index("Findings")
    assert lines[start + 1 : start + 4] == ["• error[c]: first", "• warning[b]: second", "• note[a-note]: note 00"]
    assert lines[-1] == "• 3 more notes (--wide shows them)"
    wide = render_reports([report], "text", Look(wide=True))
    assert "note 12" in wide


def test_several_reports_stand_one_after_another() -> None:
    # WHEN two reports are rendered THEN each has its heading
    text = render_reports([samples.report(1), samples.cpu_report()], "text", Look())
    assert text.count("moeprof report\n") == 2


def test_rendering_leaves_no_trace_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN variables that terminal libraries obey
    plain = render_diff(samples.diff(), "text", Look(), NONE)
    for name, value in (("COLUMNS", "60"), ("FORCE_COLOR", "1"), ("TERM", "xterm-256color"), ("LINES", "5")):
        monkeypatch.setenv(name, value)
    # WHEN rendered again THEN nothing differs
    assert render_diff(samples.diff(), "text", Look(), NONE) == plain
