"""The results: frozen dataclasses that say exactly what `moeprof.report/1` and `moeprof.diff/1` hold.

None means "no data" everywhere; it is never the same as 0. Times are integer ns. ``to_dict`` gives the JSON object.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from moeprof.analyzers.accuracy.results import AccuracyRow
from moeprof.analyzers.claims.results import ClaimRow
from moeprof.analyzers.durations.results import DurationTest, KernelTimeRow
from moeprof.analyzers.environment.results import EnvironmentRow
from moeprof.analyzers.kernel_metrics.results import LayerChange
from moeprof.analyzers.layers.results import LayerRow, SequenceChange
from moeprof.analyzers.plain import to_json
from moeprof.analyzers.serving.results import ServingRow
from moeprof.findings import Finding, JsonValue

if TYPE_CHECKING:
    from moeprof.analyzers.collectives.results import Collectives
    from moeprof.analyzers.series import Series
    from moeprof.analyzers.timeline.results import RankTimeline, Waterfall

Verdict: TypeAlias = Literal["unchanged", "changed", "improved", "regressed", "inconclusive", "not_comparable"]
Change: TypeAlias = Literal["added", "removed", "more", "fewer", "same"]
LaunchUnit: TypeAlias = Literal["kernel", "operator"]


@dataclass(frozen=True, slots=True)
class Subject:
    """What was reported on: an arm of the store (None for a path) and the source, a path as named or a stored run's name."""

    arm: str | None
    source: str


@dataclass(frozen=True, slots=True)
class IterationCounts:
    """How many iterations of each kind; kinds are None for marker families that carry none.

    `counted` are those that counts are taken over; None where whoever built the report does not say.
    """

    marker: str | None
    total: int
    decode: int | None
    prefill: int | None
    mixed: int | None
    idle: int | None
    partial: int
    counted: int | None = None


@dataclass(frozen=True, slots=True)
class ClassCount:
    """Launches of one class in one phase over the iterations counted."""

    class_: str
    phase: str
    total: int
    per_iteration: int | None
    constant: bool | None
    distinct: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KernelCount:
    """Launches of one kernel (operator on a CPU-only trace) by full name, class and phase; kernel_sum in ns over `total`."""

    name: str
    class_: str
    phase: str
    backend: str | None
    total: int
    per_iteration: int | None
    kernel_sum: int


@dataclass(frozen=True, slots=True)
class AgRsPairs:
    """Dispatch/combine pairs. All but `total` are per iteration (the commonest value); None without iterations.

    All are None where whole graphs were recorded.
    """

    target: int | None
    draft: int | None
    sample: int | None
    per_iteration: int | None
    total: int | None
    unmatched_ag: int | None
    unmatched_rs: int | None
    equivalents: int | None
    constant: bool | None


@dataclass(frozen=True, slots=True)
class GemmPairs:
    """Expert GEMM pairs (w13, w2); an operator that does both is one pair. `sample` normally 0."""

    target: int | None
    draft: int | None
    sample: int | None
    per_iteration: int | None
    total: int | None
    unmatched: int | None
    constant: bool | None


@dataclass(frozen=True, slots=True)
class Pairs:
    """Both kinds of pairs."""

    ag_rs: AgRsPairs
    moe_gemm: GemmPairs


@dataclass(frozen=True, slots=True)
class TimeTotals:
    """Times of the whole trace in ns, each per device and added over devices (wall over all); None without device rows."""

    kernel_sum: int | None
    kernel_busy: int | None
    gpu_busy: int | None
    wall: int | None
    compute_busy: int | None
    comm_busy: int | None
    comm_exposed: int | None
    idle: int | None


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, least and greatest of a per-iteration time in ns. A median between two values is rounded down."""

    median: int
    min: int
    max: int


@dataclass(frozen=True, slots=True)
class PhaseTimes:
    """GPU busy per phase."""

    target: Spread | None
    draft: Spread | None
    sample: Spread | None


@dataclass(frozen=True, slots=True)
class PerIterationTimes:
    """Times per iteration over `iterations` steady iterations (complete, of the kind counted, no start transient).

    `wall_iterations` are those of them that a marker follows; None where whoever built the report does not say.
    """

    iterations: int
    wall: Spread | None
    gpu_busy: Spread | None
    kernel_sum: Spread | None
    comm_exposed: Spread | None
    phases: PhaseTimes
    wall_iterations: int | None = None


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the device rows the figures cover. Kernels only (no memcpy), except where the name says otherwise.

    `outside_iterations` is None where no marker family makes iterations. `graph_replays` are whole graphs that were
    recorded in place of their kernels.
    """

    kernels: int
    linked: int
    unlinked: int
    outside_iterations: int | None
    unclassified_launches: int
    unclassified_time_share: float | None
    invalid: int
    graph_replays: int = field(default=0, metadata={"json": False})


@dataclass(frozen=True, slots=True)
class RankReport:
    """Everything about one rank. `launch_unit` is what its launches are: kernels, or operators of a CPU-only trace.

    `timeline` is None unless it was asked for. `series` holds the values behind the medians, iteration by iteration, as tables: for comparisons and for Python, not in the JSON.
    """

    rank: str | None
    source: str
    device: str | None
    launch_unit: LaunchUnit
    iterations: IterationCounts
    counts_over: str | None
    counts: tuple[ClassCount, ...]
    kernels: tuple[KernelCount, ...]
    pairs: Pairs
    time_ns: TimeTotals
    per_iteration_ns: PerIterationTimes
    layers: tuple[LayerRow, ...]
    coverage: Coverage
    timeline: RankTimeline | None = None
    series: Series | None = field(default=None, compare=False, repr=False, metadata={"json": False})


@dataclass(frozen=True, slots=True)
class Skew:
    """Collectives matched across ranks by order: spread of arrivals and of ends, in ns, absolute times."""

    matched: int
    arrival_ns: Spread
    end_ns: Spread
    last_arrivals: dict[str, int]  # rank key -> how often it arrived last


@dataclass(frozen=True, slots=True)
class RankDifference:
    """One figure that is not the same on all ranks."""

    what: str
    values: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class AcrossRanks:
    """Whether the ranks agree; `agree` is None for a single rank. `collectives` is None unless it was asked for."""

    ranks: tuple[str | None, ...]
    agree: bool | None
    differences: tuple[RankDifference, ...]
    skew: Skew | None
    collectives: Collectives | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """One arm: `moeprof.report/1`."""

    subject: Subject
    ranks: tuple[RankReport, ...]
    across_ranks: AcrossRanks
    findings: tuple[Finding, ...]

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the JSON object of the contract."""
        return {"schema": "moeprof.report/1", **cast("dict[str, JsonValue]", to_json(self))}

    def _repr_html_(self) -> str:
        lines = [f"moeprof report: {self.subject.source}"]
        for rank in self.ranks:
            ag_rs, gemm = rank.pairs.ag_rs.per_iteration, rank.pairs.moe_gemm.per_iteration
            lines.append(
                f"{rank.rank or rank.source}: {rank.iterations.total} iterations; per iteration "
                f"{_or_no_data(ag_rs)} AG/RS pairs, {_or_no_data(gemm)} GEMM pairs"
            )
        return _preformatted([*lines, *_worst(self.findings)])


@dataclass(frozen=True, slots=True)
class DiffSubject:
    """One side of a diff. `launch_unit` is None where its ranks do not share one."""

    arm: str | None
    source: str
    ranks: int
    runs: int
    launch_unit: LaunchUnit | None = None


@dataclass(frozen=True, slots=True)
class StructureRow:
    """Launches of a class in a phase per iteration on both sides; 0 for a class absent from a side."""

    class_: str
    phase: str
    base: int | None
    candidate: int | None
    change: Change | None


@dataclass(frozen=True, slots=True)
class KernelRow:
    """Launches and kernel sum (ns) of a kernel per iteration on both sides; 0 where absent."""

    name: str
    class_: str
    phase: str
    base: int | None
    candidate: int | None
    base_kernel_sum: int | None
    candidate_kernel_sum: int | None


@dataclass(frozen=True, slots=True)
class PairChange:
    """A pair figure per iteration on both sides."""

    base: int | None
    candidate: int | None


@dataclass(frozen=True, slots=True)
class PairChanges:
    """Pairs per iteration on both sides."""

    ag_rs: PairChange
    moe_gemm: PairChange


@dataclass(frozen=True, slots=True)
class TimeRow:
    """A per-iteration time (median over steady iterations of all ranks, ns) on both sides.

    `ratio` is that of the medians; `interval` (95 %, as ratios) is that of the means, and `test` says what it rests on.
    """

    metric: str
    phase: str | None
    base: int | None
    candidate: int | None
    ratio: float | None
    interval: tuple[float, float] | None
    method: str
    note: str
    test: DurationTest | None = None


@dataclass(frozen=True, slots=True)
class Diff:
    """Two arms: `moeprof.diff/1`. `summary` says in sentences what changed, most important first."""

    base: DiffSubject
    candidate: DiffSubject
    summary: tuple[str, ...]
    structure: tuple[StructureRow, ...]
    kernels: tuple[KernelRow, ...]
    pairs: PairChanges
    layers: tuple[SequenceChange, ...]
    time: tuple[TimeRow, ...]
    serving: tuple[ServingRow, ...]
    accuracy: tuple[AccuracyRow, ...]
    environment: tuple[EnvironmentRow, ...]
    claims: tuple[ClaimRow, ...]
    verdict: Verdict
    findings: tuple[Finding, ...]
    kernel_times: tuple[KernelTimeRow, ...] = ()
    kernel_metrics: tuple[LayerChange, ...] = ()
    layer_notes: tuple[str, ...] = ()
    waterfall: Waterfall | None = None

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the JSON object of the contract."""
        return {"schema": "moeprof.diff/1", **cast("dict[str, JsonValue]", to_json(self))}

    def _repr_html_(self) -> str:
        title = f"moeprof diff: {self.base.source} against {self.candidate.source}: {self.verdict}"
        return _preformatted([title, *self.summary, *_worst(self.findings)])


def _preformatted(lines: list[str]) -> str:
    return f"<pre>{escape(chr(10).join(lines))}</pre>"


def _or_no_data(value: int | None) -> str:
    return "no data on" if value is None else str(value)


def _worst(findings: tuple[Finding, ...]) -> list[str]:
    return [f"{item.severity}: {item.message}" for item in findings if item.severity != "note"]
