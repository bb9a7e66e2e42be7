"""The rows of a diff: structure, kernels, pairs and times of two sides, joined from both, nothing dropped."""

from __future__ import annotations

from dataclasses import dataclass

from moeprof.analyzers.comparison.sides import PAIR_FIGURES, ClassKey, PairKind, Side
from moeprof.analyzers.durations import compare as durations
from moeprof.analyzers.medians import median
from moeprof.analyzers.results import Change, KernelRow, PairChange, PairChanges, StructureRow, TimeRow
from moeprof.analyzers.tables import CLASSES, PHASES
from moeprof.wording import duration

METHOD = "median over steady iterations of each rank, median over ranks"
TESTED = "95 % interval: ratio of means, autocorrelation of the iterations allowed for"
NOTE = "within these two captures; not a serving-speed claim"
METRICS: tuple[tuple[str, str | None], ...] = (
    ("wall", None),
    ("gpu_busy", None),
    ("kernel_sum", None),
    ("comm_exposed", None),
    *(("gpu_busy", phase) for phase in PHASES),
)


@dataclass(frozen=True, slots=True)
class BackendChange:
    """The backends of a class in a phase, where the sides differ; empty where the rules name none."""

    class_: str
    phase: str
    base: tuple[str, ...]
    candidate: tuple[str, ...]


def differ(base: int | None, candidate: int | None) -> bool:
    """Tell whether two figures are known and not equal."""
    return base is not None and candidate is not None and base != candidate


def structure_rows(base: Side, candidate: Side) -> tuple[StructureRow, ...]:
    """Return a row for each class and phase of either side, by phase, then class."""
    rows = []
    for key in sorted(base.class_keys() | candidate.class_keys(), key=class_order):
        before, after = base.launches(key), candidate.launches(key)
        rows.append(StructureRow(*key, before, after, _change(before, after)))
    return tuple(rows)


def kernel_rows(base: Side, candidate: Side) -> tuple[KernelRow, ...]:
    """Return a row for each kernel of either side, largest difference of kernel sums first."""
    base_sums, candidate_sums = base.kernel_sums(), candidate.kernel_sums()
    rows = [
        KernelRow(
            *key,
            base.kernel_launches(key),
            candidate.kernel_launches(key),
            base_sums.get(key, 0) if base.ranks else None,
            candidate_sums.get(key, 0) if candidate.ranks else None,
        )
        for key in base.kernel_keys() | candidate.kernel_keys()
    ]
    return tuple(sorted(rows, key=lambda row: (-_distance(row), row.name, row.class_, row.phase)))


def pair_figures(base: Side, candidate: Side) -> dict[tuple[PairKind, str], PairChange]:
    """Return every pair figure of both sides by kind and name."""
    return {
        (kind, figure): PairChange(base.pair(kind, figure).value, candidate.pair(kind, figure).value)
        for kind, figures in PAIR_FIGURES.items()
        for figure in figures
    }


def pair_changes(figures: dict[tuple[PairKind, str], PairChange]) -> PairChanges:
    """Return the pairs per iteration of both sides."""
    return PairChanges(figures["ag_rs", "per_iteration"], figures["moe_gemm", "per_iteration"])


def backend_changes(base: Side, candidate: Side) -> tuple[BackendChange, ...]:
    """Return the classes and phases that both sides launch with different backends."""
    before, after = base.backends(), candidate.backends()
    shared = sorted(before.keys() & after.keys(), key=class_order)
    return tuple(BackendChange(*key, before[key], after[key]) for key in shared if before[key] != after[key])


def time_rows(base: Side, candidate: Side, *, comparable: bool) -> tuple[TimeRow, ...]:
    """Return a row for each time per iteration; without ratios where the sides are not comparable."""
    return tuple(_time_row(base, candidate, metric, phase, comparable=comparable) for metric, phase in METRICS)


def class_order(key: ClassKey) -> tuple[int, str, int, str]:
    """Return the sort key of a class and phase: by phase, then class, in the order of the tables; unknown ones last."""
    class_, phase = key
    return (
        PHASES.index(phase) if phase in PHASES else len(PHASES),
        phase,
        CLASSES.index(class_) if class_ in CLASSES else len(CLASSES),
        class_,
    )


def _change(base: int | None, candidate: int | None) -> Change | None:
    if base is None or candidate is None:
        return None
    if base == candidate:
        return "same"
    if base == 0:
        return "added"
    if candidate == 0:
        return "removed"
    return "more" if candidate > base else "fewer"


def _distance(row: KernelRow) -> int:
    return abs((row.candidate_kernel_sum or 0) - (row.base_kernel_sum or 0))


def _time_row(base: Side, candidate: Side, metric: str, phase: str | None, *, comparable: bool) -> TimeRow:
    medians = {side.name: side.medians(metric, phase) for side in (base, candidate)}
    before, after = (median(value for _, value in values) for values in medians.values())
    notes = [NOTE] if comparable else [NOTE, "the sides are not comparable"]
    if metric == "kernel_sum":
        notes.append("kernel sums contain waiting inside collectives and are no wall-clock saving")
    notes.extend(_apart(name, values) for name, values in medians.items() if _lie_apart(values))
    # A ratio to or from 0 has no inverse, and a comparison must be the same from either side.
    ratio = after / before if comparable and before and after else None
    values = base.steady(metric, phase), candidate.steady(metric, phase)
    test = durations.compare(*values) if comparable else None
    interval = durations.interval(*values) if ratio is not None and test is not None else None
    method = METHOD if interval is None else f"{METHOD}; {TESTED}"
    return TimeRow(metric, phase, before, after, ratio, interval, method, "; ".join(notes), test)


def _lie_apart(values: tuple[tuple[str, int], ...]) -> bool:
    times = [value for _, value in values]
    return len(times) > 1 and 10 * max(times) > 11 * min(times)


def _apart(name: str, values: tuple[tuple[str, int], ...]) -> str:
    return f"{name} by rank: " + ", ".join(f"{rank} {duration(value)}" for rank, value in values)
