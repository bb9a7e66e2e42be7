"""The page of a diff: the summary first, then structure, pairs, times, kernels, findings and the verdict."""

from __future__ import annotations

from collections.abc import Sequence

from moeprof.analyzers.results import Diff, DiffSubject, KernelRow, StructureRow
from moeprof.reports.accuracy import accuracy_sections
from moeprof.reports.claims import claim_sections
from moeprof.reports.document import Column, Lines, Page, Section, Table, Tone
from moeprof.reports.environment import environment_sections
from moeprof.reports.finding_lines import findings_section
from moeprof.reports.kernel_metrics import kernel_metrics_sections
from moeprof.reports.layers import explanation_sections
from moeprof.reports.names import short_ranks
from moeprof.reports.outcome import Outcome
from moeprof.reports.serving import serving_sections
from moeprof.reports.time_comparison import kernel_times_section, times_section
from moeprof.reports.units import count, difference, milliseconds
from moeprof.reports.waterfall import waterfall_section
from moeprof.wording import plural, safe

_KERNELS_SHOWN = 15
_TONES: dict[str, Tone] = {
    "unchanged": "good",
    "improved": "good",
    "changed": "look",
    "inconclusive": "look",
    "regressed": "bad",
    "not_comparable": "bad",
}


def diff_page(
    diff: Diff, outcome: Outcome | None = None, *, wide: bool = False, one_table: bool = False, explain: bool = False
) -> Page:
    """Return the page of a diff.

    Args:
        diff: What to show.
        outcome: The exit code and why, for the last line.
        wide: Fold nothing.
        explain: Say what became of the folded structure.
        one_table: Let a table be as wide as it is, for formats without a limit.
    """
    sections = [
        Section("Summary", (Lines(tuple(safe(line) for line in diff.summary) or ("nothing to say",), bullets=True),)),
        *serving_sections(diff.serving, wide=wide, one_table=one_table),
        *accuracy_sections(diff.accuracy),
        *(_of_traces(diff, wide=wide, explain=explain) if diff.base.ranks and diff.candidate.ranks else ()),
        *kernel_metrics_sections(diff.kernel_metrics),
        *environment_sections(diff.environment, wide=wide),
        *claim_sections(diff.claims),
        findings_section(diff.findings, _labels(diff), wide=wide),
    ]
    facts = (("base", _subject(diff.base)), ("candidate", _subject(diff.candidate)))
    return Page("moeprof diff", facts, tuple(sections), _closing(diff, outcome), _TONES[diff.verdict])


def _of_traces(diff: Diff, *, wide: bool, explain: bool) -> tuple[Section, ...]:
    return (
        *(explanation_sections(diff.layers, diff.layer_notes, wide=wide) if explain else ()),
        _structure(diff.structure, wide=wide),
        _pairs(diff),
        times_section(diff.time, wide=wide),
        *waterfall_section(diff.waterfall, wide=wide),
        _kernels(diff.kernels, _unit(diff), wide=wide),
        *kernel_times_section(diff.kernel_times, _unit(diff), wide=wide),
    )


def _labels(diff: Diff) -> dict[str | None, str]:
    """Return short labels for the ranks that findings are about."""
    keys = sorted({finding.rank for finding in diff.findings if finding.rank is not None})
    return dict(zip(keys, short_ranks(keys), strict=True))


def _subject(subject: DiffSubject) -> str:
    arm = "" if subject.arm is None else f"{safe(subject.arm)}: "
    runs = "" if subject.runs == 1 else f", {plural(subject.runs, 'run')}"
    ranks = plural(subject.ranks, "rank") if subject.ranks else "no trace"
    return f"{arm}{safe(subject.source)} ({ranks}{runs})"


def _closing(diff: Diff, outcome: Outcome | None) -> str:
    verdict = f"verdict: {diff.verdict}{_counted(diff)}"
    return verdict if outcome is None else f"{verdict}; {outcome.line}"


def _counted(diff: Diff) -> str:
    """Return which metrics made a bad verdict, and how many have each."""
    words = [row.verdict for row in diff.serving if row.gates]
    if not words:
        return ""
    named = [row.metric for row in diff.serving if row.gates and row.verdict == diff.verdict]
    names = f" ({', '.join(safe(name) for name in dict.fromkeys(named))})" if named else ""
    counts = ", ".join(f"{words.count(word)} {word.replace('_', ' ')}" for word in sorted(set(words)))
    return f"{names}; metrics: {counts}"


def _structure(structure: Sequence[StructureRow], *, wide: bool) -> Section:
    title = "Launches per iteration"
    shown = [row for row in structure if wide or row.change != "same"]
    same = len(structure) - len(shown)
    if not structure:
        return Section(title, (Lines(("no data",)),))
    if not shown:
        return Section(title, (Lines((f"all {plural(same, 'row')} unchanged (--wide shows them)",)),))
    rows = tuple(
        (row.class_, row.phase, count(row.base), count(row.candidate), _delta(row), row.change or "no data")
        for row in shown
    )
    columns = (
        Column("class"),
        Column("phase"),
        Column("base", "number"),
        Column("candidate", "number"),
        Column("by", "number"),
        Column("change", "change"),
    )
    notes = (f"{plural(same, 'row')} unchanged (--wide shows them)",) if same else ()
    return Section(title, (Table(columns, rows, notes),))


def _delta(row: StructureRow) -> str:
    return "0" if row.change == "same" else difference(row.base, row.candidate)


def _pairs(diff: Diff) -> Section:
    pairs = diff.pairs
    rows = tuple(
        (name, count(pair.base), count(pair.candidate), difference(pair.base, pair.candidate))
        for name, pair in (("AG/RS (dispatch, combine)", pairs.ag_rs), ("MoE GEMM (w13, w2)", pairs.moe_gemm))
    )
    columns = (Column("pairs"), Column("base", "number"), Column("candidate", "number"), Column("by", "number"))
    return Section("Pairs per iteration", (Table(columns, rows),))


def _unit(diff: Diff) -> str:
    return "operator" if diff.base.launch_unit == diff.candidate.launch_unit == "operator" else "kernel"


def _kernels(kernels: Sequence[KernelRow], unit: str, *, wide: bool) -> Section:
    title = f"{unit.capitalize()}s that came, went or changed in number"
    moved = [row for row in kernels if row.base != row.candidate]
    ordered = sorted(moved, key=lambda row: (-_largest(row), row.class_, row.phase, row.name))
    shown = ordered if wide else ordered[:_KERNELS_SHOWN]
    if not shown:
        return Section(title, (Lines(("none",)),))
    rows = tuple(
        (
            count(row.base),
            count(row.candidate),
            milliseconds(row.base_kernel_sum),
            milliseconds(row.candidate_kernel_sum),
            row.class_,
            row.phase,
            row.name,
        )
        for row in shown
    )
    columns = (
        Column("base", "number"),
        Column("cand.", "number"),
        Column("base ms", "number"),
        Column("cand. ms", "number"),
        Column("class"),
        Column("phase"),
        Column(unit, "name"),
    )
    notes = [f"launches and {unit} sum per iteration; a difference of {unit} sums is not a saving of time"]
    if len(shown) < len(ordered):
        notes.append(f"{plural(len(ordered) - len(shown), f'more {unit}')} (--wide shows them)")
    return Section(title, (Table(columns, rows, tuple(notes)),), long=True)


def _largest(row: KernelRow) -> int:
    return max(row.base_kernel_sum or 0, row.candidate_kernel_sum or 0)
