"""One side of a comparison: what a name or a path stands for, as trace, passes and evaluations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from moeprof.analyzers.serving.results import ArmSamples
from moeprof.analyzers.serving.samples import sample_of
from moeprof.errors import InputNotFoundError
from moeprof.series.passes import samples_of_runs
from moeprof.series.selection import series
from moeprof.store.folder import Store
from moeprof.store.manifest import FILE, Manifest
from moeprof.store.run import Run
from moeprof.store.subject import find_run, store_root
from moeprof.traces.benchmarks.files import evaluations, files_in, passes, results_in
from moeprof.traces.benchmarks.reading import read_results
from moeprof.traces.benchmarks.results import EvaluationResult, ResultFile

EVALUATIONS = "evaluations"


@dataclass(frozen=True, slots=True)
class Side:
    """What a side of a comparison holds.

    Attributes:
        arm: Name of the arm; None for a path.
        source: What was named.
        trace: Path or run name of the trace to report on; None where there is none.
        samples: The timed passes; None where there are none.
        evaluations: Each with the file that it came from.
        runs: The runs of the store that it rests on, in order of block.
    """

    arm: str | None
    source: str
    trace: str | None
    samples: ArmSamples | None = None
    evaluations: tuple[tuple[str, EvaluationResult], ...] = ()
    runs: tuple[Run, ...] = field(default=(), compare=False)


def sides(base: str, candidate: str, store: str | os.PathLike[str] | None = None) -> tuple[Side, Side]:
    """Return both sides of a comparison.

    Args:
        base: A path, an arm of the store or a run's name.
        candidate: Likewise.
        store: The store's folder; None: as `moeprof.store.subject.store_root` finds it.

    Raises:
        InputNotFoundError: There is no such thing.
        ManifestError, ResultError, ConflictError: What is there cannot be used.
    """
    named = [find_run(name, store) for name in (base, candidate)]
    kept = Store(store_root(store)) if any(named) else None
    runs = [_runs(name, run, kept) for name, run in zip((base, candidate), named, strict=True)]
    first, second = (
        _of_path(name) if run is None else _of_arm(name, run, mine, others)
        for name, run, mine, others in zip((base, candidate), named, runs, reversed(runs), strict=True)
    )
    return first, second


def _runs(name: str, run: Run | None, store: Store | None) -> list[Run]:
    """Return the complete runs of an arm, or the one run that was named."""
    if run is None or store is None:
        return []
    if "/" in name:
        return [run]
    return [item for item in store.runs(run.manifest.arm) if item.manifest.outcome == "complete"]


def _of_arm(name: str, run: Run, runs: Sequence[Run], others: Sequence[Run]) -> Side:
    arm = run.manifest.arm
    measured = series(
        [item for item in runs if item.manifest.passes], [item for item in others if item.manifest.passes]
    )
    traced = [item for item in runs if item.has_traces]
    in_series = [item for item in traced if item in measured]
    latest = in_series or traced
    trace = latest[-1] if latest else None
    used = [*measured, *(item for item in latest[-1:] if item not in measured)]
    return Side(
        arm=arm,
        source=name,
        trace=None if trace is None else trace.name,
        samples=samples_of_runs(arm, name, measured) if measured else None,
        evaluations=tuple(item for each in runs for item in _evaluations(each)),
        runs=tuple(used),
    )


def _evaluations(run: Run) -> list[tuple[str, EvaluationResult]]:
    """Return the evaluations that were ingested with a run."""
    entries = run.manifest.extra.get(EVALUATIONS)
    found = []
    for entry in entries if isinstance(entries, list) else []:
        file = entry.get("file") if isinstance(entry, dict) else None
        if isinstance(file, str) and not Path(file).is_absolute() and ".." not in Path(file).parts:
            found += [(f"{run.name}/{file}", item) for item in read_results(run.path / file).evaluations]
    return found


def _of_path(path: str) -> Side:
    folder = Path(path)
    if (folder / FILE).is_file() and (folder / "traces").is_dir():
        run = Run(folder, Manifest.read(folder / FILE))
        samples = samples_of_runs(run.manifest.arm, path, [run]) if run.manifest.passes else None
        trace = path if run.has_traces or samples is None else None
        return Side(None, path, trace, samples, tuple(_evaluations(run)), (run,))
    parts = [path] if _exists(path) else [part.strip() for part in path.split(",")]
    held = [(file, found) for part in parts for file in _files(part) if (found := results_in(file)) is not None]
    if not held:
        return Side(None, path, path)
    return Side(
        arm=None,
        source=path,
        trace=_trace(parts, [file for file, _ in held]),
        samples=_samples(path, held),
        evaluations=evaluations(held),
    )


def _samples(path: str, held: Sequence[tuple[str, ResultFile]]) -> ArmSamples | None:
    counted: dict[str, int] = {}
    samples = []
    for found in passes(held):
        sample = sample_of(found.report, block=0, number=0, source=found.path)
        number = counted.get(sample.workload.point, 0)
        counted[sample.workload.point] = number + 1
        samples.append(sample_of(found.report, block=0, number=number, source=found.path))
    return ArmSamples(None, path, tuple(samples)) if samples else None


def _trace(parts: Sequence[str], results: Sequence[str]) -> str | None:
    """Return what of the paths is a trace beside the results."""
    rest = [part for part in parts if part not in results and (not Path(part).is_dir() or _holds_traces(part))]
    return ",".join(rest) or None


def _holds_traces(folder: str) -> bool:
    return any(".trace.json" in Path(file).name for file in files_in(folder))


def _files(part: str) -> list[str]:
    if Path(part).is_dir():
        return files_in(part)
    return [part] if Path(part).is_file() else []


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError as error:
        raise InputNotFoundError(f"cannot read the path: {error.strerror}", path=path) from error
