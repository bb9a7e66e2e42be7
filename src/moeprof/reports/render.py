"""Choose the renderer of a format. A renderer and its libraries are loaded when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from moeprof.analyzers.claims.results import ClaimsResult
from moeprof.analyzers.kernel_metrics.results import KernelsResult
from moeprof.analyzers.results import Diff, Report
from moeprof.findings import JsonValue
from moeprof.reports.document import Page
from moeprof.reports.look import Look
from moeprof.reports.outcome import Outcome

if TYPE_CHECKING:
    from moeprof.analyzers.gates.observation import Observation
    from moeprof.analyzers.gates.results import GateResult
    from moeprof.analyzers.gates.self_test import SelfTest
    from moeprof.reports.checks import Anchor, Checks

FORMATS = ("text", "json", "markdown")
#: What CI reads: for results that hold one thing against another.
CHECK_FORMATS = ("junit", "github", "gitlab", "buildkite")


def render_reports(results: Sequence[Report], fmt: str, look: Look, *, layers: bool = False) -> str:
    """Return reports in a format of `FORMATS`; several stand one after another. `layers` shows the folded structure."""
    if fmt == "json":
        from moeprof.reports import json

        return json.reports(results)
    from moeprof.reports.report_page import report_page

    pages = (report_page(result, wide=look.wide, layers=layers) for result in results)
    return "\n\n".join(render_page(page, fmt, look) for page in pages)


def render_diff(
    result: Diff,
    fmt: str,
    look: Look,
    outcome: Outcome | None = None,
    words: Collection[str] = (),
    *,
    explain: bool = False,
) -> str:
    """Return a diff in a format of `FORMATS` or `CHECK_FORMATS`.

    Args:
        result: What to show.
        fmt: The format.
        look: The look of text.
        outcome: The exit code and why.
        words: Those of ``--fail-on``.
        explain: Say what became of the folded structure.
    """
    if fmt == "json":
        from moeprof.reports import json

        return json.diff(result, outcome)
    from moeprof.reports.diff_page import diff_page

    if fmt in CHECK_FORMATS:
        from moeprof.reports.checks import checks_of_diff

        return _render_checks(checks_of_diff(result, words, diff_page(result, outcome).closing or ""), fmt)
    page = diff_page(result, outcome, wide=look.wide, one_table=fmt == "markdown", explain=explain)
    return render_page(page, fmt, look)


def render_kernels(result: KernelsResult, fmt: str, look: Look) -> str:
    """Return hardware metrics in a format of `FORMATS`."""
    if fmt == "json":
        from moeprof.reports import json

        return json.dump(result.to_dict())
    from moeprof.reports.kernels_page import kernels_page

    return render_page(kernels_page(result, wide=look.wide), fmt, look)


def render_claims(result: ClaimsResult, fmt: str, look: Look, exit_code: int) -> str:
    """Return the outcome of written claims in a format of `FORMATS`."""
    if fmt == "json":
        from moeprof.reports import json

        return json.claims(result, exit_code)
    from moeprof.reports.claims import claims_page

    return render_page(claims_page(result, exit_code), fmt, look)


def render_gate(
    result: GateResult, fmt: str, look: Look, outcome: Outcome, words: Collection[str], anchor: Anchor | None
) -> str:
    """Return a gate in a format of `FORMATS` or `CHECK_FORMATS`; annotations point to `anchor`."""
    if fmt == "json":
        from moeprof.reports import json

        failing: list[JsonValue] = [*words]
        return json.dump({**result.to_dict(), "exit_code": outcome.exit_code, "fail_on": failing})
    from moeprof.reports.gate_page import closing, gate_page

    if fmt in CHECK_FORMATS:
        from moeprof.reports.checks import checks_of_gate

        return _render_checks(checks_of_gate(result, words, closing(result, outcome), anchor), fmt)
    return render_page(gate_page(result, outcome, wide=look.wide, one_table=fmt == "markdown"), fmt, look)


def render_self_test(result: SelfTest, fmt: str, look: Look, exit_code: int) -> str:
    """Return a self-test in a format of `FORMATS`; formats for CI get its text."""
    if fmt == "json":
        from moeprof.reports import json

        return json.dump({**result.to_dict(), "exit_code": exit_code})
    from moeprof.reports.gate_page import self_test_page

    return render_page(self_test_page(result, exit_code), fmt, look)


def render_baseline(
    path: str, arms: Mapping[str, dict[str, JsonValue]], found: Mapping[str, Observation], fmt: str, look: Look
) -> str:
    """Return a baseline file in a format of `FORMATS`: as JSON it is the file's own content."""
    if fmt == "json":
        from moeprof.reports import json

        return json.dump({"schema": "moeprof.baseline/1", "arms": dict(arms)})
    from moeprof.reports.gate_page import baseline_page

    return render_page(baseline_page(path, arms, found), fmt, look)


def _render_checks(found: Checks, fmt: str) -> str:
    from moeprof.reports import buildkite, github, gitlab, junit

    renderers: dict[str, Callable[[Checks], str]] = {
        "junit": junit.render,
        "github": github.render,
        "gitlab": gitlab.render,
        "buildkite": buildkite.render,
    }
    return renderers[fmt](found)


def render_page(page: Page, fmt: str, look: Look) -> str:
    """Return a page as text or Markdown."""
    if fmt == "markdown":
        from moeprof.reports import markdown

        return markdown.render(page, wide=look.wide, limit=None if look.wide else markdown.COMMENT)
    from moeprof.reports import text

    return text.render(page, look)
