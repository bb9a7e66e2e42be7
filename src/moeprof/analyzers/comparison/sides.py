"""One side of a comparison: what the ranks of a report say together, per iteration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypeVar, cast

from moeprof.analyzers.commonest import commonest_kind
from moeprof.analyzers.comparison.votes import Votes, standing_rank
from moeprof.analyzers.results import PerIterationTimes, RankReport, Report, Spread

SideName: TypeAlias = Literal["base", "candidate"]
PairKind: TypeAlias = Literal["ag_rs", "moe_gemm"]
ClassKey: TypeAlias = tuple[str, str]  # class, phase
KernelKey: TypeAlias = tuple[str, str, str]  # name, class, phase

#: The pair figures that hold per iteration, by kind.
PAIR_FIGURES: dict[PairKind, tuple[str, ...]] = {
    "ag_rs": ("per_iteration", "target", "draft", "sample", "unmatched_ag", "unmatched_rs", "equivalents"),
    "moe_gemm": ("per_iteration", "target", "draft", "sample", "unmatched"),
}
_GRAPH_LEVEL = "graph-level-capture"

Key = TypeVar("Key", ClassKey, KernelKey)


@dataclass(frozen=True, slots=True)
class Side:
    """A report seen as one side.

    Attributes:
        name: Which side.
        report: The whole report.
        ranks: The ranks with counts per iteration of the kind `counts_over`, by label; empty where there is none.
        counts_over: The kind most ranks count over; None without such ranks.
        iterations: Iterations counted, by rank label.
        classes: Launches per iteration of each class and phase.
        kernels: The same by full kernel name.
        standing: Label of the rank whose values stand for the side where the ranks' are equally frequent; None without ranks.
    """

    name: SideName
    report: Report
    ranks: tuple[RankReport, ...]
    counts_over: str | None
    iterations: Votes
    classes: Mapping[ClassKey, Votes]
    kernels: Mapping[KernelKey, Votes]
    standing: str | None = None

    def launches(self, key: ClassKey) -> int | None:
        """Return a class's launches per iteration: 0 where the class is absent, None where nothing was counted."""
        return _value(self, self.classes.get(key))

    def kernel_launches(self, key: KernelKey) -> int | None:
        """Return a kernel's launches per iteration: 0 where it is absent, None where nothing was counted."""
        return _value(self, self.kernels.get(key))

    def kernel_sums(self) -> dict[KernelKey, int | None]:
        """Return the kernel sum per iteration of each kernel: over all ranks, divided by all their iterations."""
        sums: Counter[KernelKey] = Counter()
        for rank in self.ranks:
            for row in rank.kernels:
                sums[row.name, row.class_, row.phase] += row.kernel_sum
        counted = [count for _, count in self.iterations.by_rank]
        if not counted or None in counted:
            return dict.fromkeys(sums)
        iterations = sum(cast("list[int]", counted))
        return {key: _divide(total, iterations) for key, total in sums.items()}

    def pair(self, kind: PairKind, figure: str) -> Votes:
        """Return one pair figure by rank."""
        by_rank = tuple(
            (label(rank), cast("int | None", getattr(getattr(rank.pairs, kind), figure))) for rank in self.ranks
        )
        return Votes(by_rank, self.standing)

    def steady(self, metric: str, phase: str | None) -> tuple[tuple[int, ...], ...]:
        """Return a time of every steady iteration, by rank; empty where a rank carries no values iteration by iteration."""
        name = f"{metric if phase is None else phase}_ns"
        series = [rank.series.times for rank in self.ranks if rank.series is not None]
        if len(series) < len(self.ranks):
            return ()
        return tuple(tuple(times.filter(~times["transient"])[name].drop_nulls().to_list()) for times in series)

    def medians(self, metric: str, phase: str | None) -> tuple[tuple[str, int], ...]:
        """Return the median of a time over steady iterations, by rank label; ranks without it are left out."""
        spreads = ((label(rank), _spread(rank.per_iteration_ns, metric, phase)) for rank in self.ranks)
        return tuple((name, spread.median) for name, spread in spreads if spread is not None)

    def backends(self) -> dict[ClassKey, tuple[str, ...]]:
        """Return the backends that each class and phase with launches uses, sorted; empty where rules name none."""
        found: dict[ClassKey, set[str]] = {}
        for rank in self.ranks:
            for row in rank.kernels:
                if row.total > 0:
                    names = found.setdefault((row.class_, row.phase), set())
                    names.update(() if row.backend is None else (row.backend,))
        return {key: tuple(sorted(names)) for key, names in found.items()}

    def class_keys(self) -> set[ClassKey]:
        """Return the classes and phases seen; those of all ranks where nothing was counted per iteration."""
        return {(row.class_, row.phase) for rank in self.ranks or self.report.ranks for row in rank.counts}

    def kernel_keys(self) -> set[KernelKey]:
        """Return the kernels seen; those of all ranks where nothing was counted per iteration."""
        return {(row.name, row.class_, row.phase) for rank in self.ranks or self.report.ranks for row in rank.kernels}


def view(name: SideName, report: Report) -> Side:
    """Return a report as one side of a comparison."""
    usable = [rank for rank in report.ranks if _has_counts(rank, report)]
    counts_over = commonest_kind(cast(str, rank.counts_over) for rank in usable)
    ranks = tuple(sorted((rank for rank in usable if rank.counts_over == counts_over), key=label))
    classes = {label(rank): {(row.class_, row.phase): row.per_iteration for row in rank.counts} for rank in ranks}
    kernels = {
        label(rank): {(row.name, row.class_, row.phase): row.per_iteration for row in rank.kernels} for rank in ranks
    }
    side = Side(
        name=name,
        report=report,
        ranks=ranks,
        counts_over=counts_over,
        iterations=Votes(tuple((label(rank), counted_iterations(rank)) for rank in ranks)),
        classes=_votes(classes),
        kernels=_votes(kernels),
    )
    pairs = [side.pair(kind, figure) for kind, figures in PAIR_FIGURES.items() for figure in figures]
    standing = standing_rank((*side.classes.values(), *side.kernels.values(), *pairs))
    decided = {key: replace(votes, standing=standing) for key, votes in side.classes.items()}
    by_kernel = {key: replace(votes, standing=standing) for key, votes in side.kernels.items()}
    return replace(side, classes=decided, kernels=by_kernel, standing=standing)


def label(rank: RankReport) -> str:
    """Return what a rank is called in evidence: its key, else its file."""
    return rank.rank if rank.rank is not None else rank.source


def counted_iterations(rank: RankReport) -> int | None:
    """Return how many iterations a rank's counts are taken over; 0 without any, None where the report cannot tell."""
    iterations = rank.iterations
    if rank.counts_over is None:
        return 0
    if iterations.counted is not None:
        return iterations.counted
    for row in rank.counts:
        if row.constant and row.per_iteration:
            return row.total // row.per_iteration
    if rank.counts_over == "all":
        return iterations.total - iterations.partial
    # Which kind the partial iterations have is not on record.
    return cast("int | None", getattr(iterations, rank.counts_over, None)) if iterations.partial == 0 else None


def window_totals(report: Report) -> dict[tuple[str, ...], int]:
    """Return launches of the whole window over all ranks, by class and phase and by kernel."""
    totals: Counter[tuple[str, ...]] = Counter()
    for rank in report.ranks:
        for row in rank.counts:
            totals[row.class_, row.phase] += row.total
        for kernel in rank.kernels:
            totals[kernel.name, kernel.class_, kernel.phase] += kernel.total
    return {key: total for key, total in totals.items() if total}


def _has_counts(rank: RankReport, report: Report) -> bool:
    graph_level = any(found.slug == _GRAPH_LEVEL and found.rank in (None, rank.rank) for found in report.findings)
    return (
        not graph_level and counted_iterations(rank) != 0 and any(row.per_iteration is not None for row in rank.counts)
    )


def _votes(by_rank: Mapping[str, Mapping[Key, int | None]]) -> dict[Key, Votes]:
    keys = {key for counts in by_rank.values() for key in counts}
    return {key: Votes(tuple((name, counts.get(key, 0)) for name, counts in by_rank.items())) for key in keys}


def _value(side: Side, votes: Votes | None) -> int | None:
    if not side.ranks:
        return None
    return 0 if votes is None else votes.value


def _spread(times: PerIterationTimes, metric: str, phase: str | None) -> Spread | None:
    holder = times if phase is None else times.phases
    return cast("Spread | None", getattr(holder, metric if phase is None else phase))


def _divide(total: int, count: int) -> int:
    quotient, rest = divmod(total, count)
    return quotient + (2 * rest > count or (2 * rest == count and quotient % 2 == 1))
