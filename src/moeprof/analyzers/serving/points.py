"""The measuring points that two arms share, or that only one of them has."""

from __future__ import annotations

from dataclasses import dataclass

from moeprof.analyzers.serving.results import ArmSamples, ServingSample


@dataclass(frozen=True, slots=True)
class Point:
    """The passes of one workload on both sides."""

    name: str
    base: tuple[ServingSample, ...]
    candidate: tuple[ServingSample, ...]


def points(base: ArmSamples, candidate: ArmSamples) -> tuple[Point, ...]:
    """Return the points, by name; where either side has a single one they are held against each other whatever they are called."""
    before, after = _by_point(base), _by_point(candidate)
    if len(before) == len(after) == 1:
        (first, passes), (second, others) = *before.items(), *after.items()
        return (Point(first if first == second else f"{first} against {second}", passes, others),)
    names = sorted({*before, *after}, key=_natural)
    return tuple(Point(name, before.get(name, ()), after.get(name, ())) for name in names)


def _by_point(arm: ArmSamples) -> dict[str, tuple[ServingSample, ...]]:
    found: dict[str, tuple[ServingSample, ...]] = {}
    for sample in arm.samples:
        found[sample.workload.point] = (*found.get(sample.workload.point, ()), sample)
    return found


def _natural(name: str) -> tuple[int, str]:
    return len(name), name
