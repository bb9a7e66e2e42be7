"""Findings as a section of a page: worst first, many notes folded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moeprof.findings import Finding, order
from moeprof.reports.document import Lines, Section
from moeprof.reports.names import safe
from moeprof.reports.units import plural

_NOTES_SHOWN = 10


def findings_section(findings: Sequence[Finding], ranks: Mapping[str | None, str], *, wide: bool) -> Section:
    """Return the section; an empty label leaves the rank out. Notes beyond ten are counted instead of listed, unless the page is wide."""
    ranked = sorted(findings, key=order)
    notes = [finding for finding in ranked if finding.severity == "note"]
    shown = ranked if wide else [f for f in ranked if f.severity != "note"] + notes[:_NOTES_SHOWN]
    items = [_line(finding, ranks) for finding in shown]
    if len(shown) < len(ranked):
        items.append(f"{plural(len(ranked) - len(shown), 'more note')} (--wide shows them)")
    if not items:
        return Section("Findings", (Lines(("none",)),))
    return Section("Findings", (Lines(tuple(items), bullets=True),))


def _line(finding: Finding, ranks: Mapping[str | None, str]) -> str:
    label = "" if finding.rank is None else ranks.get(finding.rank, safe(finding.rank))
    side = finding.evidence.get("side")
    about = " ".join(part for part in (safe(side) if isinstance(side, str) else "", label) if part)
    return f"{finding.severity}[{safe(finding.slug)}]{f' ({about})' if about else ''}: {safe(finding.message)}"
