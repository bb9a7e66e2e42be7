"""What formats for CI show of a gate or a diff: one check per rule, with its outcome and how loudly to say it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from moeprof.analyzers.gates.results import GateResult, GateRow
from moeprof.analyzers.results import Diff
from moeprof.findings import Finding
from moeprof.wording import safe, signed

State: TypeAlias = Literal["ok", "failure", "error", "skipped"]
Level: TypeAlias = Literal["error", "warning", "notice"]
LEVELS: tuple[Level, ...] = ("error", "warning", "notice")


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where annotations point to: the baseline file, relative to the repository, and the line of each rule in it."""

    path: str
    lines: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Check:
    """One rule, metric or count.

    Attributes:
        group: ``structure``, ``serving``, ``accuracy``, ``gate``.
        name: Stable between runs: no values.
        state: As JUnit has it.
        word: ``regression``, ``structure``, ``missing``, ``gate``, ``inconclusive``; empty for what is good.
        message: One line.
        level: Of an annotation; None: none.
    """

    group: str
    name: str
    state: State
    word: str
    message: str
    level: Level | None = None


@dataclass(frozen=True, slots=True)
class Checks:
    """All checks of a result, worst first.

    Attributes:
        title: Name of the suite.
        verdict: The last line of the text.
        checks: One per rule.
        properties: Figures for the suite.
        remarks: Findings that annotations show as well.
        anchor: Where annotations point to; None: nowhere.
    """

    title: str
    verdict: str
    checks: tuple[Check, ...]
    properties: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[Check, ...] = ()
    anchor: Anchor | None = None

    def annotations(self) -> list[Check]:
        """Return what is to be said aloud, loudest first, in the order of the checks."""
        said = [check for check in (*self.checks, *self.remarks) if check.level is not None]
        return sorted(said, key=lambda check: LEVELS.index(check.level or "notice"))

    def line(self, name: str) -> int:
        """Return the line of a check in the anchor's file."""
        return 1 if self.anchor is None else self.anchor.lines.get(name, 1)


_GROUPS = {"structure": "structure", "metric": "serving", "accuracy": "accuracy", "pass": "gate", "finding": "gate"}


def checks_of_gate(result: GateResult, words: Collection[str], verdict: str, anchor: Anchor | None = None) -> Checks:
    """Return the checks of a gate.

    Args:
        result: The gate.
        words: Of ``--fail-on``.
        verdict: The closing line.
        anchor: Where annotations point to.
    """
    properties = {}
    for row in result.serving:
        if row.gates:
            for side, values in (("base", row.base), ("candidate", row.candidate)):
                if values.median is not None:
                    properties[f"{row.workload}.{row.metric}.{side}_median"] = repr(values.median)
    return Checks(
        title=f"moeprof gate {safe(result.subject.arm or result.subject.source)}",
        verdict=safe(verdict),
        checks=(*_refusal(result), *(_of_row(row, words) for row in result.rules)),
        properties=properties,
        remarks=_remarks(result.findings, {row.rule for row in result.rules if row.verdict == "fail"}),
        anchor=anchor,
    )


def _refusal(result: GateResult) -> list[Check]:
    """Return an error where nothing was compared: a file without one would look like a good run."""
    if result.refusal is None and result.compared:
        return []
    because = "" if result.refusal is None else f": {safe(result.refusal)}"
    return [Check("gate", "gate/compared", "error", "missing", f"nothing was compared{because}", "error")]


def _of_row(row: GateRow, words: Collection[str]) -> Check:
    failing = row.word is not None and row.word in words
    if row.verdict == "missing":
        state: State = "error"
    elif failing:
        state = "failure"
    elif row.verdict in ("inconclusive", "skipped"):
        state = "skipped"
    else:
        state = "ok"
    level: Level | None = "error" if failing else "warning" if row.word is not None else None
    if row.verdict == "pass" and row.reason == "improved":
        level = "notice"
    prefix = f"{row.verdict}: " if state == "skipped" else ""
    return Check(_GROUPS[row.kind], safe(row.rule), state, row.word or "", f"{prefix}{safe(row.message)}", level)


def _remarks(findings: Sequence[Finding], failed: Collection[str] = ()) -> tuple[Check, ...]:
    """Return the findings that need a second look, but for those that a rule has failed on."""
    shown = dict.fromkeys(
        (finding.slug, finding.message)
        for finding in findings
        if finding.severity != "note" and f"finding/{finding.slug}" not in failed
    )
    return tuple(
        Check("finding", f"finding/{safe(slug)}", "ok", "", safe(message), "warning") for slug, message in shown
    )


def _backends(findings: Sequence[Finding]) -> tuple[Check, ...]:
    """Return the notes that a class runs on another backend: in a diff that is news."""
    found = [finding for finding in findings if finding.slug == "backend-changed"]
    return tuple(Check("finding", f"finding/{item.slug}", "ok", "", safe(item.message), "notice") for item in found)


def checks_of_diff(diff: Diff, words: Collection[str], verdict: str) -> Checks:
    """Return the checks of a diff: metrics that gate, tasks, counts per iteration and pairs, worst first."""
    found = [*_metrics(diff, words), *_tasks(diff, words), *_counts(diff, words)]
    found.sort(
        key=lambda check: (_STATES.index(check.state), 0 if check.level is None else -3 + LEVELS.index(check.level))
    )
    return Checks(
        title=f"moeprof diff {safe(diff.base.arm or diff.base.source)} {safe(diff.candidate.arm or diff.candidate.source)}",
        verdict=safe(verdict),
        checks=tuple(found),
        remarks=(*_remarks(diff.findings), *_backends(diff.findings)),
    )


_STATES: tuple[State, ...] = ("failure", "error", "skipped", "ok")


def _metrics(diff: Diff, words: Collection[str]) -> list[Check]:
    found = []
    for row in diff.serving:
        if not row.gates:
            continue
        what = f"{row.metric} ({row.workload})"
        because = row.label_because or row.reason.replace("_", " ")
        message = f"{what} {signed(row.change)}: {row.verdict.replace('_', ' ')}, {row.label}"
        if row.change is None or row.verdict not in ("regressed", "improved", "unchanged"):
            message = f"{message} ({because})"
        word = {"regressed": "regression", "inconclusive": "inconclusive", "missing": "missing"}.get(row.verdict, "")
        found.append(
            _check("serving", f"metric/{row.workload}/{row.metric}", word, message, words, row.verdict == "improved")
        )
    return found


def _tasks(diff: Diff, words: Collection[str]) -> list[Check]:
    found = []
    for row in diff.accuracy:
        word = {"drop shown": "regression", "cannot tell": "inconclusive"}.get(row.label, "")
        word = "missing" if row.reason == "no_data_candidate" else word
        found.append(_check("accuracy", f"accuracy/{row.task}", word, row.text, words))
    return found


def _counts(diff: Diff, words: Collection[str]) -> list[Check]:
    rows: list[tuple[str, str, int | None, int | None, bool]] = [
        (f"pairs/{kind}", f"{name} per iteration", pair.base, pair.candidate, pair.base != pair.candidate)
        for kind, name, pair in (
            ("ag_rs", "AG/RS pairs", diff.pairs.ag_rs),
            ("moe_gemm", "MoE GEMM pairs", diff.pairs.moe_gemm),
        )
        if pair.base is not None or pair.candidate is not None
    ]
    rows += [
        (
            f"structure/{row.class_}/{row.phase}",
            f"{row.class_} launches in {row.phase}",
            row.base,
            row.candidate,
            row.change not in ("same", None),
        )
        for row in diff.structure
    ]
    found = []
    for name, what, before, after, moved in rows:
        word = "missing" if before is not None and after is None else "structure" if moved else ""
        shown = [("no data" if value is None else str(value)) for value in (before, after)]
        message = f"{what} {shown[0]} -> {shown[1]}" if word else f"{what}: {shown[1]}"
        found.append(_check("structure", name, word, message, words))
    return found


def _check(group: str, name: str, word: str, message: str, words: Collection[str], good: bool = False) -> Check:
    failing = word in words
    state: State = "ok"
    if word == "missing":
        state = "error"
    elif failing:
        state = "failure"
    elif word == "inconclusive":
        state, message = "skipped", f"inconclusive: {message}"
    # Two arms are meant to differ in structure: that is said, and no warning unless somebody asked to fail on it.
    level: Level | None = (
        "error" if failing else "notice" if word == "structure" or good else "warning" if word else None
    )
    return Check(group, safe(name), state, word, safe(message), level)
