"""Short labels of ranks."""

from __future__ import annotations

from collections.abc import Sequence

from moeprof.wording import safe

NO_RANK = "(no rank)"


def short_ranks(keys: Sequence[str | None]) -> list[str]:
    """Return rank keys by the first parts that tell them apart; the whole key for a single rank.

    >>> short_ranks(["dp0_pp0_ep0_rank0", "dp1_pp0_ep1_rank0"])
    ['dp0', 'dp1']
    """
    whole = [NO_RANK if key is None else safe(key) for key in keys]
    parts = [name.split("_") for name in whole]
    if len(keys) < 2 or len({len(part) for part in parts}) != 1:
        return whole
    labels = [""] * len(keys)
    for column in zip(*parts, strict=True):
        longer = [f"{label}_{part}" if label else part for label, part in zip(labels, column, strict=True)]
        if len(set(longer)) > len(set(labels)):
            labels = longer
    return labels if len(set(labels)) == len(keys) else whole
