"""The timed passes of runs, read from the files that the clients wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from moeprof.analyzers.serving.results import ArmSamples, Block, ServingSample
from moeprof.analyzers.serving.samples import place, sample_of
from moeprof.errors import ManifestError
from moeprof.findings import JsonValue
from moeprof.series.selection import is_ingested
from moeprof.store.run import Run
from moeprof.traces.benchmarks.reading import read_results
from moeprof.traces.benchmarks.results import BenchmarkPass


def samples_of_runs(arm: str, source: str, runs: Sequence[Run]) -> ArmSamples:
    """Return the passes of runs that belong together.

    Args:
        arm: Name of the arm.
        source: What was named.
        runs: The runs; each is a block, or part of one where it was ingested.

    Raises:
        ManifestError: A manifest names a pass that is not there.
        ResultError: The output of a pass cannot be read.
    """
    samples = [sample for run in runs for sample in _samples(run)]
    numbers = sorted({sample.block for sample in samples})
    blocks = tuple(_block(number, [run for run in runs if run.manifest.block == number]) for number in numbers)
    return ArmSamples(arm, source, tuple(sorted(samples, key=place)), blocks)


def _samples(run: Run) -> list[ServingSample]:
    counted: dict[str, int] = {}
    samples = []
    for entry in run.manifest.passes:
        report = _report(run, entry)
        at = entry.get("at")
        times = [float(moment) for moment in at if isinstance(moment, int | float)] if isinstance(at, list) else []
        name = run.manifest.workload.get("name")
        sample = sample_of(
            report,
            block=run.manifest.block,
            number=0,
            source=f"{run.name}/{entry.get('file')}",
            workload=name if isinstance(name, str) else None,
            started=times[0] if len(times) == 2 else None,
            ended=times[1] if len(times) == 2 else None,
        )
        point = sample.workload.point
        given = entry.get("number")
        number = given if isinstance(given, int) else counted.get(point, 0)
        counted[point] = number + 1
        samples.append(replace(sample, number=number))
    return samples


def _report(run: Run, entry: Mapping[str, JsonValue]) -> BenchmarkPass:
    file, repeat = entry.get("file"), entry.get("repeat", 0)
    path = run.path / str(file)
    # A manifest is a file like any other: what it names must lie in its run.
    inside = isinstance(file, str) and not Path(file).is_absolute() and ".." not in Path(file).parts
    if not inside or not path.is_file():
        raise ManifestError(f"pass {file} of the run is not there", path=str(run.path))
    reports = read_results(path).passes
    if not isinstance(repeat, int) or not 0 <= repeat < len(reports):
        raise ManifestError(f"{file} of the run has no report {repeat}", path=str(run.path))
    return reports[repeat]


def _block(number: int, runs: Sequence[Run]) -> Block:
    if any(is_ingested(run) for run in runs):
        return Block(number, source=", ".join(run.name for run in runs))
    (run,) = runs
    return Block(number, run.manifest.fingerprint, _moment(run.manifest.started), _moment(run.manifest.ended), run.name)


def _moment(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
