"""Where repetitions begin and end: a cut only marks one kernel of each; the borders follow from what differs around them.

The first repetition begins as far to the left as what precedes its mark equals what precedes the next mark: there the structure
starts to repeat. The rule depends on the sequence alone, so two arms that share their beginning are cut at the same kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from moeprof.analyzers.layers.cuts import Bags, Cut, distance, near

_SHARED = 4  # launches that two layers begin with at least, where both are layers
_OUTWEIGHED = 4  # launches that are the same, by one that is not
_SKIPS = 3  # launches by which the beginning of a repetition may be longer than that of another
_WHOLE = 0.6  # share of a repetition that must be there for the last part to be one


def borders(tokens: Sequence[int], cut: Cut, bags: Bags) -> list[int]:
    """Return where the repetitions begin, and as the last the end of the last one.

    Args:
        tokens: The kernels in order.
        cut: The marks, one in each repetition.
        bags: The keys of the bags of `tokens`.
    """
    marks = cut.positions
    model = _model(tokens, cut)
    key = bags.key(marks[cut.main + 1] - len(model), marks[cut.main + 1])
    starts = []
    for mark in marks:
        known = mark >= len(model) and bags.key(mark - len(model), mark) == key
        starts.append(mark - (len(model) if known else _own_lead(tokens, mark, model)))
    lead = len(model)
    starts = sorted({max(start, before) for start, before in zip(starts, (0, *marks), strict=False)})
    end = _end(tokens, starts, marks[cut.main] - lead, marks[cut.main + 1] - lead, bags)
    return [*starts, end] if end > starts[-1] else starts


def _model(tokens: Sequence[int], cut: Cut) -> Sequence[int]:
    """Return the kernels with which a repetition begins, up to its mark."""
    marks, main = cut.positions, cut.main
    body = tokens[marks[main] : marks[main + 1]]
    if main > 0 and not near(body, tokens[marks[main - 1] : marks[main]]):
        lead = _common_end(tokens, marks[main], marks[main + 1], len(body) - 1)
    else:
        # What precedes the first mark is compared with several others: one of the repetitions may lack a launch.
        others = sorted({1, 2, main + 1, len(marks) - 1} & set(range(1, len(marks))))
        lead = max(_common_end(tokens, marks[0], marks[other], len(body) - 1) for other in others)
    return tokens[marks[main + 1] - lead : marks[main + 1]]


def _common_end(tokens: Sequence[int], first: int, second: int, most: int) -> int:
    """Return how far before two places the kernels are the same: as many as can be without many that are not.

    Bags are compared, so that kernels of two streams may have overtaken each other; one that differs outweighs four that do not.
    """
    more: Counter[int] = Counter()
    apart = best = far = 0
    for length in range(1, min(most, first) + 1):
        for token, side in ((tokens[first - length], 1), (tokens[second - length], -1)):
            apart += 1 if more[token] * side >= 0 else -1
            more[token] += side
        if length - _OUTWEIGHED * apart > best:
            best, far = length - _OUTWEIGHED * apart, length
    return far


def _own_lead(tokens: Sequence[int], mark: int, model: Sequence[int]) -> int:
    """Return how many kernels before its mark a repetition begins that does not begin as the others do."""
    same = 0
    while same < min(len(model), mark) and tokens[mark - 1 - same] == model[len(model) - 1 - same]:
        same += 1
    lengths = [length for length in range(len(model) - _SKIPS, len(model) + _SKIPS + 1) if same < length <= mark]
    if lengths:
        costs = {
            length: distance(tokens[mark - length : mark], model) + (tokens[mark - length] != model[0])
            for length in lengths
        }
        best = min(lengths, key=lambda length: (costs[length], abs(length - len(model))))
        if 2 * costs[best] <= len(model) and tokens[mark - best] == model[0]:
            return best
    window = tokens[max(0, mark - len(model) - _SKIPS) : mark]
    start, length = _stretch(window, model)
    return max(same, len(window) - start) if 3 * length >= len(model) else same


def _end(tokens: Sequence[int], starts: Sequence[int], start: int, stop: int, bags: Bags) -> int:
    """Return where the last repetition ends; its own start where what follows is none."""
    last = starts[-1]
    kinds = Counter((bags.key(begin, until), until - begin) for begin, until in pairwise(starts))
    for (key, length), _ in sorted(kinds.items(), key=lambda item: (-item[1], -item[0][1], item[0][0])):
        if last + length <= len(tokens) and bags.key(last, last + length) == key:
            return last + length
    return _like(tokens, last, tokens[start:stop])


def _like(tokens: Sequence[int], start: int, body: Sequence[int]) -> int:
    """Return where a part from `start` on that is nearly `body` ends; `start` where it is not nearly that."""
    left = Counter(body)
    allowed = max(2, len(body) // 10)
    end, taken, missed = start, 0, 0
    for index in range(start, min(len(tokens), start + len(body) + allowed)):
        if left[tokens[index]] > 0:
            left[tokens[index]] -= 1
            end, taken = index + 1, taken + 1
        else:
            missed += 1
            if missed > allowed:
                break
    return end if taken >= _WHOLE * len(body) else start


def first_of_its_own(before: Sequence[int], body: Sequence[int]) -> int:
    """Return where, in what precedes the repetitions, a layer begins that starts like the body; its length where none does.

    >>> first_of_its_own([9, 8, 1, 2, 3, 4, 7], [1, 2, 3, 4, 5, 6, 5, 6])
    2
    """
    begin = max(0, len(before) - 2 * len(body))
    start, length = _stretch(before[begin:], body[: (len(body) + 1) // 2])
    return begin + start if length >= max(_SHARED, len(body) // 6) else len(before)


def _stretch(first: Sequence[int], second: Sequence[int]) -> tuple[int, int]:
    """Return start (in the first) and length of the longest stretch that two sequences share."""
    best, at = 0, len(first)
    above = [0] * (len(second) + 1)
    for index, token in enumerate(first):
        row = [0] * (len(second) + 1)
        for place, other in enumerate(second):
            if token == other:
                row[place + 1] = above[place] + 1
                if row[place + 1] > best:
                    best, at = row[place + 1], index + 1 - row[place + 1]
        above = row
    return at, best
