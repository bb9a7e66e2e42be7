"""A finding: something about the data that a reader of the result must know. Warnings are data, never log lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "note"]
JsonValue: TypeAlias = "None | bool | int | float | str | list[JsonValue] | dict[str, JsonValue]"

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class Finding:
    """State one fact about the input or a result.

    Attributes:
        slug: Stable, documented identifier in kebab case.
        severity: ``error`` (figures cannot be relied on), ``warning`` (they need a second look), ``note``.
        message: One sentence for a person, with the numbers in it.
        rank: Key of the rank it is about, or None when it is about the whole trace.
        evidence: The figures behind the message; times are integer ns and their keys end in ``_ns``.
    """

    slug: str
    severity: Severity
    message: str
    rank: str | None = None
    evidence: Mapping[str, JsonValue] = field(default_factory=dict)

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the finding as the JSON object of the contract."""
        return {
            "slug": self.slug,
            "severity": self.severity,
            "rank": self.rank,
            "message": self.message,
            "evidence": dict(self.evidence),
        }


def order(finding: Finding) -> tuple[int, str, str, str]:
    """Return the sort key of a finding: worst first, then slug, rank and message."""
    return SEVERITIES.index(finding.severity), finding.slug, finding.rank or "", finding.message


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings worst first, ties by their evidence."""
    return tuple(sorted(findings, key=lambda found: (order(found), json.dumps(found.to_dict(), sort_keys=True))))
