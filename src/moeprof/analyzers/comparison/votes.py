"""One figure on several ranks: which value stands for all of them.

The most frequent value does. Where several are equally frequent, one rank decides for every such figure, so that the figures of a side
belong together: the rank that agrees with the others most often, of those the first by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from moeprof.analyzers.commonest import commonest_of
from moeprof.findings import JsonValue


@dataclass(frozen=True, slots=True)
class Votes:
    """One figure by rank, in order of the rank's label.

    Attributes:
        by_rank: Label and value; None where a rank has no data.
        standing: Label of the rank that decides where values are equally frequent; None where there is no rank.
    """

    by_rank: tuple[tuple[str, int | None], ...]
    standing: str | None = None

    @property
    def value(self) -> int | None:
        """Return the value that stands for all ranks; None where no rank has data."""
        most = self.most_frequent
        own = dict(self.by_rank).get(self.standing) if self.standing is not None else None
        return own if len(most) > 1 and own in most else commonest_of(most)

    @property
    def most_frequent(self) -> tuple[int, ...]:
        """Return the values that most ranks have: one, or several that are equally frequent."""
        times = Counter(value for _, value in self.by_rank if value is not None)
        most = max(times.values(), default=0)
        return tuple(sorted(value for value, count in times.items() if count == most))

    @property
    def tied(self) -> bool:
        """Tell whether no value is more frequent than every other."""
        return len(self.most_frequent) > 1

    @property
    def agree(self) -> bool:
        """Tell whether all ranks have the same value."""
        return len({value for _, value in self.by_rank}) <= 1

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the values by rank for a finding's evidence."""
        return dict(self.by_rank)


def standing_rank(figures: Iterable[Votes]) -> str | None:
    """Return the label of the rank that agrees with the most frequent values most often; None without a rank.

    >>> standing_rank([Votes((("a", 1), ("b", 2), ("c", 2))), Votes((("a", 5), ("b", 6), ("c", 7)))])
    'b'
    """
    agreed: Counter[str] = Counter()
    for votes in figures:
        most = votes.most_frequent
        for name, value in votes.by_rank:
            agreed[name] += value in most
    return min(agreed, key=lambda name: (-agreed[name], name), default=None)
