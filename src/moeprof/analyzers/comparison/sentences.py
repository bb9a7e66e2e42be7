"""The summary of a comparison: sentences with numbers, most important first, right for any two sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from moeprof.analyzers.comparison.differences import BackendChange, class_order, differ
from moeprof.analyzers.comparison.disagreements import backends, iterations_text
from moeprof.analyzers.comparison.sides import PairKind, Side
from moeprof.analyzers.results import KernelRow, PairChange, StructureRow, TimeRow, Verdict
from moeprof.analyzers.tables import COMMUNICATION, PHASES
from moeprof.wording import duration, functions, plural

NAMED = 6  # kernels that a sentence names on each side

_WORDS = {
    "moe_gemm": "MoE GEMM", "moe_fused": "fused MoE", "moe_route": "MoE routing", "moe_act": "MoE activation",
    "moe_combine": "MoE combine", "dense_gemm": "dense GEMM", "kv_cache": "KV cache", "quant": "quantisation",
    "all_gather": "all-gather", "reduce_scatter": "reduce-scatter", "all_reduce": "all-reduce",
    "all_to_all": "all-to-all", "send_recv": "send/receive", "comm_other": "other communication",
}  # fmt: skip
_UNMATCHED: tuple[tuple[PairKind, str, str], ...] = (
    ("ag_rs", "unmatched_ag", "unmatched all-gathers"),
    ("ag_rs", "unmatched_rs", "unmatched reduce-scatters"),
    ("ag_rs", "equivalents", "AG/RS pairs made of Broadcast and Reduce"),
    ("moe_gemm", "unmatched", "unmatched MoE GEMMs"),
)
_TOLD = ("moe_gemm", "moe_fused", "all_gather", "reduce_scatter")


@dataclass(frozen=True, slots=True)
class Material:
    """What the sentences are made of: the sides, the rows of the diff and its verdict.

    `structure` and `kernels` leave out what varies within both arms; `all_kernels` holds every row, for totals.
    """

    base: Side
    candidate: Side
    structure: tuple[StructureRow, ...]
    kernels: tuple[KernelRow, ...]
    all_kernels: tuple[KernelRow, ...]
    pairs: Mapping[tuple[PairKind, str], PairChange]
    backends: tuple[BackendChange, ...]
    times: tuple[TimeRow, ...]
    verdict: Verdict
    why: str | None

    @property
    def phases(self) -> list[str]:
        """Return the phases that occur, in order."""
        return list(dict.fromkeys(row.phase for row in self.structure))

    @property
    def unit(self) -> str:
        """Return what a launch is of: an operator where it is so on both sides, else a kernel."""
        units = {rank.launch_unit for side in (self.base, self.candidate) for rank in side.report.ranks}
        return "operator" if units == {"operator"} else "kernel"


def summarise(material: Material) -> tuple[str, ...]:
    """Return the sentences of a diff."""
    if material.why is not None:
        return (f"not comparable: {material.why}",)
    if material.verdict == "unchanged":
        return (_nothing_changed(material), *_time(material), *_iteration_numbers(material))
    return (
        *_experts(material),
        *_backends(material),
        *_pairs(material),
        *_other_classes(material),
        *_communication(material),
        *_unchanged_phases(material),
        *_came_and_went(material),
        *_other_counts(material),
        *_total(material),
        *_time(material),
        *_iteration_numbers(material),
    )


def _nothing_changed(material: Material) -> str:
    classes = len({row.class_ for row in material.structure})
    kernels = len({row.name for row in material.kernels})
    where = "per iteration" if material.base.ranks else "in the whole windows (no iterations)"
    told = f"{plural(classes, 'class', 'classes')}, {plural(kernels, material.unit)}"
    aside = (
        ""
        if len(material.kernels) == len(material.all_kernels)
        else "; counts that vary within both arms are left aside"
    )
    return f"nothing changed: {told}, equal counts {where}{aside}"


def _experts(material: Material) -> Iterator[str]:
    rows = {(row.class_, row.phase): row for row in material.structure}
    said = False
    for phase in material.phases:
        changes = [
            f"{_word(class_)} launches {row.base} -> {row.candidate}"
            for class_ in ("moe_gemm", "moe_fused")
            if (row := rows.get((class_, phase))) is not None and differ(row.base, row.candidate)
        ]
        pairs = material.pairs.get(("moe_gemm", phase))
        told = _gemm_pairs(pairs, rows.get(("moe_fused", phase)))
        if changes:
            yield f"{phase}: {' and '.join(changes)} per iteration" + (f" ({told})" if told else "")
        elif pairs is not None and differ(pairs.base, pairs.candidate):
            yield f"{phase}: {told} per iteration"
        else:
            continue
        said = True
    whole = material.pairs["moe_gemm", "per_iteration"]
    # Where ranks disagree by phase, the most frequent sum may move and no phase with it.
    if not said and differ(whole.base, whole.candidate):
        yield f"GEMM pairs {_arrow(whole)} per iteration"


def _gemm_pairs(pairs: PairChange | None, fused: StructureRow | None) -> str | None:
    """Say what became of the GEMM pairs: another number, or fused launches in their place (or the reverse)."""
    if pairs is None or pairs.base is None or pairs.candidate is None:
        return None
    before, after = (0, 0) if fused is None else (fused.base or 0, fused.candidate or 0)
    if pairs.base and not before and after and not pairs.candidate:
        return f"{plural(pairs.base, 'GEMM pair')} -> {plural(after, 'fused launch', 'fused launches')}"
    if before and not pairs.base and pairs.candidate and not after:
        return f"{plural(before, 'fused launch', 'fused launches')} -> {plural(pairs.candidate, 'GEMM pair')}"
    return f"GEMM pairs {pairs.base} -> {pairs.candidate}" if pairs.base or pairs.candidate else None


def _backends(material: Material) -> Iterator[str]:
    phases: dict[tuple[str, str], list[str]] = {}
    for change in material.backends:
        arrow = f"{backends(change.base)} -> {backends(change.candidate)}"
        phases.setdefault((change.class_, arrow), []).append(change.phase)
    for class_, arrow in sorted(phases, key=lambda key: (class_order((key[0], "")), key[1])):
        yield f"{_word(class_)} backend: {arrow} ({', '.join(phases[class_, arrow])})"


def _pairs(material: Material) -> Iterator[str]:
    whole = material.pairs["ag_rs", "per_iteration"]
    by_phase = {phase: material.pairs["ag_rs", phase] for phase in PHASES}
    if any(differ(change.base, change.candidate) for change in (whole, *by_phase.values())):
        told = ", ".join(
            f"{phase} {change.base} -> {change.candidate}"
            for phase, change in by_phase.items()
            if change.base or change.candidate
        )
        yield f"AG/RS pairs {_arrow(whole)} per iteration" + (f" ({told})" if told else "")
    for kind, figure, words in _UNMATCHED:
        change = material.pairs[kind, figure]
        if differ(change.base, change.candidate):
            yield f"{words} {_arrow(change)} per iteration"


def _other_classes(material: Material) -> Iterator[str]:
    for phase in material.phases:
        pairs = material.pairs.get(("ag_rs", phase))
        told = _TOLD if pairs is not None and differ(pairs.base, pairs.candidate) else _TOLD[:2]
        changes = [
            f"{_word(row.class_)} {row.base} -> {row.candidate}"
            for row in material.structure
            if row.phase == phase and row.class_ not in told and differ(row.base, row.candidate)
        ]
        if changes:
            yield f"{phase}: {', '.join(changes)} launches per iteration"


def _communication(material: Material) -> Iterator[str]:
    rows = [row for row in material.structure if row.class_ in COMMUNICATION]
    pairs = [change for (kind, _), change in material.pairs.items() if kind == "ag_rs"]
    launches = _sum_by_class(rows)
    if not any(launches.values()) or not (_same(rows) and _same(pairs)):
        return
    told = [f"{launches[class_]} {_word(class_)}" for class_ in COMMUNICATION if launches[class_]]
    whole = material.pairs["ag_rs", "per_iteration"].base
    figures = ", ".join([*([plural(whole, "AG/RS pair")] if whole else []), *told]) + " launches"
    kernels = [row for row in material.kernels if row.class_ in COMMUNICATION]
    word = "unchanged" if _same(kernels) else f"equal counts by other {material.unit}s"
    yield f"communication: {word} ({figures})"


def _unchanged_phases(material: Material) -> Iterator[str]:
    for phase in material.phases:
        rows = [row for row in material.structure if row.phase == phase]
        kernels = [row for row in material.kernels if row.phase == phase]
        every = [row for row in material.all_kernels if row.phase == phase]
        pairs = [change for (_, figure), change in material.pairs.items() if figure == phase]
        if not any(row.base for row in rows) or not (_same(rows) and _same(kernels) and _same(pairs)):
            continue
        launches = _sum_by_class(rows)
        told = [
            plural(launches[class_], f"{_word(class_)} launch", f"{_word(class_)} launches")
            for class_ in ("moe_gemm", "moe_fused")
            if launches[class_]
        ]
        ag_rs = material.pairs.get(("ag_rs", phase))
        if ag_rs is not None and ag_rs.base:
            told.append(plural(ag_rs.base, "AG/RS pair"))
        yield f"{phase}: unchanged ({', '.join(told) or plural(_kernels(every)[0], material.unit)})"


def _came_and_went(material: Material) -> Iterator[str]:
    removed = {row: row.base for row in material.kernels if row.base and row.candidate == 0}
    added = {row: row.candidate for row in material.kernels if row.base == 0 and row.candidate}
    sides = [(removed, "-", "removed"), (added, "+", "added")]
    names = functions(row.name for row in (*removed, *added))
    heads: list[str] = []
    lists: list[str] = []
    for rows, sign, word in sides:
        if rows:
            heads.append(f"{len(rows) if heads else plural(len(rows), material.unit)} {word}")
            lists.append(_named(rows, sign, word, names))
    if heads:
        yield f"{', '.join(heads)}: {'; '.join(lists)}"


def _named(rows: Mapping[KernelRow, int | None], sign: str, word: str, names: Mapping[str, str]) -> str:
    # What other sentences tell goes last: the helpers are the news here.
    ordered = sorted(
        rows,
        key=lambda row: (row.class_ in _TOLD, -(rows[row] or 0), class_order((row.class_, row.phase)), row.name),
    )
    told = [f"{sign}`{names[row.name]}` x{rows[row]} ({row.class_}, {row.phase})" for row in ordered[:NAMED]]
    rest = len(ordered) - NAMED
    return ", ".join([*told, *([f"{rest} more {word}"] if rest > 0 else [])])


def _other_counts(material: Material) -> Iterator[str]:
    rows = [row for row in material.kernels if row.base and row.candidate and row.base != row.candidate]
    rows.sort(
        key=lambda row: (-abs((row.candidate or 0) - (row.base or 0)), class_order((row.class_, row.phase)), row.name)
    )
    if rows:
        names = functions(row.name for row in rows)
        told = [
            f"`{names[row.name]}` {row.base} -> {row.candidate} ({row.class_}, {row.phase})" for row in rows[:NAMED]
        ]
        more = [f"{len(rows) - NAMED} more"] if len(rows) > NAMED else []
        yield f"{plural(len(rows), material.unit)} launched a different number of times: {', '.join([*told, *more])}"


def _total(material: Material) -> Iterator[str]:
    before, after = _kernels(material.all_kernels)
    yield f"{material.unit}s per iteration {before} -> {after}"


def _time(material: Material) -> Iterator[str]:
    wall = next((row for row in material.times if row.metric == "wall"), None)
    if wall is not None and wall.base is not None and wall.candidate is not None:
        change = f"{duration(wall.base)} -> {duration(wall.candidate)}"
        yield f"iteration wall median {change} under the profiler (not a speed claim)"


def _iteration_numbers(material: Material) -> Iterator[str]:
    before, after = iterations_text(material.base), iterations_text(material.candidate)
    if before != after:
        yield f"figures are per iteration: base counts {before} iterations a rank, candidate {after}"


def _kernels(rows: Iterable[KernelRow]) -> tuple[int, int]:
    launches = [(row.base or 0, row.candidate or 0) for row in rows]
    return sum(base for base, _ in launches), sum(candidate for _, candidate in launches)


def _sum_by_class(rows: Iterable[StructureRow]) -> Counter[str]:
    launches: Counter[str] = Counter()
    for row in rows:
        launches[row.class_] += row.base or 0
    return launches


def _same(rows: Iterable[StructureRow | KernelRow | PairChange]) -> bool:
    return all(row.base == row.candidate for row in rows)


def _arrow(change: PairChange) -> str:
    return f"{change.base} -> {change.candidate}"


def _word(class_: str) -> str:
    return _WORDS.get(class_, class_)
