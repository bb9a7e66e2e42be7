"""GitLab's code quality report: a JSON array with one entry for each check that is not good."""

from __future__ import annotations

import hashlib
import json

from moeprof.reports.checks import Check, Checks

_SEVERITIES = {"gate": "critical", "inconclusive": "info"}
_FILE = "moeprof-baseline.json"


def render(found: Checks) -> str:
    """Return the report; an empty array where all is good. A fingerprint holds no values: the same issue keeps it."""
    entries = [_entry(found, check) for check in found.checks if check.word]
    return json.dumps(entries, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _entry(found: Checks, check: Check) -> dict[str, object]:
    path = _FILE if found.anchor is None else found.anchor.path
    said = f"{found.title}\n{check.name}\n{check.word}"
    return {
        "check_name": f"moeprof/{check.word}",
        "description": check.message,
        "fingerprint": hashlib.sha256(said.encode()).hexdigest(),
        "location": {"path": path.removeprefix("./"), "lines": {"begin": found.line(check.name)}},
        "severity": _SEVERITIES.get(check.word, "major"),
    }
