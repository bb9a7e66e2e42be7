"""The results of a timeline: frozen dataclasses, times in integer ns, None for no data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from moeprof.analyzers.results import Spread


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables behind a timeline: `moeprof.analyzers.timeline.tables`."""

    per_iteration: pl.DataFrame
    parts: pl.DataFrame
    pieces: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Part:
    """Time of one state per steady iteration; `share` is that of the sum over all of them in the sum of wall times."""

    state: str
    ns: Spread
    share: float


@dataclass(frozen=True, slots=True)
class PhaseTimeline:
    """A phase: what the wall time that belongs to it went into, its launch calls, and how long the device took to follow.

    `states` are medians per iteration, states without time left out; an idle gap belongs to the phase of the launch that ends it.
    `latency_ns` is that of calls that found the device idle; None where all of them found it at work.
    """

    phase: str
    states: dict[str, int]
    calls: int
    graph_launches: int
    call_ns: int
    latency_ns: Spread | None
    queued_share: float | None


@dataclass(frozen=True, slots=True)
class Step:
    """A stretch of the critical chain: `resource` is host or device, `bounds` what it consists of."""

    resource: str
    phase: str | None
    ns: int
    bounds: dict[str, int]


@dataclass(frozen=True, slots=True)
class Chain:
    """The critical chain of the iteration with the median wall time; the steps add up to it."""

    iteration: int
    wall_ns: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Regime:
    """Iterations of a kind with equal batches. Times per token rest on the median wall time."""

    kind: str | None
    requests: int | None
    tokens: int | None
    iterations: int
    wall_ns: Spread
    per_scheduled_token_ns: float | None
    per_generated_token_ns: float | None


@dataclass(frozen=True, slots=True)
class Distribution:
    """Wall times of steady iterations: nearest-rank quantiles."""

    iterations: int
    min: int
    p10: int
    p25: int
    p50: int
    p75: int
    p90: int
    p99: int
    max: int


@dataclass(frozen=True, slots=True)
class Drift:
    """How the wall time moves inside the window: medians of its first and last third, and whether order and time go together."""

    first_ns: int
    last_ns: int
    change: float
    tau: float | None
    p: float | None


@dataclass(frozen=True, slots=True)
class Excess:
    """What an iteration had more of than the median one."""

    state: str
    class_: str | None
    ns: int


@dataclass(frozen=True, slots=True)
class Outlier:
    """An iteration far above the median, and where the time went."""

    iteration: int
    wall_ns: int
    excess_ns: int
    parts: tuple[Excess, ...]


@dataclass(frozen=True, slots=True)
class HostCalls:
    """Calls per steady iteration and the host time inside them, medians."""

    launch_calls: int
    graph_launches: int
    launch_time_ns: int
    sync_calls: int
    sync_time_ns: int


@dataclass(frozen=True, slots=True)
class RankTimeline:
    """Where the wall time of a rank's steady iterations went. The states of an iteration add up to its wall time."""

    iterations: int
    wall_ns: Spread | None
    states: tuple[Part, ...]
    wait_ns: Spread | None
    overlapped_ns: Spread | None
    bounds: tuple[Part, ...]
    phases: tuple[PhaseTimeline, ...]
    host: HostCalls | None
    chain: Chain | None
    regimes: tuple[Regime, ...]
    distribution: Distribution | None
    drift: Drift | None
    outliers: tuple[Outlier, ...]
    tables: Tables | None = field(default=None, compare=False, repr=False, metadata={"json": False})


@dataclass(frozen=True, slots=True)
class WaterfallPart:
    """One part of a waterfall: what it takes of an iteration on both sides (means over the middle half of iterations)."""

    state: str
    class_: str | None
    phase: str | None
    base_ns: int
    candidate_ns: int
    difference_ns: int


@dataclass(frozen=True, slots=True)
class Waterfall:
    """From the median wall time of base to that of candidate: the differences of the parts and `rest_ns` add up exactly.

    `rest_ns` is the distance of the median from the mean of the middle half of iterations, which the parts make up, and what
    rounding leaves.
    """

    kind: str | None
    requests: int | None
    tokens: int | None
    base_iterations: int
    candidate_iterations: int
    base_ns: int
    candidate_ns: int
    difference_ns: int
    parts: tuple[WaterfallPart, ...]
    rest_ns: int
