"""Slow creep: a metric that loses a little with each acceptance passes every gate, and is worse than it ever was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moeprof.analyzers.serving.results import ServingRow
from moeprof.findings import Finding, JsonValue
from moeprof.wording import rounded, signed


def creep(oldest: Mapping[str, float], rows: Sequence[ServingRow]) -> list[Finding]:
    """Return a warning for each metric that gates, has not regressed, and is worse than its oldest baseline by its threshold.

    Args:
        oldest: ``point metric`` to the median that was accepted first.
        rows: Of the comparison with the baseline of today.
    """
    found = []
    for row in rows:
        before, now = oldest.get(f"{row.workload} {row.metric}"), row.candidate.median
        if not row.gates or row.verdict == "regressed" or not before or now is None:
            continue
        change = now / before - 1
        if (change if row.better == "lower" else -change) >= row.threshold:
            message = (
                f"{row.metric} ({row.workload}) is {signed(change)} against the oldest accepted baseline"
                f" ({rounded(before)} -> {rounded(now)}), step by step"
            )
            evidence: dict[str, JsonValue] = {
                "metric": row.metric,
                "workload": row.workload,
                "oldest": before,
                "now": float(now),
            }
            found.append(Finding("creep", "warning", message, evidence=evidence))
    return found
