"""The pages of a gate, of its self-test, and of a baseline: what is wrong first."""

from __future__ import annotations

from collections.abc import Mapping

from moeprof.analyzers.gates.observation import Observation
from moeprof.analyzers.gates.results import VERDICTS, GateResult, GateRow, GateSubject, GateVerdict
from moeprof.analyzers.gates.self_test import SelfTest
from moeprof.findings import JsonValue
from moeprof.reports.document import Block, Column, Lines, Page, Section, Table, Tone
from moeprof.reports.environment import environment_sections
from moeprof.reports.finding_lines import findings_section
from moeprof.reports.names import short_ranks
from moeprof.reports.outcome import Outcome
from moeprof.reports.serving import serving_sections
from moeprof.reports.units import NO_DATA
from moeprof.wording import listed, plural, rounded, safe

_TITLES: dict[GateVerdict, str] = {
    "fail": "Failed",
    "missing": "Missing",
    "inconclusive": "Inconclusive",
    "skipped": "Skipped",
    "pass": "Passed",
}
_TONES: dict[GateVerdict, Tone] = {"pass": "good", "fail": "bad", "missing": "bad"}
_ALWAYS = ("fail", "missing", "inconclusive")
_SHOWN = 40


def closing(result: GateResult, outcome: Outcome) -> str:
    """Return the last line: the verdict, how often each outcome came, and why the code is what it is."""
    counts = ", ".join(f"{result.count(verdict)} {verdict}" for verdict in VERDICTS if result.count(verdict))
    return f"verdict: {result.verdict} ({counts or 'no rule applied'}); {outcome.line}"


def gate_page(result: GateResult, outcome: Outcome, *, wide: bool = False, one_table: bool = False) -> Page:
    """Return the page of a gate.

    Args:
        result: What to show.
        outcome: The exit code and why.
        wide: Fold nothing.
        one_table: Let a table be as wide as it is.
    """
    keys = sorted({finding.rank for finding in result.findings if finding.rank is not None})
    labels: dict[str | None, str] = dict(zip(keys, short_ranks(keys), strict=True))
    sections = [
        *(_outcomes(result, verdict) for verdict in VERDICTS if verdict in _ALWAYS and result.count(verdict)),
        *serving_sections(result.serving, wide=wide, one_table=one_table),
        *environment_sections(result.environment, wide=wide),
        *(_rest(result, verdict, wide=wide) for verdict in ("skipped", "pass") if result.count(verdict)),
        findings_section(result.findings, labels, wide=wide),
    ]
    facts = [("run", _subject(result.subject)), ("baseline", _subject(result.baseline))]
    if result.accepted is not None:
        facts.append(("accepted", _accepted(result.accepted)))
    return Page(
        "moeprof gate", tuple(facts), tuple(sections), closing(result, outcome), _TONES.get(result.verdict, "look")
    )


def _subject(subject: GateSubject) -> str:
    arm = "" if subject.arm is None else f"{safe(subject.arm)}: "
    held = [plural(subject.ranks, "rank")] if subject.ranks else []
    held += [plural(subject.passes, "pass", "passes")] if subject.passes else []
    return f"{arm}{safe(subject.source)} ({', '.join(held) or 'no trace, no passes'})"


def _accepted(accepted: Mapping[str, JsonValue]) -> str:
    date = accepted.get("date")
    return safe(f"{date or 'no date'}: {accepted.get('reason')}")


def _outcomes(result: GateResult, verdict: GateVerdict) -> Section:
    rows = [row for row in result.rules if row.verdict == verdict]
    lines = [_line(row) for row in rows[:_SHOWN]]
    if len(rows) > _SHOWN:
        lines.append(f"{len(rows) - _SHOWN} more ({'--format json'} lists them)")
    return Section(_TITLES[verdict], (Lines(tuple(lines), bullets=True),))


def _line(row: GateRow) -> str:
    word = "" if row.word is None or row.word == row.verdict else f"{row.word}: "
    return f"{word}{safe(row.message)} [{safe(row.rule)}]"


def _rest(result: GateResult, verdict: GateVerdict, *, wide: bool) -> Section:
    rows = [row for row in result.rules if row.verdict == verdict]
    if wide:
        return Section(_TITLES[verdict], (Lines(tuple(_line(row) for row in rows), bullets=True),), long=True)
    kinds = {kind: sum(row.kind == kind for row in rows) for kind in dict.fromkeys(row.kind for row in rows)}
    told = ", ".join(f"{count} of {kind}" for kind, count in kinds.items())
    blocks: tuple[Block, ...] = (Lines((f"{plural(len(rows), 'rule')}: {told} (--wide lists them)",)),)
    if verdict == "skipped":
        blocks = (Lines(tuple(_line(row) for row in rows[:_SHOWN]), bullets=True),)
    return Section(_TITLES[verdict], blocks)


def self_test_page(result: SelfTest, exit_code: int) -> Page:
    """Return the page of a self-test: a table of faults, and how little of a worsening each metric's gate sees."""
    faults = Table(
        (Column("fault"), Column("seen", "change"), Column("because")),
        tuple(
            (safe(trial.fault), _seen(trial.caught, trial.must_fire), safe(trial.because)) for trial in result.trials
        ),
    )
    sections = [Section("Injected faults", (faults,))]
    if result.reach:
        reach = Table(
            (
                Column("metric"),
                Column("workload"),
                Column("threshold", "number"),
                Column("least worsening that fires", "number"),
            ),
            tuple(
                (
                    safe(row.metric),
                    safe(row.workload),
                    f"{row.threshold * 100:g} %",
                    "none" if row.least is None else f"{row.least * 100:.1f} %",
                )
                for row in result.reach
            ),
            ("with the passes of the baseline as they are, every pass made worse alike",),
        )
        sections.append(Section("Reach", (reach,)))
    missed = len(result.missed)
    said = (
        f"every fault was seen ({len(result.trials)} trials)"
        if not missed
        else f"{missed} of {len(result.trials)} trials went wrong"
    )
    return Page(
        "moeprof gate --self-test",
        (("on", safe(result.source)),),
        tuple(sections),
        f"self-test: {said}; exit {exit_code}",
        "bad" if missed else "good",
    )


def _seen(caught: bool, must_fire: bool) -> str:
    if must_fire:
        return "yes" if caught else "MISSED"
    return "FALSE ALARM" if caught else "no alarm"


def baseline_page(path: str, arms: Mapping[str, Mapping[str, JsonValue]], found: Mapping[str, Observation]) -> Page:
    """Return the page of a baseline file: per arm what was accepted, its figures and its history."""
    sections = [_arm(name, arms[name], found[name]) for name in found]
    return Page("moeprof baseline", (("file", safe(path)), ("arms", str(len(found)))), tuple(sections))


def _arm(name: str, value: Mapping[str, JsonValue], found: Observation) -> Section:
    accepted = value.get("accepted")
    lines = [f"accepted {_accepted(accepted)} (from {safe(found.source)})"] if isinstance(accepted, dict) else []
    structure = found.structure
    if structure is not None:
        pairs = [
            f"{key.partition('/')[0]} {count.value}"
            for key, count in structure.pairs.items()
            if key.endswith("per_iteration")
        ]
        over = f"{plural(len(structure.launches), 'count')} over {structure.counts_over} iterations"
        lines.append(
            f"structure: {plural(len(structure.ranks), 'rank')}, {over}; pairs per iteration: {listed(pairs)}; device {structure.device or NO_DATA}"
        )
    history = value.get("history")
    for entry in history if isinstance(history, list) else []:
        if isinstance(entry, dict):
            lines.append(f"before: {safe(str(entry.get('what')))} accepted {_accepted(entry)}")
    blocks: list[Block] = [Lines(tuple(lines), bullets=True)]
    if found.samples is not None:
        blocks.append(_passes(found))
    return Section(safe(name), tuple(blocks))


def _passes(found: Observation) -> Table:
    assert found.samples is not None
    values: dict[tuple[str, str], list[float]] = {}
    for sample in found.samples.samples:
        for metric, value in sample.values.items():
            values.setdefault((sample.workload.point, metric), []).append(value)
    rows = tuple(
        (safe(metric), safe(point), str(len(found_)), ", ".join(rounded(value) for value in found_))
        for (point, metric), found_ in sorted(values.items())
    )
    return Table((Column("metric"), Column("workload"), Column("n", "number"), Column("values by pass")), rows)
