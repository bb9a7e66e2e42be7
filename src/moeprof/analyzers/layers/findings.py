"""Layers that are not like the ones around them, as findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from moeprof.analyzers.layers.results import LayerRow
from moeprof.analyzers.layers.sentences import composition, variant_words
from moeprof.findings import Finding
from moeprof.wording import listed

_LEAST = 4  # repetitions below which one that differs is not an exception
_RARE = 10  # one in so many is
_NAMES = {"moe_layer": "MoE layer", "dense_layer": "dense layer", "pass": "pass", "other": "repetition"}


def layer_findings(rows: Sequence[LayerRow], rank: str | None) -> tuple[Finding, ...]:
    """Name the repetitions that differ from the rest, and single parts between repetitions of one body.

    Args:
        rows: The structure of a rank.
        rank: Its key.
    """
    found = [_lacking(row, rank) for row in rows if row.repeat >= _LEAST]
    torn = [
        _torn(before, own, after, rows, rank)
        for (before, own), after in zip(pairwise(rows), rows[2:], strict=False)
        if _is_torn(before, own, after)
    ]
    return (*(finding for group in found for finding in group), *torn)


def _lacking(row: LayerRow, rank: str | None) -> list[Finding]:
    rare = max(1, row.repeat // _RARE)
    return [
        Finding(
            "layer-differs",
            "note",
            f"{row.phase}: {_NAMES[row.role]} {listed(number + 1 for number in one.at)} of {row.repeat} "
            f"{'is' if one.repeat == 1 else 'are'} {variant_words(one)}",
            rank,
            {"phase": row.phase, "repeat": row.repeat, "at": list(one.at)},
        )
        for one in row.variants
        if not one.joint and one.repeat <= rare
    ]


def _is_torn(before: LayerRow, own: LayerRow, after: LayerRow) -> bool:
    same = before.kernels == after.kernels and before.phase == own.phase == after.phase
    return same and own.repeat == 1 and before.repeat + after.repeat >= _LEAST


def _torn(before: LayerRow, own: LayerRow, after: LayerRow, rows: Sequence[LayerRow], rank: str | None) -> Finding:
    body = before.kernels
    more = tuple((Counter(own.kernels) - Counter(body)).elements())
    fewer = tuple((Counter(body) - Counter(own.kernels)).elements())
    start = next(index for index, row in enumerate(rows) if row is own)
    first = start
    while (
        first > 0
        and rows[first - 1].phase == own.phase
        and (rows[first - 1].kernels == body or rows[first - 1].role == own.role)
    ):
        first -= 1
    number = sum(row.repeat for row in rows[first:start]) + 1
    total = number
    for row in rows[start + 1 :]:
        if row.phase != own.phase or (row.kernels != body and row.role != own.role):
            break
        total += row.repeat
    return Finding(
        "layer-differs",
        "note",
        f"{own.phase}: {_NAMES[before.role]} {number} of {total} is unlike the ones around it: {composition(more)} "
        f"in place of {composition(fewer)}",
        rank,
        {"phase": own.phase, "repeat": total, "at": [number - 1]},
    )
