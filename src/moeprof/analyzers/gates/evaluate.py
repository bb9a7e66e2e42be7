"""Hold a run against a baseline: one outcome per rule."""

from __future__ import annotations

from moeprof.analyzers.accuracy.compare import compare_accuracy
from moeprof.analyzers.accuracy.results import AccuracyRow
from moeprof.analyzers.environment.compare import compare_environment
from moeprof.analyzers.environment.results import EnvironmentRow
from moeprof.analyzers.gates.creep import creep
from moeprof.analyzers.gates.metrics import metric_rows, pass_rows, serving_of
from moeprof.analyzers.gates.observation import Observation
from moeprof.analyzers.gates.results import GateResult, GateRow, GateSubject, GateVerdict, Word, worst_first
from moeprof.analyzers.gates.rules import GateRules
from moeprof.analyzers.gates.structure import structure_rows
from moeprof.findings import Finding, in_order
from moeprof.wording import plural

_DEVICE = "hardware.gpus"


def evaluate(base: Observation, candidate: Observation, rules: GateRules, *, stored: bool = True) -> GateResult:
    """Return the outcome of every rule.

    Args:
        base: The baseline.
        candidate: What is gated.
        rules: What is asked.
        stored: Whether the baseline was accepted earlier, and not measured around the run.
    """
    surroundings = compare_environment(base.runs, candidate.runs, allowed=rules.allow_environment)
    devices = _devices(base, candidate, rules)
    serving = serving_of(base, candidate, rules, stored=stored)
    accuracy = compare_accuracy(base.evaluations, candidate.evaluations, margin=rules.accuracy_margin)
    crept = creep(base.oldest, serving.rows)
    findings = in_order([*candidate.findings, *serving.findings, *crept, *surroundings.findings])
    rows = [
        *structure_rows(base, candidate, rules),
        *metric_rows(serving, rules),
        *pass_rows(candidate),
        *(_accuracy(row) for row in accuracy),
        *_findings(base, findings, rules),
    ]
    refusal = surroundings.obstacle
    if devices is not None and not devices.allowed:
        refusal = refusal or f"the devices differ: {devices.base} against {devices.candidate}"
    return GateResult(
        subject=_subject(candidate),
        baseline=_subject(base),
        rules=tuple(sorted(rows, key=worst_first)),
        serving=serving.rows,
        accuracy=accuracy,
        environment=(*surroundings.rows, *([devices] if devices is not None else [])),
        findings=findings,
        compared=_compared(base, candidate, rows),
        refusal=refusal,
    )


def _compared(base: Observation, candidate: Observation, rows: list[GateRow]) -> int:
    """Return how many rules held something against something. What vanished counts where its kind is there on both sides."""
    both = {
        "structure": base.structure is not None and candidate.structure is not None,
        "metric": bool(base.samples and base.samples.samples and candidate.samples and candidate.samples.samples),
        "accuracy": bool(base.evaluations and candidate.evaluations),
        "pass": candidate.samples is not None,
    }
    held = ("pass", "fail", "inconclusive")
    counted = [row for row in rows if row.kind != "finding" and row.reason != "unlike"]
    return sum(
        row.verdict in held or (row.verdict == "missing" and both[row.kind]) for row in counted if row.kind in both
    )


def _devices(base: Observation, candidate: Observation, rules: GateRules) -> EnvironmentRow | None:
    """Return the row of two traces from different devices, where no run tells more; counts depend on the device."""
    before = None if base.structure is None else base.structure.device
    after = None if candidate.structure is None else candidate.structure.device
    if before is None or after is None or before == after:
        return None
    allowed = any(key == _DEVICE or _DEVICE.startswith(f"{key}.") for key in rules.allow_environment)
    return EnvironmentRow(_DEVICE, before, after, matters=True, between="traces", allowed=allowed)


def _subject(side: Observation) -> GateSubject:
    ranks = 0 if side.structure is None else len(side.structure.ranks)
    return GateSubject(side.arm, side.source, ranks, 0 if side.samples is None else len(side.samples.samples))


def _accuracy(row: AccuracyRow) -> GateRow:
    verdict, word, reason = _judged(row)
    before, after = (None if side is None else side.median for side in (row.base, row.candidate))
    message = row.text if row.noninferiority is None else f"{row.text}; {_margin(row)}"
    return GateRow(f"accuracy/{row.task}", "accuracy", verdict, message, reason, word, before, after)


def _judged(row: AccuracyRow) -> tuple[GateVerdict, Word | None, str]:
    if row.reason == "no_data_candidate":
        return "missing", "missing", row.reason
    if row.reason == "no_data_base":
        return "skipped", None, row.reason
    if row.noninferiority is not None and row.noninferiority.shown and row.reason != "questions_differ":
        return "pass", None, "within_margin"
    if row.label == "drop shown":
        return "fail", "regression", "drop_shown"
    if row.label == "no drop shown" and row.noninferiority is None:
        return "pass", None, "no_drop_shown"
    return "inconclusive", "inconclusive", row.reason if row.label == "cannot tell" else "margin_not_shown"


def _margin(row: AccuracyRow) -> str:
    found = row.noninferiority
    assert found is not None
    said = "shown" if found.shown else "not shown"
    return f"a drop of less than {found.margin * 100:g} points is {said} (p {found.p:.3f}; {plural(found.questions_needed, 'question')} needed)"


def _findings(base: Observation, findings: tuple[Finding, ...], rules: GateRules) -> list[GateRow]:
    known = {finding.slug for finding in base.findings}
    rows = []
    for slug in sorted(set(rules.forbid)):
        found = [finding for finding in findings if finding.slug == slug]
        rule = f"finding/{slug}"
        if not found:
            rows.append(GateRow(rule, "finding", "pass", f"no finding {slug}", "absent"))
        elif slug in known and not rules.strict:
            message = f"{slug}: the baseline carries it too ({found[0].message})"
            rows.append(GateRow(rule, "finding", "skipped", message, "known"))
        else:
            rows.append(GateRow(rule, "finding", "fail", f"{slug}: {found[0].message}", "occurred", "gate"))
    return rows
