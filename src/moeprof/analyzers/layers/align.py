"""Align two sequences of launches: the same kernel first, then one of the same class in the same place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TypeAlias

from moeprof.analyzers.layers.results import Edit, Kernel, LayerEdit, LayerRow

Pairs: TypeAlias = list[tuple[int, int]]

_SAME = 5  # worth of the same kernel in both
_CLASS = 2  # worth of two kernels of one class: less than half of the same one, so that two of these never displace it
_LARGEST = 1_000_000  # cells of the table


def similarity(base: Sequence[Kernel], candidate: Sequence[Kernel]) -> float:
    """Return the share of launches that two sequences have in common, half by kernel and half by class."""
    total = len(base) + len(candidate)
    same = (Counter(base) & Counter(candidate)).total()
    classes = (Counter(one.class_ for one in base) & Counter(one.class_ for one in candidate)).total()
    return (same + classes) / total if total else 1.0


def edits(base: LayerRow, candidate: LayerRow) -> tuple[LayerEdit, ...]:
    """Return what differs between two sequences, in the order of the base; swapping the sides swaps the answer."""
    if (candidate.sequence, candidate.families) < (base.sequence, base.families):
        return _in_order([_swapped(one) for one in edits(candidate, base)])
    first, second = base.kernels, candidate.kernels
    pairs = _aligned(first, second)
    same = [(i, j) for i, j in pairs if first[i] == second[j]]
    replaced = [(i, j) for i, j in pairs if first[i] != second[j]]
    removed = sorted(set(range(len(first))) - {i for i, _ in pairs})
    added = sorted(set(range(len(second))) - {j for _, j in pairs})
    elsewhere, removed, added = _elsewhere(first, second, removed, added)
    found = [LayerEdit("replaced", (i,), (j,)) for i, j in replaced]
    word: Edit = "reordered" if base.ordered and candidate.ordered else "overtaken"
    found += [LayerEdit(word, (i,), (j,)) for i, j in elsewhere]
    found += [LayerEdit("moved", (i,), (j,)) for i, j in _moved(base, candidate, same)]
    found += [LayerEdit("removed", (i,), ()) for i in removed]
    found += [LayerEdit("added", (), (j,)) for j in added]
    return _in_order(found)


def _swapped(one: LayerEdit) -> LayerEdit:
    if one.edit == "removed":
        return LayerEdit("added", (), one.base)
    if one.edit == "added":
        return LayerEdit("removed", one.candidate, ())
    return LayerEdit(one.edit, one.candidate, one.base)


def _in_order(found: Sequence[LayerEdit]) -> tuple[LayerEdit, ...]:
    return tuple(sorted(found, key=lambda one: (one.base or (1 << 30,), one.candidate, one.edit)))


def _aligned(first: Sequence[Kernel], second: Sequence[Kernel]) -> Pairs:
    """Return the pairs of the alignment of the greatest worth."""
    head = 0
    while head < min(len(first), len(second)) and first[head] == second[head]:
        head += 1
    left, right = first[head:], second[head:]
    if len(left) * len(right) > _LARGEST:
        return [(i, i) for i in range(head)]
    worth = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in range(len(left) - 1, -1, -1):
        for j in range(len(right) - 1, -1, -1):
            value = _worth(left[i], right[j])
            skip = max(worth[i + 1][j], worth[i][j + 1])
            worth[i][j] = max(skip, worth[i + 1][j + 1] + value) if value else skip
    pairs = [(i, i) for i in range(head)]
    i = j = 0
    while i < len(left) and j < len(right):
        value = _worth(left[i], right[j])
        if value and worth[i][j] == worth[i + 1][j + 1] + value:
            pairs.append((head + i, head + j))
            i, j = i + 1, j + 1
        elif worth[i][j] == worth[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _worth(one: Kernel, other: Kernel) -> int:
    if one == other:
        return _SAME
    return _CLASS if one.class_ == other.class_ else 0


def _elsewhere(
    first: Sequence[Kernel], second: Sequence[Kernel], removed: list[int], added: list[int]
) -> tuple[Pairs, list[int], list[int]]:
    """Return what is in both but at another place, and what remains of removed and added."""
    waiting: dict[Kernel, list[int]] = defaultdict(list)
    for j in reversed(added):
        waiting[second[j]].append(j)
    pairs = [(i, waiting[first[i]].pop()) for i in removed if waiting[first[i]]]
    gone, came = {i for i, _ in pairs}, {j for _, j in pairs}
    return pairs, [i for i in removed if i not in gone], [j for j in added if j not in came]


def _moved(base: LayerRow, candidate: LayerRow, same: Pairs) -> Pairs:
    """Return the launches that run on another stream than those that shared theirs."""
    if base.streams is None or candidate.streams is None:
        return []
    votes: dict[int, Counter[int]] = defaultdict(Counter)
    back: dict[int, Counter[int]] = defaultdict(Counter)
    for i, j in same:
        votes[base.streams[i]][candidate.streams[j]] += 1
        back[candidate.streams[j]][base.streams[i]] += 1
    there = {stream: min(vote, key=lambda key: (-vote[key], key)) for stream, vote in votes.items()}
    here = {stream: min(vote, key=lambda key: (-vote[key], key)) for stream, vote in back.items()}
    return [
        (i, j)
        for i, j in same
        if there[base.streams[i]] != candidate.streams[j] or here[candidate.streams[j]] != base.streams[i]
    ]
