"""What a test of times within two captures gives. A capture is one server start, however many iterations it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

TimeChange: TypeAlias = Literal["slower", "faster", "same", "added", "removed"]


@dataclass(frozen=True, slots=True)
class DurationSample:
    """The values of one side, in ns. Of several ranks: means over the ranks, the fewest iterations, the strongest correlation.

    Attributes:
        iterations: Values of the rank that has fewest.
        mean, trimmed_mean: The latter without a tenth of the values at either end.
        mad: Median absolute deviation from the median.
        lag1: Correlation of neighbouring iterations.
        effective: Number of independent values that are worth as much; at least 2.
    """

    iterations: int
    mean: float
    trimmed_mean: float
    mad: float
    lag1: float
    effective: float


@dataclass(frozen=True, slots=True)
class DurationTest:
    """Two samples held against each other; every ratio is candidate over base.

    Attributes:
        base, candidate: The samples.
        ratio_of_means: What `interval` of the row is about; None where base is 0.
        ratio_of_trimmed_means: None where base is 0.
        hodges_lehmann: Median of the ratios of every value to every other; None where a value is 0.
        t, df, p: Of the difference of means, two-sided, over effective values; None where a side has fewer than two values.
            `t` is None as well where neither side varies.
    """

    base: DurationSample
    candidate: DurationSample
    ratio_of_means: float | None
    ratio_of_trimmed_means: float | None
    hodges_lehmann: float | None
    t: float | None
    df: float | None
    p: float | None


@dataclass(frozen=True, slots=True)
class KernelTimeRow:
    """Time of one kernel per steady iteration on both sides: mean kernel sum of all ranks, in ns, rounded.

    A difference of kernel sums is no saving of time: kernels overlap, and collectives wait.

    Attributes:
        name, class_, phase: The kernel.
        base_launches, candidate_launches: Per iteration, as in ``kernels[]``.
        base, candidate, difference: Times; 0 where the kernel is absent from a side.
        ratio: candidate / base; None where it is absent from a side.
        interval: 95 % interval of the ratio.
        p: Of the difference of means over effective values; None where nothing is tested.
        p_adjusted: With the share of false discoveries controlled (Benjamini-Hochberg) over all kernels tested.
        p_strict: The same for tests that depend on each other in any way (Benjamini-Yekutieli).
        change: ``slower`` or ``faster`` only beyond the thresholds; None where it could not be tested.
        holds_waiting: Whether the kernel communicates, so that its time contains waiting for other ranks.
    """

    name: str
    class_: str
    phase: str
    base_launches: int | None
    candidate_launches: int | None
    base: int
    candidate: int
    difference: int
    ratio: float | None
    interval: tuple[float, float] | None
    p: float | None
    p_adjusted: float | None
    p_strict: float | None
    change: TimeChange | None
    holds_waiting: bool
