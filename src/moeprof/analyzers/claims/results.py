"""The rows of `claims[]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from moeprof.findings import Finding

#: ``sentence``: may be published as it stands; ``not-said``: what these data do not allow; ``check``: a written claim that was verified.
ClaimKind: TypeAlias = Literal["sentence", "not-said", "check"]


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """One sentence about a comparison.

    Attributes:
        text: The sentence.
        label: Of the figures it rests on (``A/B/A complete`` ...); of a check the word ``confirmed``, ``consistent``, ``contradicted``
            or ``no_data``; ``never`` for what is not to be said.
        because: The figures it rests on, or why it is not to be said.
        kind: What sort of sentence it is.
        metric, workload: What it is about; None where it is about no single metric.
        computed: Of a check the values that the raw figures allow, in the unit of the claim (percent of a change).
        fits: Of a check the other ways to read it that fit as well.
    """

    text: str
    label: str
    because: str
    kind: ClaimKind = "sentence"
    metric: str | None = None
    workload: str | None = None
    computed: tuple[float, float] | None = None
    fits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimsResult:
    """The outcome of written claims: `moeprof.claims/1`."""

    base: str
    candidate: str
    claims: tuple[ClaimRow, ...]
    findings: tuple[Finding, ...]
