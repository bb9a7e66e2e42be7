"""Outcomes of a gate: one row per rule. `missing` is an outcome of its own, and nothing is left out without a word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from moeprof.analyzers.accuracy.results import AccuracyRow
from moeprof.analyzers.environment.results import EnvironmentRow
from moeprof.analyzers.plain import to_json
from moeprof.analyzers.serving.results import ServingRow
from moeprof.findings import Finding, JsonValue

GateVerdict: TypeAlias = Literal["fail", "missing", "inconclusive", "skipped", "pass"]
RuleKind: TypeAlias = Literal["structure", "metric", "accuracy", "pass", "finding"]
#: What ``--fail-on`` calls it.
Word: TypeAlias = Literal["regression", "structure", "missing", "gate", "inconclusive"]

#: Worst first.
VERDICTS: tuple[GateVerdict, ...] = ("fail", "missing", "inconclusive", "skipped", "pass")
#: Classes of launches that a mixture of experts is made of.
_MODEL = ("moe_", "all_", "reduce", "broadcast", "send_recv", "comm_other", "attention", "dense_gemm")
_KINDS: tuple[RuleKind, ...] = ("pass", "metric", "accuracy", "structure", "finding")


@dataclass(frozen=True, slots=True)
class GateRow:
    """The outcome of one rule.

    Attributes:
        rule: Stable name without values: ``structure/all_gather/target``, ``metric/c128/output_throughput`` ...
        kind: What it looks at.
        verdict: The outcome.
        word: What ``--fail-on`` calls it; None for what never fails.
        message: One sentence with the values.
        reason: Why this outcome, in one word or slug.
        base, candidate: The figures; None: no data.
        change: Ratio minus one, for metrics.
        threshold: Change that matters, for metrics.
        label: How far a metric's comparison carries.
        better: Direction, for metrics.
    """

    rule: str
    kind: RuleKind
    verdict: GateVerdict
    message: str
    reason: str
    word: Word | None = None
    base: JsonValue = None
    candidate: JsonValue = None
    change: float | None = None
    threshold: float | None = None
    label: str | None = None
    better: str | None = None


def worst_first(row: GateRow) -> tuple[int, int, int, float, str]:
    """Return the sort key of a row: verdict, kind, what is counted, size of the change beyond its threshold, name."""
    size = abs(row.change) / row.threshold if row.change is not None and row.threshold else 0.0
    if isinstance(row.base, int) and isinstance(row.candidate, int):
        size = float(abs(row.candidate - row.base))
    return VERDICTS.index(row.verdict), _KINDS.index(row.kind), _weight(row.rule), -size, row.rule


def _weight(rule: str) -> int:
    """Return what a reader looks for first: ranks and pairs, backends, MoE and communication, then small operators."""
    kind, _, rest = rule.partition("/")
    if kind in ("pairs", "backend"):
        return ("pairs", "backend").index(kind)
    return 0 if not rest or rest == "ranks" else 2 if rest.startswith(_MODEL) else 3


@dataclass(frozen=True, slots=True)
class GateSubject:
    """What was held against what: an arm of the store (None for a path), what was named, and how many ranks and passes it has."""

    arm: str | None
    source: str
    ranks: int
    passes: int


@dataclass(frozen=True, slots=True)
class GateResult:
    """A gate: `moeprof.gate/1`.

    Attributes:
        subject: What was gated.
        baseline: What it was held against.
        rules: Outcomes, worst first.
        serving, accuracy, environment: The comparisons that they rest on.
        findings: About the run and the comparison.
        compared: Number of rules that held a value against another.
        refusal: Why nothing is to be compared, in a clause; None where nothing is against it.
        accepted: Reason, date and source of the baseline; None where it was measured with the run.
    """

    subject: GateSubject
    baseline: GateSubject
    rules: tuple[GateRow, ...]
    serving: tuple[ServingRow, ...] = ()
    accuracy: tuple[AccuracyRow, ...] = ()
    environment: tuple[EnvironmentRow, ...] = ()
    findings: tuple[Finding, ...] = ()
    compared: int = 0
    refusal: str | None = None
    accepted: Mapping[str, JsonValue] | None = None

    @property
    def verdict(self) -> GateVerdict:
        """Return the worst outcome of all rules that were not skipped; ``inconclusive`` without any."""
        worst = [row.verdict for row in self.rules if row.verdict != "skipped"]
        return min(worst, key=VERDICTS.index, default="inconclusive")

    def happened(self) -> tuple[Word, ...]:
        """Return the words of ``--fail-on`` that are true, in order of the rules."""
        return tuple(dict.fromkeys(row.word for row in self.rules if row.word is not None))

    def count(self, verdict: GateVerdict) -> int:
        """Return how many rules have an outcome."""
        return sum(row.verdict == verdict for row in self.rules)

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the JSON object."""
        body = cast("dict[str, JsonValue]", to_json(self))
        counts: JsonValue = {verdict: self.count(verdict) for verdict in VERDICTS}
        return {"schema": "moeprof.gate/1", **body, "verdict": self.verdict, "counts": counts}
