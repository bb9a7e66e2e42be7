"""Choose the renderer of a format. A renderer and its libraries are loaded when it is first used."""

from __future__ import annotations

from collections.abc import Sequence

from moeprof.analyzers.claims.results import ClaimsResult
from moeprof.analyzers.kernel_metrics.results import KernelsResult
from moeprof.analyzers.results import Diff, Report
from moeprof.reports.document import Page
from moeprof.reports.look import Look
from moeprof.reports.outcome import Outcome

FORMATS = ("text", "json", "markdown")


def render_reports(results: Sequence[Report], fmt: str, look: Look, *, layers: bool = False) -> str:
    """Return reports in a format of `FORMATS`; several stand one after another. `layers` shows the folded structure."""
    if fmt == "json":
        from moeprof.reports import json

        return json.reports(results)
    from moeprof.reports.report_page import report_page

    pages = (report_page(result, wide=look.wide, layers=layers) for result in results)
    return "\n\n".join(render_page(page, fmt, look) for page in pages)


def render_diff(result: Diff, fmt: str, look: Look, outcome: Outcome | None = None, *, explain: bool = False) -> str:
    """Return a diff in a format of `FORMATS`. `explain` says what became of the folded structure."""
    if fmt == "json":
        from moeprof.reports import json

        return json.diff(result, outcome)
    from moeprof.reports.diff_page import diff_page

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


def render_page(page: Page, fmt: str, look: Look) -> str:
    """Return a page as text or Markdown."""
    if fmt == "markdown":
        from moeprof.reports import markdown

        return markdown.render(page, wide=look.wide)
    from moeprof.reports import text

    return text.render(page, look)
