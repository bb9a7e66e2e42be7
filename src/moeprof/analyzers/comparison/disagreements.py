"""Findings of a comparison: what of the sides cannot be set against each other, and where ranks do not agree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from moeprof.analyzers.comparison.differences import BackendChange, class_order
from moeprof.analyzers.comparison.sides import PAIR_FIGURES, Side, label, window_totals
from moeprof.analyzers.comparison.votes import Votes
from moeprof.findings import Finding, JsonValue
from moeprof.wording import plural


def obstacle(base: Side, candidate: Side) -> str | None:
    """Say why two sides cannot be compared, or None where they can."""
    units = [sorted({rank.launch_unit for rank in side.report.ranks}) for side in (base, candidate)]
    if all(units) and not set(units[0]) & set(units[1]):
        return f"base launches {units[0][0]}s, candidate {units[1][0]}s"
    if not base.ranks and not candidate.ranks:
        before, after = window_totals(base.report), window_totals(candidate.report)
        if not before and not after:
            return "neither side has launches to compare"
        return None if before == after else "neither side has counted iterations, and the totals of the windows differ"
    for side, other in ((base, candidate), (candidate, base)):
        if not side.ranks:
            return f"{side.name} has no iterations with counts, {other.name} has {iterations_text(other)} a rank"
    if base.counts_over != candidate.counts_over:
        return f"base counts over {base.counts_over} iterations, candidate over {candidate.counts_over}"
    return None


def disagreements(base: Side, candidate: Side, why: str | None) -> Iterable[Finding]:
    """Yield what a reader must know about the sides before reading the figures."""
    evidence: dict[str, JsonValue] = {side.name: _standing(side) for side in (base, candidate)}
    if why is not None:
        yield Finding("not-comparable", "warning", f"not comparable: {why}", None, evidence)
    elif not base.ranks:
        message = "no counted iterations on either side: totals of the whole windows were compared"
        if not window_totals(base.report):
            message = "no launches on either side: both windows hold the same"
        yield Finding("no-iterations", "warning", message, None, evidence)
    elif _numbers(base) != _numbers(candidate):
        message = (
            f"base counts {iterations_text(base)} iterations a rank, candidate {iterations_text(candidate)}: "
            "figures are per iteration"
        )
        yield Finding("iterations-differ", "note", message, None, evidence)
    if len(base.report.ranks) != len(candidate.report.ranks):
        message = f"base has {len(base.report.ranks)} ranks, candidate {len(candidate.report.ranks)}"
        yield Finding("rank-counts-differ", "warning", message, None, evidence)
    for side in (base, candidate):
        yield from _left_out(side)
        yield from _ranks_differ(side)
        yield from _carried(side)


def backend_findings(changes: Iterable[BackendChange]) -> Iterable[Finding]:
    """Yield a note for each class and phase whose backends differ."""
    for change in changes:
        evidence: dict[str, JsonValue] = {
            "class": change.class_,
            "phase": change.phase,
            "base": list(change.base),
            "candidate": list(change.candidate),
        }
        message = f"{change.class_} {change.phase}: {backends(change.base)} -> {backends(change.candidate)}"
        yield Finding("backend-changed", "note", message, None, evidence)


def arms_equal(base: Side, candidate: Side, kernels: int) -> Finding:
    """Return the warning that two sources launch the same kernels equally often."""
    message = "the kernel sets are equal: if the arms were meant to differ, the flag had no effect"
    evidence: dict[str, JsonValue] = {
        "base": base.report.subject.source,
        "candidate": candidate.report.subject.source,
        "kernels": kernels,
    }
    return Finding("arms-equal", "warning", message, None, evidence)


def backends(names: tuple[str, ...]) -> str:
    """Return backends for a sentence."""
    return " + ".join(names) if names else "none named"


def iterations_text(side: Side) -> str:
    """Return how many iterations a rank has: "22", "20 to 22" where ranks differ."""
    numbers = _numbers(side)
    return " to ".join(str(number) for number in dict.fromkeys((numbers[0], numbers[-1]))) if numbers else "some"


def _carried(side: Side) -> Iterable[Finding]:
    for found in side.report.findings:
        # What ranks disagree on is said above, with the value that stands for the side.
        if found.severity != "note" and not (found.slug == "ranks-differ" and side.ranks):
            yield replace(found, evidence={**found.evidence, "side": side.name})


def _left_out(side: Side) -> Iterable[Finding]:
    kept = {label(rank) for rank in side.ranks}
    left_out = sorted(label(rank) for rank in side.report.ranks if label(rank) not in kept)
    if side.ranks and left_out:
        message = (
            f"{len(left_out)} of {len(side.report.ranks)} ranks have no counts over "
            f"{side.counts_over} iterations; the figures are those of the others"
        )
        evidence: dict[str, JsonValue] = {"side": side.name, "ranks": list[JsonValue](left_out)}
        yield Finding("ranks-left-out", "warning", message, None, evidence)


def _ranks_differ(side: Side) -> Iterable[Finding]:
    for key in sorted(side.classes, key=class_order):
        class_, phase = key
        votes = side.classes[key]
        if not votes.agree:
            evidence: dict[str, JsonValue] = {
                "side": side.name,
                "class": class_,
                "phase": phase,
                "values": votes.to_dict(),
            }
            yield _differing(f"launches of {class_} in {phase}", votes, evidence)
    for kind, figures in PAIR_FIGURES.items():
        for figure in figures:
            votes = side.pair(kind, figure)
            if not votes.agree:
                evidence = {"side": side.name, "pairs": kind, "figure": figure, "values": votes.to_dict()}
                yield _differing(f"pairs.{kind}.{figure}", votes, evidence)
    kernels = {key: votes for key, votes in sorted(side.kernels.items()) if not votes.agree}
    if kernels:
        listed: list[JsonValue] = [
            {"name": name, "class": class_, "phase": phase, "values": votes.to_dict()}
            for (name, class_, phase), votes in kernels.items()
        ]
        how = "the most frequent values are used"
        if any(votes.tied for votes in kernels.values()):
            how += f", where there is none those of {side.standing}"
        unit = plural(len(kernels), side.ranks[0].launch_unit)
        message = f"launches per iteration of {unit} differ between ranks; {how}"
        yield Finding("ranks-differ", "warning", message, None, {"side": side.name, "kernels": listed})


def _differing(what: str, votes: Votes, evidence: dict[str, JsonValue]) -> Finding:
    values = ", ".join(f"{rank}: {'no data' if value is None else value}" for rank, value in votes.by_rank)
    whose = f", that of {votes.standing}," if votes.tied else ""
    message = f"{what} per iteration differ between ranks ({values}); {votes.value}{whose} is used"
    return Finding("ranks-differ", "warning", message, None, evidence)


def _standing(side: Side) -> dict[str, JsonValue]:
    return {
        "counts_over": side.counts_over,
        "iterations": side.iterations.to_dict(),
        "ranks": len(side.report.ranks),
    }


def _numbers(side: Side) -> list[int]:
    return sorted({count for _, count in side.iterations.by_rank if count is not None})
