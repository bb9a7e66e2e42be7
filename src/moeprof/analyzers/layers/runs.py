"""Fold a short list of kinds into repetitions: runs of one kind, groups that repeat, groups of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

_LONGEST = 64  # members of a group that may repeat


@dataclass(frozen=True, slots=True)
class Run:
    """Members, one after the other, `repeat` times."""

    repeat: int
    members: tuple[Node, ...]


Node: TypeAlias = "int | Run"


def expand(nodes: Sequence[Node]) -> list[int]:
    """Return the kinds that nodes stand for.

    >>> expand([7, Run(2, (1, 2))])
    [7, 1, 2, 1, 2]
    """
    kinds: list[int] = []
    for node in nodes:
        if isinstance(node, Run):
            kinds += expand(node.members) * node.repeat
        else:
            kinds.append(node)
    return kinds


def fold_kinds(kinds: Sequence[int]) -> list[Run]:
    """Fold a list of kinds.

    >>> fold_kinds([1, 2, 2, 2])
    [Run(repeat=1, members=(1,)), Run(repeat=3, members=(2,))]
    >>> fold_kinds([1, 1, 2, 1, 1, 2])
    [Run(repeat=2, members=(Run(repeat=2, members=(1,)), Run(repeat=1, members=(2,))))]
    """
    runs: list[Run] = []
    for kind in kinds:
        if runs and runs[-1].members == (kind,):
            runs[-1] = Run(runs[-1].repeat + 1, (kind,))
        else:
            runs.append(Run(1, (kind,)))
    while True:
        grouped = _grouped(runs)
        if len(grouped) == len(runs):
            return runs
        runs = grouped


def _grouped(runs: Sequence[Run]) -> list[Run]:
    """Put groups of runs that follow themselves together, from left to right, the group that spares most first."""
    result: list[Run] = []
    index = 0
    while index < len(runs):
        best, width = 1, 1
        for size in range(2, min(_LONGEST, (len(runs) - index) // 2) + 1):
            if runs[index] != runs[index + size]:
                continue
            times = 1
            while runs[index : index + size] == runs[index + times * size : index + (times + 1) * size]:
                times += 1
            if (times - 1) * size > (best - 1) * width:
                best, width = times, size
        result.append(Run(best, tuple(runs[index : index + width])) if best > 1 else runs[index])
        index += best * width
    return result
