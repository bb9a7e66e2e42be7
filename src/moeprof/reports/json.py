"""Render results as JSON: sorted keys, numbers as numbers, null for no data, one newline at the end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from moeprof.analyzers.claims.results import ClaimsResult
from moeprof.analyzers.plain import to_json
from moeprof.analyzers.results import Diff, Report
from moeprof.findings import JsonValue
from moeprof.reports.outcome import Outcome


def dump(value: JsonValue) -> str:
    """Return a JSON value as text."""
    return json.dumps(value, sort_keys=True, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def reports(results: Sequence[Report]) -> str:
    """Return one report as ``moeprof.report/1``, several as ``moeprof.reports/1``."""
    if len(results) == 1:
        return dump(results[0].to_dict())
    return dump({"schema": "moeprof.reports/1", "reports": [result.to_dict() for result in results]})


def claims(result: ClaimsResult, exit_code: int) -> str:
    """Return the outcome of written claims as ``moeprof.claims/1``."""
    body = cast("dict[str, JsonValue]", to_json(result))
    return dump({"schema": "moeprof.claims/1", **body, "exit_code": exit_code})


def diff(result: Diff, outcome: Outcome | None = None) -> str:
    """Return a diff as ``moeprof.diff/1``, with the exit code where there is one."""
    extra: dict[str, JsonValue] = {} if outcome is None else {"exit_code": outcome.exit_code}
    return dump({**result.to_dict(), **extra})
