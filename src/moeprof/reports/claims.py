"""Claims on a page: the sentences of a diff, and the outcome of written ones."""

from __future__ import annotations

from collections.abc import Sequence

from moeprof.analyzers.claims.results import ClaimRow, ClaimsResult
from moeprof.reports.document import Column, Lines, Page, Section, Table, Tone
from moeprof.reports.finding_lines import findings_section
from moeprof.wording import safe

_WORDS = ("confirmed", "consistent", "contradicted", "no_data")


def claim_sections(rows: Sequence[ClaimRow]) -> tuple[Section, ...]:
    """Return what may be said, what may not, and what was checked; nothing where there is none."""
    unsaid = tuple(f"{safe(row.text)}: {safe(row.because)}" for row in rows if row.kind == "not-said")
    checked = [row for row in rows if row.kind == "check"]
    sections = []
    said = [row for row in rows if row.kind == "sentence"]
    if said:
        sections.append(Section("What may be said", _said(said)))
    if unsaid:
        sections.append(Section("What may not be said", (Lines(unsaid, bullets=True),)))
    if checked:
        sections += checked_sections(checked)
    return tuple(sections)


def _said(rows: Sequence[ClaimRow]) -> tuple[Lines, ...]:
    """Return the sentences with label and figures; what several rest on alike stands once below them."""
    groups: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        groups.setdefault((row.label, row.because), []).append(row.text)
    blocks: list[Lines] = []
    alone = [
        f"{safe(texts[0])} [{safe(label)}]: {safe(because)}"
        for (label, because), texts in groups.items()
        if len(texts) == 1
    ]
    if alone:
        blocks.append(Lines(tuple(alone), bullets=True))
    for (label, because), texts in groups.items():
        if len(texts) > 1:
            blocks.append(Lines(tuple(f"{safe(text)} [{safe(label)}]" for text in texts), bullets=True))
            blocks.append(Lines((f"{safe(label)}: {safe(because)}",)))
    return tuple(blocks)


def checked_sections(rows: Sequence[ClaimRow]) -> list[Section]:
    """Return written claims with their outcome, and why."""
    columns = (Column("claim"), Column("metric"), Column("outcome", "change"))
    table = Table(columns, tuple((safe(row.text), safe(row.metric or "-"), _word(row.label)) for row in rows))
    why = tuple(f"{safe(row.text)}: {safe(row.because)}" for row in rows)
    return [Section("Written claims", (table, Lines(why, bullets=True)))]


def claims_page(result: ClaimsResult, exit_code: int) -> Page:
    """Return the page of ``moeprof claims``."""
    counts = ", ".join(
        f"{number} {_word(word)}" for word in _WORDS if (number := sum(row.label == word for row in result.claims))
    )
    sections = [*checked_sections(result.claims)]
    if result.findings:
        sections.append(findings_section(result.findings, {}, wide=True))
    facts = (("base", safe(result.base)), ("candidate", safe(result.candidate)))
    tone: Tone = "bad" if exit_code else "good"
    return Page("moeprof claims", facts, tuple(sections), f"claims: {counts}; exit {exit_code}", tone)


def _word(label: str) -> str:
    return label.replace("_", " ")
