"""The one place where commands call the library; heavy imports happen here, when a command runs."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from moeprof.commands.options import Reading

if TYPE_CHECKING:
    from moeprof.analyzers.classify import Explanation
    from moeprof.analyzers.results import Diff, Report


def report_of(path: str, reading: Reading, *, timeline: bool = False, ranks: bool = False) -> Report:
    """Open a trace and return its report."""
    from moeprof import api

    return api.report(
        path,
        rules=reading.rules,
        marker=reading.marker,
        marker_family=reading.marker_family,
        recover=reading.recover,
        store=reading.store,
        timeline=timeline,
        ranks=ranks,
    )


def diff_of(
    base: str,
    candidate: str,
    reading: Reading,
    metrics: str | None = None,
    claims: str | None = None,
    *,
    accuracy_margin: float | None = None,
    allow_environment: Collection[str] = (),
    explain: bool = False,
) -> Diff:
    """Return the diff of two sides, each a path, an arm or a run, with the claims of a file held against it."""
    from moeprof import api
    from moeprof.analyzers.serving.metrics import load_metrics
    from moeprof.commands.claims_file import read_claims

    written = () if claims is None else read_claims(claims, load_metrics(metrics)).claims
    return api.diff(
        base,
        candidate,
        rules=reading.rules,
        marker=reading.marker,
        marker_family=reading.marker_family,
        recover=reading.recover,
        store=reading.store,
        metrics=metrics,
        claims=written,
        accuracy_margin=accuracy_margin,
        allow_environment=allow_environment,
        explain=explain,
    )


def explanation_of(name: str, rules: str | None) -> Explanation:
    """Return which rule takes a kernel name, and why."""
    from moeprof import api

    return api.explain(name, rules=rules)
