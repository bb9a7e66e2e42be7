"""The body of a Buildkite annotation: what is wrong first, as CommonMark with one table, within Buildkite's limit."""

from __future__ import annotations

from moeprof.reports.checks import Check, Checks
from moeprof.reports.markdown import escape

LIMIT = 1_000_000  # Buildkite takes 1 MiB
_SIGNS = {"error": "❌", "warning": "⚠️", "notice": "ℹ️"}


def render(found: Checks, *, limit: int = LIMIT) -> str:
    """Return the annotation: the verdict, then a row for each check that is worth a word, as many as fit.

    Args:
        found: The checks.
        limit: Most bytes.
    """
    said = found.annotations()
    head = f"**{escape(found.title)}** — {escape(found.verdict)}\n"
    if not said:
        return head
    table = ["", "| | check | what |", "| --- | --- | --- |"]
    rows = [_row(check) for check in said]
    tail = f"\n{len(rows)} more are not shown: the annotation would be too long.\n"
    room = limit - len((head + "\n".join(table) + tail).encode()) - 2
    kept: list[str] = []
    for row in rows:
        room -= len(row.encode()) + 1
        if room < 0:
            break
        kept.append(row)
    left = len(rows) - len(kept)
    text = head + "\n".join([*table, *kept]) + "\n"
    return text if not left else f"{text}\n{left} more are not shown: the annotation would be too long.\n"


def _row(check: Check) -> str:
    return f"| {_SIGNS[check.level or 'notice']} | {escape(check.name)} | {escape(check.message)} |"
