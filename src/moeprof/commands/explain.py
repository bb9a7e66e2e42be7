"""``moeprof report --explain-class NAME``: which rule takes a kernel name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moeprof.commands import analysis
from moeprof.commands.options import Shared
from moeprof.commands.output import emit
from moeprof.commands.streams import Streams
from moeprof.errors import UsageError

if TYPE_CHECKING:
    from moeprof.analyzers.classify import Explanation
    from moeprof.reports.look import Look


def explain(name: str, shared: Shared, streams: Streams) -> int:
    """Emit the explanation of a kernel name's class; return the exit code."""
    if any(target.format not in ("text", "json") for target in shared.targets):
        raise UsageError("--explain-class has the formats text and json only")
    explanation = analysis.explanation_of(name, shared.reading.rules)
    emit(shared, streams, lambda fmt, look: _render(name, explanation, fmt, look))
    return 0


def _render(name: str, explanation: Explanation, fmt: str, look: Look) -> str:
    from moeprof.reports import explanation as page

    values = {
        "class": explanation.class_,
        "rule": explanation.rule,
        "pattern": explanation.pattern,
        "backend": explanation.backend,
        "source": explanation.source,
    }
    return page.render(name, values, fmt, look)
