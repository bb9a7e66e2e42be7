"""The results of matching collectives across ranks: frozen dataclasses, times in integer ns, None for no data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moeprof.analyzers.results import Spread


@dataclass(frozen=True, slots=True)
class Unmatched:
    """Collectives of one class in one iteration that ranks do not hold in equal number."""

    iteration: int | None
    class_: str
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class RankArrivals:
    """How a rank comes to its collectives.

    Attributes:
        rank: Label of the rank.
        shift: Iterations by which its window begins later than the first rank's (negative: earlier).
        offset_ns: Its clock minus the ranks' common one, from the ends of matched collectives.
        residual_ns: Median distance of its ends from the common ones once the offset is taken away.
        last: Collectives to which it came last, alone.
        waited_ns: Time that it waited for others, over all matched collectives.
        waited_for_ns: The same by the rank that came last.
        caused_ns: Time that others waited because it came last.
    """

    rank: str
    shift: int
    offset_ns: int
    residual_ns: int
    last: int
    waited_ns: int
    waited_for_ns: dict[str, int]
    caused_ns: int


@dataclass(frozen=True, slots=True)
class RankWork:
    """Kernel sums of a rank's GEMMs per steady iteration (medians); `against_others` is its total over the others' median.

    `launches` are those GEMMs per iteration: times are compared only where they are equal.
    """

    rank: str
    launches: int
    expert_ns: int
    dense_ns: int
    expert_against_others: float | None
    dense_against_others: float | None
    against_others: float | None


@dataclass(frozen=True, slots=True)
class ClassArrivals:
    """Skew of arrivals at collectives of one class."""

    class_: str
    matched: int
    skew_ns: Spread


@dataclass(frozen=True, slots=True)
class Collectives:
    """Collectives matched across ranks. `matched_by` is sequence, iteration or order; None where nothing matched.

    `trusted` is False where the ends of matched collectives lie so far apart that the match, or the clocks, cannot be right;
    waits are not used then.
    """

    matched: int
    matched_by: str | None
    trusted: bool
    unmatched: tuple[Unmatched, ...]
    classes: tuple[ClassArrivals, ...]
    ranks: tuple[RankArrivals, ...]
    work: tuple[RankWork, ...]
