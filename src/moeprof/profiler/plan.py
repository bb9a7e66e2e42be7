"""Schedules: which arm runs in which block, in order, resumable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from moeprof.errors import UsageError
from moeprof.store.manifest import Manifest
from moeprof.store.run import Run

PlanName: TypeAlias = Literal["aba", "abba", "ab"]
PLANS: tuple[PlanName, ...] = get_args(PlanName)


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a plan: ``0-base`` of ``aba``."""

    number: int
    arm: str

    def __str__(self) -> str:
        return f"{self.number}-{self.arm}"


def blocks(plan: PlanName, base: str, candidate: str) -> tuple[Block, ...]:
    """Return the blocks of a plan in order.

    >>> [str(block) for block in blocks("aba", "base", "mega")]
    ['0-base', '1-mega', '2-base']

    Raises:
        UsageError: Both arms are the same.
    """
    if base == candidate:
        raise UsageError(f"a plan compares two arms, and both are {base}", hint="name two arms: moeprof run base mega")
    arms = {"a": base, "b": candidate}
    return tuple(Block(number, arms[letter]) for number, letter in enumerate(plan))


def missing(
    planned: Sequence[Block], plan: PlanName, done: Iterable[Manifest], fingerprint_of: dict[str, str]
) -> list[Block]:
    """Return the blocks that no complete run stands for yet.

    A stored run stands for a block if its plan, number and arm are the block's and its fingerprint is what the arm would have now:
    a run of another configuration is no reason to skip one.

    Args:
        planned: All blocks.
        plan: The plan's name.
        done: Manifests of stored runs.
        fingerprint_of: Fingerprint that each arm would have now.
    """
    finished = {
        (run.block, run.arm)
        for run in done
        if run.outcome == "complete" and run.plan == plan and run.fingerprint == fingerprint_of.get(run.arm)
    }
    return [block for block in planned if (block.number, block.arm) not in finished]


def newest_kernels(runs: Sequence[Run], plan: PlanName, fingerprint: str) -> Mapping[str, int] | None:
    """Return the launches per iteration of the newest of an arm's runs that belongs to a plan; None where there is none.

    Args:
        runs: Of the arm, oldest first.
        plan: The plan's name.
        fingerprint: That the arm would have now.
    """
    for run in reversed(runs):
        told = run.manifest
        if told.outcome == "complete" and told.plan == plan and told.fingerprint == fingerprint:
            kernels = told.extra.get("per_iteration")
            if isinstance(kernels, dict):
                return {name: count for name, count in kernels.items() if isinstance(count, int)}
    return None
