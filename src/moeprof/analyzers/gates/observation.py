"""What a gate looks at: the structure of an arm's iterations, its timed passes, evaluations and surroundings.

A baseline is such an observation too, read back from a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from moeprof.analyzers.accuracy.results import Evaluation
from moeprof.analyzers.comparison.sides import PAIR_FIGURES, label, view
from moeprof.analyzers.environment.results import RunRecord
from moeprof.analyzers.results import Report
from moeprof.analyzers.serving.results import ArmSamples
from moeprof.findings import Finding


@dataclass(frozen=True, slots=True)
class Count:
    """A count per iteration: the value that stands for all ranks, and every value seen on any rank; None: no data."""

    value: int | None
    seen: tuple[int, ...]

    @property
    def constant(self) -> bool:
        """Tell whether every iteration of every rank has the value."""
        return self.seen == (self.value,)


ABSENT = Count(0, (0,))


@dataclass(frozen=True, slots=True)
class Structure:
    """What is launched in one iteration.

    Attributes:
        counts_over: Kind of the iterations counted.
        launch_unit: ``kernel`` or ``operator``; None where ranks do not share one.
        device: Names of the devices; None where a trace does not tell.
        ranks: Labels of the ranks that have counts.
        iterations: Least number of iterations counted on a rank; None where it is not known.
        launches: ``class/phase`` to its count.
        pairs: ``ag_rs/target``, ``moe_gemm/per_iteration`` and so on to its count.
        backends: ``class/phase`` to the backends that the rules name, sorted.
    """

    counts_over: str
    launch_unit: str | None
    device: str | None
    ranks: tuple[str, ...]
    iterations: int | None
    launches: Mapping[str, Count]
    pairs: Mapping[str, Count]
    backends: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Observation:
    """What is known of an arm.

    Attributes:
        arm: Name of the arm; None for a path.
        source: What was named.
        structure: None without a trace whose iterations can be counted.
        samples: None without timed passes.
        evaluations: Runs of evaluators.
        runs: What the runs of the store ran on.
        findings: About the trace.
        traced: Whether there is a trace at all.
        oldest: For a baseline, ``point metric`` to the median that was accepted first, where another was accepted since.
    """

    arm: str | None
    source: str
    structure: Structure | None = None
    samples: ArmSamples | None = None
    evaluations: tuple[Evaluation, ...] = ()
    runs: tuple[RunRecord, ...] = ()
    findings: tuple[Finding, ...] = field(default=())
    traced: bool = False
    oldest: Mapping[str, float] = field(default_factory=dict)


def structure_of(report: Report) -> Structure | None:
    """Return the structure of a report; None where nothing was counted per iteration.

    Args:
        report: Of one arm.
    """
    side = view("candidate", report)
    if not side.ranks or side.counts_over is None:
        return None
    units = {rank.launch_unit for rank in side.ranks}
    devices = sorted({rank.device for rank in side.ranks if rank.device is not None})
    counted = [count for _, count in side.iterations.by_rank if count is not None]
    seen: dict[tuple[str, str], set[int]] = {}
    for rank in side.ranks:
        for row in rank.counts:
            seen.setdefault((row.class_, row.phase), set()).update(row.distinct)
    return Structure(
        counts_over=side.counts_over,
        launch_unit=units.pop() if len(units) == 1 else None,
        device=", ".join(devices) or None,
        ranks=tuple(label(rank) for rank in side.ranks),
        iterations=min(counted, default=None),
        launches={
            f"{class_}/{phase}": Count(
                votes.value, tuple(sorted({*seen.get((class_, phase), ()), *_known(votes.by_rank)}))
            )
            for (class_, phase), votes in sorted(side.classes.items())
        },
        pairs={
            f"{kind}/{figure}": Count(votes.value, tuple(sorted({*_known(votes.by_rank)})))
            for kind, figures in PAIR_FIGURES.items()
            for figure in figures
            for votes in (side.pair(kind, figure),)
        },
        backends={f"{class_}/{phase}": names for (class_, phase), names in sorted(side.backends().items()) if names},
    )


def _known(by_rank: tuple[tuple[str, int | None], ...]) -> set[int]:
    return {value for _, value in by_rank if value is not None}
