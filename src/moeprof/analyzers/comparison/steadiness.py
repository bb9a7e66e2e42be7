"""Counts whose commonest value is equal on both sides while some iterations, or some ranks, hold another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moeprof.analyzers.comparison.sides import ClassKey, Side
from moeprof.analyzers.results import StructureRow
from moeprof.analyzers.tables import CLASSES, PHASES
from moeprof.findings import Finding

#: Classes whose counts vary with what is sampled or copied: a minority there is no change of structure.
VARYING = frozenset({"sampling", "elementwise", "copy", "memcpy", "memset", "other"})


@dataclass(frozen=True, slots=True)
class Unsteady:
    """A class and phase in which the sides hold different sets of values per iteration, over all ranks."""

    class_: str
    phase: str
    base: tuple[int, ...]
    candidate: tuple[int, ...]

    @property
    def sentence(self) -> str:
        """Return what a person reads."""
        return f"{self.phase}: {self.class_} launches per iteration are {_values(self.base)} in base and {_values(self.candidate)} in candidate"

    def finding(self) -> Finding:
        """Return it as a warning."""
        evidence = {"class": self.class_, "phase": self.phase}
        return Finding(
            "minority-differs",
            "warning",
            f"{self.sentence}: the commonest value alone does not tell them apart",
            evidence={**evidence, "base": list(self.base), "candidate": list(self.candidate)},
        )


def unsteady(base: Side, candidate: Side) -> tuple[Unsteady, ...]:
    """Return where the values seen differ between two sides, by phase and class; classes that vary by nature are left out."""
    before, after = _seen(base), _seen(candidate)
    found = []
    for phase in PHASES:
        for class_ in CLASSES:
            key = (class_, phase)
            left, right = before.get(key, {0}), after.get(key, {0})
            if class_ not in VARYING and left != right:
                found.append(Unsteady(class_, phase, tuple(sorted(left)), tuple(sorted(right))))
    return tuple(found)


def varying(base: Side, candidate: Side) -> frozenset[ClassKey]:
    """Return the classes and phases, of those that vary by nature, that vary on both sides within ranges that overlap.

    How many small operators sample and copy depends on what is sampled: two captures of one arm differ in their commonest count there.
    """
    before, after = _ranges(base), _ranges(candidate)
    return frozenset(
        key
        for key in before.keys() & after.keys()
        if before[key][0] <= after[key][1] and after[key][0] <= before[key][1]
    )


def _ranges(side: Side) -> dict[ClassKey, tuple[int, int]]:
    """Return least and greatest count of the varying classes that are not constant on some rank."""
    moving = {
        (row.class_, row.phase)
        for rank in side.ranks
        for row in rank.counts
        if row.constant is False and row.class_ in VARYING
    }
    seen = _seen(side)
    return {key: (min(seen[key]), max(seen[key])) for key in moving}


def varying_finding(rows: Sequence[StructureRow]) -> Finding:
    """Return the note on classes whose commonest counts differ without being a change."""
    said = [f"{row.class_} in {row.phase} {row.base} and {row.candidate}" for row in rows]
    return Finding(
        "counts-vary",
        "note",
        f"counts that vary within both arms, in ranges that overlap, are no change: {', '.join(said)} (commonest values)",
        evidence={"classes": [f"{row.class_}/{row.phase}" for row in rows]},
    )


def _seen(side: Side) -> dict[ClassKey, set[int]]:
    ranks = [{(row.class_, row.phase): set(row.distinct) for row in rank.counts} for rank in side.ranks]
    keys = {key for rank in ranks for key in rank}
    return {key: set().union(*(rank.get(key) or {0} for rank in ranks)) for key in keys}


def _values(values: tuple[int, ...]) -> str:
    return " or ".join(str(value) for value in values)
