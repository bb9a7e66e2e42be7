"""Choose the runs of an arm that belong together.

Captured runs belong together when plan and fingerprint are equal; of several with one block number the newest counts. Runs that
were ingested belong together, all of an arm. Where two arms are compared, a series that both have comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from moeprof.store.run import Run

Key: TypeAlias = tuple[str | None, str | None]
INGESTED = "ingested"


def is_ingested(run: Run) -> bool:
    """Tell whether a run was taken in from files made elsewhere."""
    return run.manifest.extra.get(INGESTED) is True


def key_of(run: Run) -> Key:
    """Return what runs of one series share."""
    return (INGESTED, None) if is_ingested(run) else (run.manifest.plan, run.manifest.fingerprint)


def series(runs: Sequence[Run], others: Sequence[Run] = ()) -> tuple[Run, ...]:
    """Return the newest series of runs; one that the other arm has too comes before a newer one that it has not.

    Args:
        runs: Complete runs of an arm, oldest first.
        others: Of the arm that it is compared with.
    """
    keys = [key_of(run) for run in runs]
    shared = {key_of(run) for run in others}
    chosen = next((key for key in reversed(keys) if key in shared), keys[-1] if keys else None)
    mine = [run for run, key in zip(runs, keys, strict=True) if key == chosen]
    if chosen == (INGESTED, None):
        return tuple(mine)
    newest = {run.manifest.block: run for run in mine}
    return tuple(newest[block] for block in sorted(newest))
