"""How the passes of two arms lie in time: blocks, halves of the base arm, and the label that this design earns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from moeprof.analyzers.serving.results import ArmSamples, Drift, Label, ServingSample
from moeprof.wording import listed, signed

_LEAST_A = 2
_LEAST_B = 3
_LEAST_LONG = 4


@dataclass(frozen=True, slots=True)
class Stay:
    """One block of one arm, as far as it has passes of the workload in question."""

    number: int
    is_base: bool
    passes: int
    started: float | None
    ended: float | None
    fingerprint: str | None


@dataclass(frozen=True, slots=True)
class Design:
    """The blocks of a comparison in their order.

    Attributes:
        stays: The blocks.
        fault: Why it is no A/B/A at all, in a clause; None where it is one.
    """

    stays: tuple[Stay, ...]
    fault: str | None


def design(
    base: ArmSamples, candidate: ArmSamples, before: Sequence[ServingSample], after: Sequence[ServingSample]
) -> Design:
    """Return the design of a comparison.

    Args:
        base: The base arm, for what is known of its blocks.
        candidate: The other arm.
        before: The base passes that are compared: those of one workload.
        after: The candidate's.
    """
    stays = [*_stays(base, before, is_base=True), *_stays(candidate, after, is_base=False)]
    timed = all(stay.started is not None for stay in stays)
    ordered = (
        sorted(stays, key=lambda stay: (stay.started or 0.0, stay.number))
        if timed
        else sorted(stays, key=lambda stay: (stay.number, not stay.is_base))
    )
    return Design(tuple(ordered), _fault(ordered, timed=timed))


def halves(base: Sequence[ServingSample]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the places of the base passes before and after the candidate; None where there is one block only.

    Two blocks are the halves themselves; more blocks are cut in the middle of their passes.

    Args:
        base: The passes, in order of time.
    """
    blocks = sorted({sample.block for sample in base})
    if len(blocks) < 2:
        return None
    if len(blocks) == 2:
        first = tuple(place for place, sample in enumerate(base) if sample.block == blocks[0])
    else:
        first = tuple(range((len(base) + 1) // 2))
    return first, tuple(place for place in range(len(base)) if place not in first)


def label(found: Design, change: Fraction | None, drift: Drift | None) -> tuple[Label, str]:
    """Return the label of a metric, and why no stronger one.

    Args:
        found: The design.
        change: Of the medians.
        drift: Of the base arm.
    """
    if found.fault is not None or drift is None:
        return "A/B only", found.fault or "the base arm has one block only"
    if not drift.a_ranges_overlap:
        return "A/B/A, drifted", "the ranges of the base blocks before and after do not overlap"
    if drift.drift is not None and change is not None and abs(drift.drift) > abs(change) / 2:
        return (
            "A/B/A, drifted",
            f"the base arm drifted by {signed(drift.drift)}, more than half of the change of {signed(float(change))}",
        )
    return "A/B/A complete", ""


def _stays(arm: ArmSamples, samples: Sequence[ServingSample], *, is_base: bool) -> list[Stay]:
    known = {block.number: block for block in arm.blocks}
    found = []
    for number in sorted({sample.block for sample in samples}):
        mine = [sample for sample in samples if sample.block == number]
        starts = [sample.started for sample in mine if sample.started is not None]
        ends = [sample.ended for sample in mine if sample.ended is not None]
        whole = len(starts) == len(ends) == len(mine)
        block = known.get(number)
        found.append(
            Stay(
                number,
                is_base,
                len(mine),
                min(starts) if whole else None if block is None else block.started,
                max(ends) if whole else None if block is None else block.ended,
                None if block is None else block.fingerprint,
            )
        )
    return found


def _fault(stays: Sequence[Stay], *, timed: bool) -> str | None:
    """Return why the blocks are no A/B/A; None where they are."""
    order = "".join("A" if stay.is_base else "B" for stay in stays)
    if not timed:
        numbers = [stay.number for stay in stays]
        shared = sorted({number for number in numbers if numbers.count(number) > 1})
        if shared:
            return f"the order of the blocks is not known: both arms have a block {listed(shared)} and no time stamps"
    elif (by_number := _out_of_order(stays)) is not None:
        return by_number
    if timed and any((one.ended or 0.0) > (two.started or 0.0) for one, two in pairwise(stays)):
        return "blocks overlap in time"
    if len(order) >= 3 and order[0] == order[-1] == "B":
        return f"the blocks are {'/'.join(order)}: the candidate was measured again after the base; the other way round it is an A/B/A"
    if len(order) < 3 or order[0] != "A" or order[-1] != "A":
        return f"the blocks are {'/'.join(order)}: the base arm was not measured again after the candidate"
    short = _too_few(stays, order)
    if short is not None:
        return short
    fingerprints = {stay.fingerprint for stay in stays}
    if len(fingerprints) > 1:
        return "not all blocks have the same fingerprint"
    return None


def _out_of_order(stays: Sequence[Stay]) -> str | None:
    numbers = [stay.number for stay in stays]
    if len(set(numbers)) == len(numbers) and numbers != sorted(numbers):
        return "the time stamps contradict the numbers of the blocks"
    return None


def _too_few(stays: Sequence[Stay], order: str) -> str | None:
    if len(order) == 3:
        for stay in stays:
            least = _LEAST_A if stay.is_base else _LEAST_B
            if stay.passes < least:
                return f"block {stay.number} has {stay.passes} passes, and {least} are needed"
        return None
    for is_base, name in ((True, "base"), (False, "candidate")):
        passes = sum(stay.passes for stay in stays if stay.is_base is is_base)
        if passes < _LEAST_LONG:
            return f"the {name} arm has {passes} passes, and a plan of {len(order)} blocks needs {_LEAST_LONG}"
    return None
