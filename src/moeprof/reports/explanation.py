"""Render which rule takes a kernel name."""

from __future__ import annotations

from collections.abc import Mapping

from moeprof.reports import json
from moeprof.reports.document import Page
from moeprof.reports.look import Look
from moeprof.wording import safe


def render(name: str, values: Mapping[str, str | None], fmt: str, look: Look) -> str:
    """Return an explanation as text or JSON.

    Args:
        name: The kernel name.
        values: class, rule, pattern, backend and source; None where the rule names none.
        fmt: ``text`` or ``json``.
        look: The look of the text.
    """
    if fmt == "json":
        return json.dump({"schema": "moeprof.explanation/1", "name": name, **values})
    from moeprof.reports import text

    facts = (("name", name), *((label, "none" if value is None else value) for label, value in values.items()))
    page = Page("Class of a kernel name", tuple((label, safe(value)) for label, value in facts), ())
    return text.render(page, look)
