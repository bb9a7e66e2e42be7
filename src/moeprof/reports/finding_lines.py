"""Findings as a section of a page: worst first, many notes folded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moeprof.findings import Finding, order
from moeprof.reports.document import Lines, Section
from moeprof.wording import plural, safe

_NOTES_SHOWN = 10


def findings_section(findings: Sequence[Finding], ranks: Mapping[str | None, str], *, wide: bool) -> Section:
    """Return the section; an empty label leaves the rank out. Notes beyond ten are counted instead of listed, unless the page is wide."""
    ranked = _folded(findings)
    notes = [group for group in ranked if group[0].severity == "note"]
    shown = ranked if wide else [group for group in ranked if group[0].severity != "note"] + notes[:_NOTES_SHOWN]
    items = [_line(group, ranks) for group in shown]
    if len(shown) < len(ranked):
        items.append(f"{plural(len(ranked) - len(shown), 'more note')} (--wide shows them)")
    if not items:
        return Section("Findings", (Lines(("none",)),))
    return Section("Findings", (Lines(tuple(items), bullets=True),))


def _folded(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Return findings that say the same of several ranks (and sides) together, each once, in order of the first."""
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in sorted(findings, key=order):
        group = groups.setdefault((finding.slug, finding.severity, finding.message), [])
        if finding not in group:
            group.append(finding)
    return list(groups.values())


def _line(group: Sequence[Finding], ranks: Mapping[str | None, str]) -> str:
    first = group[0]
    about = "; ".join(_about(group, ranks))
    return f"{first.severity}[{safe(first.slug)}]{f' ({about})' if about else ''}: {safe(first.message)}"


def _about(group: Sequence[Finding], ranks: Mapping[str | None, str]) -> list[str]:
    """Return whom a finding is about: ranks, by side where there are two; sides with the same ranks share one entry."""
    by_side: dict[str, list[str]] = {}
    for finding in group:
        side = finding.evidence.get("side")
        labels = by_side.setdefault(safe(side) if isinstance(side, str) else "", [])
        label = "" if finding.rank is None else ranks.get(finding.rank, safe(finding.rank))
        if label and label not in labels:
            labels.append(label)
    sides: dict[tuple[str, ...], list[str]] = {}
    for side, labels in sorted(by_side.items()):
        sides.setdefault(tuple(labels), []).append(side)
    return [
        " ".join(part for part in (" and ".join(filter(None, names)), ", ".join(labels)) if part)
        for labels, names in sides.items()
        if labels or any(names)
    ]
