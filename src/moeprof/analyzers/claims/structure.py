"""What traces let a person say: counts per iteration, and no times."""

from __future__ import annotations

from collections.abc import Sequence

from moeprof.analyzers.claims.results import ClaimRow
from moeprof.analyzers.claims.sentences import NEVER

COUNTS = "counts per iteration"

Figure = tuple[str, int | None, int | None]


def structure_claims(figures: Sequence[Figure], *, ranks: tuple[int, int]) -> tuple[ClaimRow, ...]:
    """Return a sentence for each count that differs, and what the traces do not carry.

    Args:
        figures: Name of a count, and its value per iteration on both sides.
        ranks: Ranks of either side.

    >>> [row.text for row in structure_claims([("AG/RS pairs", 45, 3), ("GEMM pairs", 45, 45)], ranks=(2, 2))]
    ['AG/RS pairs per iteration: 45 -> 3', 'a saving of time, or a speed, from the traces']
    """
    because = f"counted over complete iterations of {ranks[0]} against {ranks[1]} ranks, within these two captures"
    said = [
        ClaimRow(f"{name} per iteration: {before} -> {after}", COUNTS, because)
        for name, before, after in figures
        if before is not None and after is not None and before != after
    ]
    why = "kernels overlap and wait, and the traces were recorded under a profiler"
    return (*said, ClaimRow("a saving of time, or a speed, from the traces", NEVER, why, kind="not-said"))
