"""What the files hold: passes with their numbers, evaluations, traces. Everything is checked before anything is written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from moeprof.analyzers.serving.samples import sample_of
from moeprof.errors import ConflictError, MoeprofError, ResultError
from moeprof.ingest.assignment import Assigned
from moeprof.traces.benchmarks.files import FoundPass, evaluations, passes, refuse_copies, results_in
from moeprof.traces.benchmarks.results import EvaluationResult, ResultFile
from moeprof.wording import listed

_CHUNK = 1 << 20
_SNIFFED = 4096


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass and its number among those of its block and measuring point."""

    found: FoundPass
    number: int
    point: str


@dataclass(frozen=True, slots=True)
class Group:
    """What goes into one run: an arm's block under one workload.

    Attributes:
        arm, block, workload: Its place.
        passes: The timed passes.
        evaluations: File and what it holds.
        traces: Files of rank traces.
    """

    arm: str
    block: int
    workload: str | None
    passes: tuple[Pass, ...]
    evaluations: tuple[tuple[str, EvaluationResult], ...]
    traces: tuple[str, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """Return every file that is to be kept."""
        results = [path for item in self.passes for path in (item.found.path, item.found.text) if path is not None]
        return tuple(dict.fromkeys([*results, *(path for path, _ in self.evaluations), *self.traces]))


@dataclass(frozen=True, slots=True)
class Contents:
    """All groups, and files of folders that are nothing of ours."""

    groups: tuple[Group, ...]
    left_out: tuple[str, ...]


def contents(files: Sequence[Assigned]) -> Contents:
    """Return what files hold, grouped by arm, block and workload.

    Raises:
        ResultError: A file that was named is damaged, or none holds anything.
        ConflictError: A file, a pass or a number is there twice, or passes of one block are of different workloads.
        MoeprofError: A trace that was named cannot be read.
    """
    _refuse_twice(files)
    held: list[tuple[Assigned, ResultFile | None]] = []
    left_out: list[str] = []
    for item in files:
        found = _content(item)
        if found is None and not _is_trace(item):
            left_out.append(item.path)
        else:
            held.append((item, found))
    if not held:
        raise ResultError(
            f"nothing to ingest: neither traces nor results in {listed(left_out)}",
            path=left_out[0] if left_out else None,
            hint="give traces of torch.profiler, outputs of vllm bench serve, or of a GSM8K evaluation",
        )
    keys = dict.fromkeys((item.place.arm, item.place.block, item.place.workload) for item, _ in held)
    groups = tuple(
        _group(key, [(item, found) for item, found in held if _key(item) == key]) for key in sorted(keys, key=_order)
    )
    refuse_copies([item.found for group in groups for item in group.passes])
    return Contents(groups, tuple(left_out))


def digest(path: str) -> str:
    """Return the SHA-256 of a file."""
    found = hashlib.sha256()
    with Path(path).open("rb") as file:
        while piece := file.read(_CHUNK):
            found.update(piece)
    return found.hexdigest()


_Key = tuple[str, int, str | None]


def _key(item: Assigned) -> _Key:
    return item.place.arm, item.place.block, item.place.workload


def _order(key: _Key) -> tuple[str, int, str]:
    return key[0], key[1], key[2] or ""


def _content(item: Assigned) -> ResultFile | None:
    with Path(item.path).open("rb") as file:
        head = file.read(_SNIFFED).strip()
    if head in (b"", b"[]"):
        what = "is empty" if not head else "holds an empty list"
        raise ResultError(f"the file {what}", path=item.path, hint="its writer wrote nothing: leave it out")
    return results_in(item.path)


def _is_trace(item: Assigned) -> bool:
    """Tell whether a file is a trace; one that was named must be."""
    from moeprof.traces.open import open_trace

    if not item.named and ".json" not in Path(item.path).name:
        return False
    try:
        open_trace(item.path)
    except MoeprofError as error:
        if not item.named and error.slug in ("not-a-trace", "format-unsupported"):
            return False
        raise _of_neither(error, item.path) from error
    return True


def _of_neither(error: MoeprofError, path: str) -> MoeprofError:
    if error.slug != "not-a-trace":
        if "--recover" in (error.hint or ""):  # which this command has not
            error.hint = "capture again; moeprof report PATH --recover shows what is whole of a trace"
        return error
    return ResultError(
        "neither a client's result, nor an evaluation, nor a trace",
        path=path,
        hint="give what vllm bench serve, vllm-rs bench serve, moeprof or gsm8k_eval.py wrote, or a trace of torch.profiler",
    )


def _group(key: _Key, held: Sequence[tuple[Assigned, ResultFile | None]]) -> Group:
    arm, block, workload = key
    places = {item.path: item.place for item, _ in held}
    found = passes([(item.path, content) for item, content in held if content is not None])
    counted: dict[str, int] = {}
    numbered = []
    for each in found:
        point = sample_of(each.report, block=block, number=0, source=each.path, workload=workload).workload.point
        said = places[each.path].number
        number = counted.get(point, 0) if said is None else said
        counted[point] = number + 1
        numbered.append(Pass(each, number, point))
    _refuse_numbers(arm, block, numbered)
    _refuse_mixture(arm, block, workload, numbered)
    return Group(
        arm=arm,
        block=block,
        workload=workload,
        passes=tuple(sorted(numbered, key=lambda item: (item.point, item.number))),
        evaluations=evaluations([(item.path, content) for item, content in held if content is not None]),
        traces=tuple(item.path for item, content in held if content is None),
    )


def _refuse_twice(files: Sequence[Assigned]) -> None:
    seen: dict[str, str] = {}
    for item in files:
        same = seen.setdefault(digest(item.path), item.path)
        if same != item.path or sum(other.path == item.path for other in files) > 1:
            what = "is given twice" if same == item.path else f"holds the same bytes as {Path(same).name}"
            raise ConflictError(
                f"{Path(item.path).name} {what}",
                path=item.path,
                hint="leave the copy out: what is counted twice feigns more evidence than there is",
            )


def _refuse_numbers(arm: str, block: int, numbered: Iterable[Pass]) -> None:
    taken: dict[tuple[str, int], str] = {}
    for item in numbered:
        other = taken.setdefault((item.point, item.number), item.found.path)
        if other != item.found.path or (item.found.report.repeat > 0 and item.number == 0):
            raise ConflictError(
                f"{Path(other).name} and {Path(item.found.path).name} are both pass {item.number} of block {block}"
                f" of {arm} ({item.point})",
                path=item.found.path,
                hint="give each pass a number of its own, or no --pass at all",
            )


def _refuse_mixture(arm: str, block: int, workload: str | None, numbered: Sequence[Pass]) -> None:
    """Refuse passes of one point that were asked for different things: a warm-up among timed passes is no pass."""
    for point in sorted({item.point for item in numbered}):
        mine = [item for item in numbered if item.point == point]
        shapes: dict[tuple[int | None, str | None], Pass] = {}
        for item in mine:
            shapes.setdefault(_shape(item, workload), item)
        if len(shapes) > 1:
            (first, one), (second, other) = list(shapes.items())[:2]
            name, before, after = next(
                (name, a, b) for name, a, b in zip(("requests", "client"), first, second, strict=True) if a != b
            )
            raise ConflictError(
                f"{Path(one.found.path).name} and {Path(other.found.path).name} are not passes of one workload:"
                f" {name} {before} and {after}, in block {block} of {arm}",
                path=other.found.path,
                hint="leave warm-up and profiled passes out; name other workloads with --workload",
            )


def _shape(item: Pass, workload: str | None) -> tuple[int | None, str | None]:
    load = replace(
        sample_of(item.found.report, block=0, number=0, source="", workload=workload).workload, output_tokens=None
    )
    return load.prompts, load.client
