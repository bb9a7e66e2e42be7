"""Write what was ingested: one run per arm, block and workload; all of them, or none."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from moeprof.analyzers.serving.samples import sample_of
from moeprof.errors import ConflictError, MoeprofError
from moeprof.findings import JsonValue
from moeprof.ingest.content import Group, Pass, digest
from moeprof.series.selection import INGESTED, is_ingested
from moeprof.series.side import EVALUATIONS
from moeprof.store import disk
from moeprof.store.folder import Store
from moeprof.store.manifest import Manifest
from moeprof.store.run import Run
from moeprof.store.writer import RunWriter
from moeprof.traces.benchmarks.files import results_in, same_pass

Normalise = Callable[[Path, Path], None]

_NO_DATA = "the files that were ingested do not tell"
_GATES = (
    "token-counts", "finite-logprobs", "expected-backend", "markers-present", "traces-complete", "profile-apart",
    "steady-clocks", "no-cotenants", "arms-differ",
)  # fmt: skip


def check_against_store(groups: Sequence[Group], store: Store) -> None:
    """Refuse what the store already holds.

    Raises:
        ConflictError: A file is stored with its arm already, or a pass of that number.
    """
    for group in groups:
        for run in store.runs(group.arm):
            _refuse_copies(group, run)
            same = is_ingested(run) and run.manifest.block == group.block
            if same and run.manifest.workload.get("name") == group.workload:
                _refuse_numbers(group, run)


def write(groups: Sequence[Group], store: Store, normalise: Normalise) -> tuple[Run, ...]:
    """Write the groups as runs and return them; where one cannot be written, none is there.

    Args:
        groups: What to write.
        store: Its lock must be held.
        normalise: Writes the normalised tables of a folder of traces to another folder.

    Raises:
        StoreWriteError: The disk is full or does not allow it.
        MoeprofError: A trace cannot be read.
    """
    done: list[Run] = []
    with ExitStack() as stack:
        ready = []
        for group in groups:
            writer = stack.enter_context(store.begin(group.arm, group.block))
            with disk.explained("store what was ingested", writer.path):
                ready.append((writer, _filled(writer, group, normalise)))
        try:
            for writer, manifest in ready:
                done.append(writer.commit(manifest))
        except BaseException:
            for run in done:
                store.remove(run)
            raise
    return tuple(done)


def _filled(writer: RunWriter, group: Group, normalise: Normalise) -> Manifest:
    names = {path: f"{folder}/{_copied(path, writer.path / folder)}" for path, folder in _folders(group)}
    if group.traces:
        normalise(writer.path / "traces", writer.path / "events")
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    evaluations = dict.fromkeys(path for path, _ in group.evaluations)
    return Manifest(
        arm=group.arm,
        block=group.block,
        started=now,
        ended=now,
        workload={} if group.workload is None else {"name": group.workload},
        passes=tuple(_entry(item, names) for item in group.passes),
        gates=tuple(_gates(group)),
        extra={
            INGESTED: True,
            EVALUATIONS: [{"file": names[path]} for path in evaluations],
        },
    )


def _folders(group: Group) -> list[tuple[str, str]]:
    """Return each file with the folder of the run that it goes into."""
    evaluated = {path for path, _ in group.evaluations}
    return [
        (path, "traces" if path in group.traces else "eval" if path in evaluated else "bench") for path in group.files
    ]


def _copied(path: str, folder: Path) -> str:
    """Copy a file under its own name, or the next free one, and return that name."""
    folder.mkdir(exist_ok=True)
    source, number = Path(path), 1
    target = folder / source.name
    while target.exists():
        number += 1
        target = folder / f"{number}-{source.name}"
    shutil.copyfile(source, target)
    return target.name


def _entry(item: Pass, names: dict[str, str]) -> dict[str, JsonValue]:
    report = item.found.report
    return {
        "file": names[item.found.path],
        "text": None if item.found.text is None else names[item.found.text],
        "repeat": report.repeat,
        "number": item.number,
        "client": report.client,
        "date": report.date,
        "failed": report.count("failed"),
        "problems": [],
        "raw": dict(sorted(report.values.items())),
        "at": None,
    }


def _gates(group: Group) -> list[dict[str, JsonValue]]:
    failed = [item.found.report.count("failed") for item in group.passes]
    known = [count for count in failed if count is not None]
    if not known or len(known) < len(failed):
        first = ("no-data", _NO_DATA)
    elif sum(known):
        first = ("fail", f"{sum(known)} requests failed")
    else:
        first = ("pass", f"no request failed in {len(known)} passes")
    outcomes = [("no-failed-requests", *first), *((name, "no-data", _NO_DATA) for name in _GATES)]
    return [
        {"name": name, "outcome": outcome, "required": False, "message": message, "evidence": {}}
        for name, outcome, message in outcomes
    ]


def _refuse_copies(group: Group, run: Run) -> None:
    kept = {entry.sha256: name for name, entry in run.manifest.files.items()}
    for path in group.files:
        if (name := kept.get(digest(path))) is not None:
            raise ConflictError(
                f"{Path(path).name} is already stored, as {name} of {run.name}",
                path=path,
                hint=f"moeprof runs remove {run.name} takes it out",
            )
    for item in group.passes:
        for entry in run.manifest.passes:
            if same_pass(item.found.report.values, entry.get("raw")):
                raise ConflictError(
                    f"{Path(item.found.path).name} tells of the pass that is stored as {entry.get('file')} of {run.name}",
                    path=item.found.path,
                    hint=f"leave it out, or moeprof runs remove {run.name} first and give both outputs together",
                )


def _refuse_numbers(group: Group, run: Run) -> None:
    taken = {(entry.get("number"), _point(run, entry, group.workload)) for entry in run.manifest.passes}
    for item in group.passes:
        if (item.number, item.point) in taken:
            raise ConflictError(
                f"pass {item.number} of block {group.block} of {group.arm} ({item.point}) is already stored, in {run.name}",
                path=item.found.path,
                hint=f"give it another --pass or --block; moeprof runs remove {run.name} takes the stored one out",
            )


def _point(run: Run, entry: object, workload: str | None) -> str | None:
    if not isinstance(entry, dict):
        return None
    try:
        held = results_in(str(run.path / str(entry.get("file"))))
        report = held.passes[int(entry.get("repeat", 0))] if held is not None else None
    except (MoeprofError, IndexError, ValueError, TypeError, OSError):
        return None
    return None if report is None else sample_of(report, block=0, number=0, source="", workload=workload).workload.point
