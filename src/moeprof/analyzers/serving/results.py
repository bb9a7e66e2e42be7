"""Samples of serving metrics and the rows that a comparison makes of them. None is "no data", never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Better: TypeAlias = Literal["higher", "lower"]
Label: TypeAlias = Literal["A/B/A complete", "A/B/A, drifted", "A/B only", "not comparable"]
MetricVerdict: TypeAlias = Literal["improved", "regressed", "unchanged", "inconclusive", "missing", "not_comparable"]
Reason: TypeAlias = Literal[
    "shown",
    "interval_within_threshold",
    "below_threshold_interval_wide",
    "not_separated",
    "one_block_only",
    "too_few_runs",
    "label_too_weak",
    "no_data_base",
    "no_data_candidate",
    "zero_base",
    "fingerprint",
    "gates",
    "units",
]
Number: TypeAlias = int | float

#: Labels from strongest to weakest.
LABELS: tuple[Label, ...] = ("A/B/A complete", "A/B/A, drifted", "A/B only", "not comparable")


@dataclass(frozen=True, slots=True)
class Workload:
    """What a client sent, as far as its output tells; None is "not told".

    Attributes:
        name: Name that the user or the configuration gave, or None.
        client: ``vllm``, ``vllm-rs``, ``builtin``.
        prompts: Requests asked for.
        concurrency: Limit of requests at once; None also where there is none.
        rate: Requests per second; ``inf`` for as fast as possible.
        input_tokens, output_tokens: Totals of the pass.
    """

    name: str | None = None
    client: str | None = None
    prompts: int | None = None
    concurrency: int | None = None
    rate: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def point(self) -> str:
        """Return the name of the measuring point, which tells workloads of one arm apart.

        >>> Workload(concurrency=128).point, Workload(name="chat", rate=2.5).point, Workload().point
        ('c128', 'chat r2.5', 'all')
        """
        limit = None if self.concurrency is None else f"c{self.concurrency}"
        rate = None if self.rate is None or self.rate == float("inf") else f"r{self.rate:g}"
        return " ".join(part for part in (self.name, limit, rate) if part is not None) or "all"


@dataclass(frozen=True, slots=True)
class ServingSample:
    """One timed pass: one value per metric. A warm-up or a profiled pass is never a sample.

    Attributes:
        block: Number of its block in the plan; order in time where nothing else tells it.
        number: Number of the pass in its block.
        source: Where it came from: file, or run and file.
        workload: What was sent.
        values: Metric name (vLLM's result keys) to value.
        printed: Metric name to the digits that a text report printed; empty where a value came at full precision.
        completed, failed: Requests.
        speculative: Whether the server decoded speculatively; None: the output does not tell.
        started, ended: Seconds since 1970; None where the output carries no time.
    """

    block: int
    number: int
    source: str
    workload: Workload
    values: Mapping[str, Number]
    printed: Mapping[str, str] = field(default_factory=dict)
    completed: int | None = None
    failed: int | None = None
    speculative: bool | None = None
    started: float | None = None
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class ExcludedPass:
    """A pass that failed a gate and is left out for that reason, never for its value."""

    block: int
    number: int
    source: str
    gate: str
    message: str


@dataclass(frozen=True, slots=True)
class Block:
    """One server start of an arm.

    Attributes:
        number: In its plan.
        fingerprint: Digest over what blocks must share; None where it is not known.
        started, ended: Seconds since 1970; None where it is not known.
        source: Run that it came from.
    """

    number: int
    fingerprint: str | None = None
    started: float | None = None
    ended: float | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class ArmSamples:
    """All passes of an arm that belong together.

    Attributes:
        arm: Name of the arm, or None for a path.
        source: What was named.
        samples: The passes, in order of block and number.
        blocks: What is known about the blocks, in order; a block without an entry is known by its passes only.
        excluded: Passes left out, with the gate that they failed.
    """

    arm: str | None
    source: str
    samples: tuple[ServingSample, ...]
    blocks: tuple[Block, ...] = ()
    excluded: tuple[ExcludedPass, ...] = ()


@dataclass(frozen=True, slots=True)
class ArmValues:
    """The values of one metric in one arm.

    Attributes:
        n: Number of passes with a value.
        median, min, max: Of the pass values; None without any.
        values: One per pass, in order of block and pass, full precision.
        cv: Standard deviation (ddof 1) over mean; None for fewer than two values.
        blocks: Block of each value.
    """

    n: int
    median: float | None
    min: float | None
    max: float | None
    values: tuple[Number, ...]
    cv: float | None = None
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Drift:
    """The base arm before and after the candidate; fractions, but for the medians `a0` and `a2`."""

    a0: float
    a2: float
    drift: float | None
    change_vs_a0: float | None
    change_vs_a2: float | None
    change_vs_midpoint: float | None
    a_ranges_overlap: bool


@dataclass(frozen=True, slots=True)
class ServingRow:
    """One metric of one workload, on both sides: a row of `serving[]`.

    Attributes:
        metric, unit, better: From the registry.
        base, candidate: The values.
        change: Ratio of the medians minus one; None where there is none.
        interval: Ends of the Hodges-Lehmann ratio interval, each minus one.
        confidence: What the interval attains.
        p, p_floor: Exact two-sided rank test, and the least it could be with so many passes.
        drift: Of the base arm; None without a second block of it.
        label: How much the design of the measurement carries.
        verdict, reason: Of the alarm rule.
        workload: Measuring point.
        gates: Whether the metric counts for the overall verdict.
        threshold: Change that matters, as a fraction; threshold_abs: that must be exceeded as well, in the unit.
        hl: Hodges-Lehmann estimate of the ratio, minus one. It need not equal `change`.
        delta: Cliff's delta: 1 or -1 where the ranges are disjoint.
        method: How p was computed.
        label_because: Why this label and no stronger one.
        worst_not_excluded: Greatest change for the worse that the interval leaves open, as a fraction of base.
        notes: What else a reader must know: rounding, tails that are not resolved.
    """

    metric: str
    unit: str
    better: Better
    base: ArmValues
    candidate: ArmValues
    change: float | None
    interval: tuple[float, float] | None
    confidence: float | None
    p: float | None
    p_floor: float | None
    drift: Drift | None
    label: Label
    verdict: MetricVerdict
    reason: Reason
    workload: str = "all"
    gates: bool = False
    threshold: float = 0.05
    threshold_abs: float | None = None
    hl: float | None = None
    delta: float | None = None
    method: str = ""
    label_because: str = ""
    worst_not_excluded: float | None = None
    notes: tuple[str, ...] = ()
