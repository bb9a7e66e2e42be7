"""The hardware metrics that the store holds of both sides' arms."""

from __future__ import annotations

import os

from moeprof.findings import JsonValue
from moeprof.series.side import Side
from moeprof.store.kernel_results import newest
from moeprof.store.subject import store_root

Stored = dict[str, JsonValue]


def kernel_results(base: Side, candidate: Side, store: str | os.PathLike[str] | None) -> tuple[Stored, Stored] | None:
    """Return the newest result of each arm; None where a side is no arm of the store, or has none.

    Raises:
        ManifestError: A stored result is damaged.
    """
    if base.arm is None or candidate.arm is None or not (base.runs and candidate.runs):
        return None
    root = store_root(store)
    first, second = newest(root, base.arm), newest(root, candidate.arm)
    return None if first is None or second is None else (first, second)
