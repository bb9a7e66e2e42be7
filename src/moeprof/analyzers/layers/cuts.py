"""Find where a sequence may be cut so that its parts repeat: the kernel whose occurrences leave the least to be told.

Each kernel that occurs at least twice is tried as the mark of a repetition. What a cut costs is what a reader would have to
be told: each distinct part once (a part that is nearly another costs only their difference), each change from one part to an
unexpected other, and what lies before the first and after the last mark. Parts are compared as bags, so kernels of two streams
that overtake each other change nothing; a bag's key is the sum of random numbers of its kernels, so that the key of any part is a
difference of two prefix sums, and trying all kernels takes linear time.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_MASK = (1 << 64) - 1
_OF_EACH = 4  # cuts with the same number of marks that are looked at closely
_REFINED = 48  # all of these
_TRIED_OF_EACH = 2  # cuts with the same number of marks that are handed out
_TRIED = 10  # all of these
_COMPARED = 8  # distinct parts of such a cut that are compared with its commonest


@dataclass(frozen=True, slots=True)
class Cut:
    """Positions of the marks, at least two, and the index of the first part of the commonest kind."""

    positions: tuple[int, ...]
    main: int


class Bags:
    """Keys of bags of a sequence's parts."""

    def __init__(self, tokens: Sequence[int]) -> None:
        """Prepare the prefix sums of a sequence."""
        value = {token: random.Random(token).getrandbits(64) for token in set(tokens)}
        self._sums = [0]
        total = 0
        for token in tokens:
            total += value[token]
            self._sums.append(total)

    def key(self, start: int, stop: int) -> int:
        """Return the key of the bag of tokens from start to stop."""
        return (self._sums[stop] - self._sums[start]) & _MASK


def distance(first: Sequence[int], second: Sequence[int]) -> int:
    """Return how many tokens two bags do not share.

    >>> distance([1, 2, 2], [2, 3])
    3
    """
    left, right = Counter(first), Counter(second)
    return (left - right).total() + (right - left).total()


def near(first: Sequence[int], second: Sequence[int]) -> bool:
    """Tell whether two parts are the same but for a few launches.

    >>> near(range(20), range(1, 20)), near([1, 2, 3], [1, 4, 5])
    (True, False)
    """
    longest = max(len(first), len(second))
    return distance(first, second) <= min(max(2, longest // 6), longest // 2)


def cuts(tokens: Sequence[int], bags: Bags) -> list[Cut]:
    """Return the cuts that leave little to be told, the best first: for each number of marks the best few.

    Args:
        tokens: The kernels in order.
        bags: The keys of their bags.
    """
    positions: dict[int, list[int]] = {}
    for index, token in enumerate(tokens):
        positions.setdefault(token, []).append(index)
    rough = _ranked(tokens, list(positions.values()), bags, compared=0)
    ranked = _ranked(tokens, _of_each_number(rough, _OF_EACH)[:_REFINED], bags, compared=_COMPARED)
    return [Cut(tuple(found), _main(found, bags)) for found in _of_each_number(ranked, _TRIED_OF_EACH)[:_TRIED]]


def _of_each_number(ranked: Sequence[list[int]], most: int) -> list[list[int]]:
    """Return the first few for each number of marks, in order."""
    taken: Counter[int] = Counter()
    kept = []
    for found in ranked:
        taken[len(found)] += 1
        if taken[len(found)] <= most:
            kept.append(found)
    return kept


def _ranked(tokens: Sequence[int], found: Sequence[list[int]], bags: Bags, compared: int) -> list[list[int]]:
    """Return the positions of kernels that occur more than once and mark something, the cheapest first."""
    costs = [
        (cost, marks[0], marks)
        for marks in found
        if len(marks) >= 2 and (cost := _cost(tokens, marks, bags, compared)) is not None
    ]
    return [marks for _, _, marks in sorted(costs)]


def _main(positions: Sequence[int], bags: Bags) -> int:
    """Return the index of the first part of the kind that covers most."""
    keys = [bags.key(start, stop) for start, stop in pairwise(positions)]
    times = Counter(keys)
    lengths = {key: stop - start for key, (start, stop) in zip(keys, pairwise(positions), strict=True)}
    best = max(times, key=lambda key: ((times[key] - 1) * lengths[key], times[key]))
    return keys.index(best)


def _cost(tokens: Sequence[int], positions: Sequence[int], bags: Bags, compared: int) -> tuple[int, int] | None:
    """Return what is left to be told and the number of distinct parts; None where nothing repeats."""
    keys = [bags.key(start, stop) for start, stop in pairwise(positions)]
    spans = dict(zip(keys, pairwise(positions), strict=True))
    times = Counter(keys)
    start, stop = spans[max(times, key=lambda key: ((times[key] - 1) * (spans[key][1] - spans[key][0]), times[key]))]
    length = stop - start
    main = bags.key(start, stop)
    last, end = positions[-1], len(tokens)
    follows = last + length <= end and bags.key(last, last + length) == main
    body = tokens[start:stop]
    told = length
    others = sorted((key for key in spans if key != main), key=lambda key: (-times[key], spans[key]))
    close = 0
    for index, key in enumerate(others):
        begin, until = spans[key]
        cost = until - begin
        if index < compared:
            apart = distance(body, tokens[begin:until])
            close += apart * 2 < length
            cost = min(cost, apart + 1)
        told += cost
    if compared and times[main] < 2 and not follows and not close:
        return None
    ends = max(positions[0] + end - last - length, 0)
    return told + ends + 2 * len(spans) + _surprises(keys), len(spans)


def _surprises(keys: Sequence[int]) -> int:
    """Count the parts that do not follow the one before them as a rule."""
    followers: dict[int, Counter[int]] = {}
    for key, following in pairwise(keys):
        followers.setdefault(key, Counter())[following] += 1
    return sum(times.total() - max(times.values()) for times in followers.values())
