"""Workflow commands of GitHub Actions: annotations on stdout, ten at most, since GitHub drops further ones without a word."""

from __future__ import annotations

from moeprof.reports.checks import Check, Checks

MOST = 10


def render(found: Checks) -> str:
    """Return annotations, worst first; with more than ten the last one says how many are not shown. The verdict is a plain line."""
    said = found.annotations()
    shown = said if len(said) <= MOST else said[: MOST - 1]
    lines = [_annotation(found, check) for check in shown]
    rest = said[len(shown) :]
    if rest:
        lines.append(
            f"::{rest[0].level} title={escape_property(found.title)}::{escape_data(f'and {len(rest)} more; the other formats list them all')}"
        )
    return "\n".join([*lines, found.verdict.lstrip(":")]) + "\n"


def _annotation(found: Checks, check: Check) -> str:
    where = ""
    if found.anchor is not None and check.group != "finding":
        where = f"file={escape_property(found.anchor.path)},line={found.line(check.name)},"
    return f"::{check.level} {where}title={escape_property(f'moeprof: {check.name}')}::{escape_data(check.message)}"


def escape_data(text: str) -> str:
    r"""Return text as the message of a workflow command.

    >>> escape_data("5 %\n::error::x")
    '5 %25%0A::error::x'
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Return text as the value of a property of a workflow command.

    >>> escape_property("a:b,c")
    'a%3Ab%2Cc'
    """
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")
