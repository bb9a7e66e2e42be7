"""One arm of a baseline: from an observation to its JSON object and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from moeprof.analyzers.accuracy.results import Evaluation
from moeprof.analyzers.environment.results import RunRecord
from moeprof.analyzers.environment.rules import rule_of
from moeprof.analyzers.gates.observation import Count, Observation, Structure
from moeprof.baselines.document import Object, Reader
from moeprof.baselines.passes import samples_from, serving_of
from moeprof.findings import Finding, JsonValue

_KEYS = ("accepted", "structure", "serving", "evaluations", "runs", "findings", "history")


def object_of(found: Observation, accepted: Object) -> Object:
    """Return an observation as the object that a baseline keeps; metrics without a direction are left out.

    Args:
        found: What was observed.
        accepted: Reason, date and source of the acceptance.
    """
    return {
        "accepted": accepted,
        "structure": None if found.structure is None else _structure(found.structure),
        "serving": {} if found.samples is None else serving_of(found.samples),
        "evaluations": [_evaluation(run) for run in found.evaluations],
        "runs": [_run(run) for run in found.runs],
        "findings": [*sorted({finding.slug for finding in found.findings})],
        "history": [],
    }


def observation_of(arm: str, value: Object, path: str) -> Observation:
    """Return the arm of a baseline as an observation.

    Args:
        arm: Its name in the file.
        value: Its object.
        path: The file, for errors.

    Raises:
        BaselineError: Something is not as `object_of` writes it; the message names the key.
    """
    read = Reader(value, f"arms.{arm}", path)
    read.only(*_KEYS)
    accepted = read.part("accepted")
    accepted.text("reason")
    accepted.maybe_text("date")
    for entry in read.parts("history"):
        entry.text("reason")
        entry.text("what")
    source = accepted.maybe_text("source") or arm
    structure = None if value.get("structure") is None else _structure_from(read.part("structure"))
    return Observation(
        arm=arm,
        source=source,
        structure=structure,
        samples=samples_from(read.part("serving"), arm, source),
        evaluations=tuple(_evaluation_from(item) for item in read.parts("evaluations")),
        runs=tuple(_run_from(item) for item in read.parts("runs")),
        findings=tuple(Finding(slug, "note", "known from the baseline") for slug in read.texts("findings")),
        traced=structure is not None,
        oldest=_oldest(read.parts("history")),
    )


def _oldest(history: list[Reader]) -> dict[str, float]:
    """Return the first median of each metric in the history; counts have no place there."""
    found: dict[str, float] = {}
    for entry in history:
        before = entry.value.get("before")
        for key, value in before.items() if isinstance(before, dict) else ():
            if " " in key and isinstance(value, int | float) and not isinstance(value, bool):
                found.setdefault(key, float(value))
    return found


def _structure(found: Structure) -> Object:
    return {
        "counts_over": found.counts_over,
        "device": found.device,
        "iterations": found.iterations,
        "launch_unit": found.launch_unit,
        "ranks": [*found.ranks],
        "launches": _counts(found.launches),
        "pairs": _counts(found.pairs),
        "backends": {key: [*names] for key, names in found.backends.items()},
    }


def _counts(counts: Mapping[str, Count]) -> JsonValue:
    """Return counts; a constant one is a number, another one its commonest value and all that was seen."""
    return {
        key: count.value if count.constant or count.value is None else {"commonest": count.value, "seen": [*count.seen]}
        for key, count in counts.items()
    }


def _structure_from(read: Reader) -> Structure:
    read.only("counts_over", "device", "iterations", "launch_unit", "ranks", "launches", "pairs", "backends")
    backends = read.part("backends")
    ranks = read.texts("ranks")
    if len(set(ranks)) < len(ranks) or not ranks:
        raise read.error("names a rank twice, or none", "ranks")
    return Structure(
        counts_over=read.text("counts_over"),
        launch_unit=read.maybe_text("launch_unit"),
        device=read.maybe_text("device"),
        ranks=ranks,
        iterations=read.maybe_whole("iterations"),
        launches=_counts_from(read.part("launches")),
        pairs=_counts_from(read.part("pairs")),
        backends={key: backends.texts(key) for key in backends.value},
    )


def _counts_from(read: Reader) -> dict[str, Count]:
    found = {}
    for key, value in read.value.items():
        if isinstance(value, dict):
            entry = read.part(key)
            entry.only("commonest", "seen")
            seen, commonest = entry.wholes("seen"), entry.whole("commonest")
            if not seen:
                raise entry.error("holds nothing", "seen")
            found[key] = Count(commonest, tuple(sorted(set(seen))))
        else:
            number = read.maybe_whole(key)
            found[key] = Count(number, () if number is None else (number,))
    return found


def _evaluation(run: Evaluation) -> Object:
    return {
        "task": run.task,
        "total": run.total,
        "correct": [*run.correct],
        "invalid": None if run.invalid is None else [*run.invalid],
        "shots": run.shots,
    }


def _evaluation_from(read: Reader) -> Evaluation:
    read.only("task", "total", "correct", "invalid", "shots")
    total, correct = read.whole("total"), read.wholes("correct")
    if not correct or max(correct) > total or total == 0:
        raise read.error(f"holds no counts of right answers among {total} questions", "correct")
    invalid = None if read.value.get("invalid") is None else read.wholes("invalid")
    return Evaluation(read.text("task"), total, correct, "baseline", invalid, read.maybe_whole("shots"))


def _run(run: RunRecord) -> Object:
    return {
        "block": run.block,
        "commanded": run.commanded,
        # What is only listed, paths and names of hosts, has no place in a repository.
        "facts": {key: value for key, value in run.facts.items() if rule_of(key).weight == "matters"},
        "fingerprint": run.fingerprint,
        "own": None if run.own is None else cast("JsonValue", sorted(run.own)),
        "source": run.source,
    }


def _run_from(read: Reader) -> RunRecord:
    read.only("block", "commanded", "facts", "fingerprint", "own", "source")
    return RunRecord(
        source=read.text("source"),
        block=read.whole("block"),
        facts=read.part("facts").value,
        commanded=read.value.get("commanded") is True,
        own=None if read.value.get("own") is None else frozenset(read.texts("own")),
        fingerprint=read.maybe_text("fingerprint"),
    )
