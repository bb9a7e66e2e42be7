"""Counts whose commonest value is equal on both sides while some iterations, or some ranks, hold another one."""

from __future__ import annotations

from dataclasses import dataclass

from moeprof.analyzers.comparison.sides import Side
from moeprof.analyzers.tables import CLASSES, PHASES
from moeprof.findings import Finding

#: Classes whose counts vary with what is sampled or copied: a minority there is no change of structure.
_VARYING = frozenset({"sampling", "elementwise", "copy", "memcpy", "memset", "other"})


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
            if class_ not in _VARYING and left != right:
                found.append(Unsteady(class_, phase, tuple(sorted(left)), tuple(sorted(right))))
    return tuple(found)


def _seen(side: Side) -> dict[tuple[str, str], set[int]]:
    ranks = [{(row.class_, row.phase): set(row.distinct) for row in rank.counts} for rank in side.ranks]
    keys = {key for rank in ranks for key in rank}
    return {key: set().union(*(rank.get(key) or {0} for rank in ranks)) for key in keys}


def _values(values: tuple[int, ...]) -> str:
    return " or ".join(str(value) for value in values)
