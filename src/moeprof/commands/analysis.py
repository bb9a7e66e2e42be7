"""The one place where commands call the library; heavy imports happen here, when a command runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moeprof.commands.options import Reading

if TYPE_CHECKING:
    from moeprof.analyzers.classify import Explanation
    from moeprof.analyzers.results import Diff, Report


def report_of(path: str, reading: Reading) -> Report:
    """Open a trace and return its report."""
    from moeprof import api

    return api.report(
        path,
        rules=reading.rules,
        marker=reading.marker,
        marker_family=reading.marker_family,
        recover=reading.recover,
        store=reading.store,
    )


def diff_of(base: str, candidate: str, reading: Reading, metrics: str | None = None) -> Diff:
    """Return the diff of two sides, each a path, an arm or a run."""
    from moeprof import api

    return api.diff(
        base,
        candidate,
        rules=reading.rules,
        marker=reading.marker,
        marker_family=reading.marker_family,
        recover=reading.recover,
        store=reading.store,
        metrics=metrics,
    )


def explanation_of(name: str, rules: str | None) -> Explanation:
    """Return which rule takes a kernel name, and why."""
    from moeprof import api

    return api.explain(name, rules=rules)
