"""Find result files by content, and make passes of them: text and JSON of one pass are one, a pass given twice is an error."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from moeprof.errors import ConflictError, ResultError
from moeprof.traces.benchmarks.reading import plain_of, recognise, utf8
from moeprof.traces.benchmarks.results import BenchmarkPass, EvaluationResult, Number, ResultFile

_SNIFFED_BYTES = 65_536
_MOST_BYTES = 128 * 1024 * 1024
_TRACE = re.compile(rb'"(?:traceEvents|schemaVersion|deviceProperties|displayTimeUnit|baseTimeNanoseconds|ph)"\s*:')
_RESULT = re.compile(rb'"(?:duration|completed|accuracy|num_questions|n-samples|results)"')
_CLIENT = re.compile(rb'"(?:num_prompts|request_rate|request_throughput|completed|num_questions)"')
_REPORT = re.compile(rb"= Serving Benchmark Result =|Running \S+ evaluation:")
_LEAST_SHARED = 5
_PRINTED = 2  # decimals of every client's text
_SLACK = 1.000001  # a float of a tie may lie a little beyond it
_PARTS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class FoundPass:
    """A pass and the files that it came from.

    Attributes:
        report: What the client wrote, at full precision where there is JSON.
        path: Its file.
        text: The text of the same pass, where its JSON is in `path`.
    """

    report: BenchmarkPass
    path: str
    text: str | None = None


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key in which 2 comes before 10.

    >>> sorted(["pass10", "pass2"], key=natural)
    ['pass2', 'pass10']
    """
    return tuple((int(part), "") if part.isdigit() else (0, part) for part in _PARTS.split(text))


def results_in(path: str) -> ResultFile | None:
    """Return what a file holds; None where it is no result: a trace, or something else.

    Raises:
        InputNotFoundError: The file cannot be read.
        ResultError: It is a damaged report of a client or an evaluator.
    """
    head = _head(path)
    if head is None or not head.strip() or b"\x00" in head[:1024]:
        return None
    is_json = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")
    if _TRACE.search(head) or Path(path).stat().st_size > _MOST_BYTES:
        return None
    content = Path(path).read_bytes()
    if not is_json:
        return recognise(content, path)
    whole = _whole(content, path, head)  # in another order of keys, what tells a result may stand anywhere
    if _RESULT.search(whole) is None and _REPORT.search(whole) is None:
        return None
    try:
        return recognise(content, path)
    except ResultError as error:
        if error.byte is not None and _CLIENT.search(whole) is None:
            return None  # no JSON at all, and nothing of a client in it: whoever reads traces says it better
        raise


def _whole(content: bytes, path: str, head: bytes) -> bytes:
    try:
        return utf8(plain_of(content, path))
    except ResultError:
        return head


def files_in(folder: str) -> list[str]:
    """Return the plain files of a folder in natural order, hidden ones left out."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.is_file() and not entry.name.startswith(".")]
    return [str(Path(folder, name)) for name in sorted(names, key=natural)]


def passes(files: Sequence[tuple[str, ResultFile]]) -> tuple[FoundPass, ...]:
    """Return the passes of result files, in their order.

    Raises:
        ConflictError: A pass was given twice, or text and JSON of one name do not agree.
    """
    found = [FoundPass(report, path) for path, held in files for report in held.passes]
    full = [item for item in found if item.report.form == "json"]
    texts = {id(item): _twin(item, full) for item in found if item.report.form == "text"}
    _refuse_contradictions(found, texts)
    twins = {id(twin): item.path for item in found if (twin := texts.get(id(item))) is not None}
    kept = [FoundPass(item.report, item.path, twins.get(id(item))) for item in found if texts.get(id(item)) is None]
    refuse_copies(kept)
    return tuple(kept)


def evaluations(files: Sequence[tuple[str, ResultFile]]) -> tuple[tuple[str, EvaluationResult], ...]:
    """Return the evaluations of result files, in their order; text and JSON of one run are one, and the JSON counts.

    Raises:
        ConflictError: Text and JSON of one name do not agree.
    """
    found = [(path, one) for path, held in files for one in held.evaluations]
    kept = []
    for path, one in found:
        twin = next(
            (other for name, other in found if one.form == "text" and _of_one_run((path, one), (name, other))), None
        )
        if twin is None:
            kept.append((path, one))
        elif twin.total != one.total or not set(twin.correct) <= set(one.correct):
            raise ConflictError(
                f"{Path(path).name} and the JSON of its name disagree: {one.accuracy} of {one.total} and "
                f"{twin.accuracy} of {twin.total} questions",
                path=path,
                hint="rename the file that belongs to another run",
            )
    return tuple(kept)


def _of_one_run(text: tuple[str, EvaluationResult], full: tuple[str, EvaluationResult]) -> bool:
    (path, one), (other_path, other) = text, full
    if other.form != "json" or one.task.lower() != other.task.lower():
        return False
    if _stem(path) == _stem(other_path):
        return True
    agree = one.total == other.total and set(other.correct) <= set(one.correct)
    return agree and one.output_tokens is not None and one.output_tokens == other.output_tokens


def _head(path: str) -> bytes | None:
    try:
        with Path(path).open("rb") as file:
            head = file.read(_SNIFFED_BYTES)
        if head.startswith(b"\x1f\x8b"):
            head = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, _SNIFFED_BYTES)
    except (OSError, zlib.error):
        return None
    return utf8(head)


def _twin(text: FoundPass, full: Sequence[FoundPass]) -> FoundPass | None:
    """Return the JSON of the pass that a text tells of: every figure that both have agrees with the digits printed."""
    return next((item for item in full if _differing(text, item) == [] and _shared(text, item) >= _LEAST_SHARED), None)


def _shared(text: FoundPass, full: FoundPass) -> int:
    return sum(name in full.report.values for name in text.report.printed)


def _differing(text: FoundPass, full: FoundPass) -> list[str]:
    values = full.report.values
    return [
        name
        for name, printed in text.report.printed.items()
        if name in values and abs(float(printed) - values[name]) > _SLACK * 0.5 * 10.0 ** -_decimals(printed)
    ]


def _decimals(printed: str) -> int:
    return len(printed.partition(".")[2])


def _refuse_contradictions(found: Sequence[FoundPass], twins: dict[int, FoundPass | None]) -> None:
    by_stem = {_stem(item.path): item for item in found if item.report.form == "json"}
    for item in found:
        other = by_stem.get(_stem(item.path))
        alone = sum(each.path == item.path for each in found) == 1
        if item.report.form == "json" or other is None or twins[id(item)] is not None or not alone:
            continue
        name = next(iter(_differing(item, other)), None)
        if name is not None:
            raise ConflictError(
                f"{Path(item.path).name} and {Path(other.path).name} share a name and disagree: {name} is "
                f"{item.report.printed[name]} and {other.report.values[name]}",
                path=item.path,
                hint="rename the file that belongs to another pass",
            )


def refuse_copies(kept: Sequence[FoundPass]) -> None:
    """Refuse passes of which one is the copy of another.

    Raises:
        ConflictError: All figures of two passes are equal.
    """
    for place, item in enumerate(kept):
        for other in kept[:place]:
            if item.report.values == other.report.values and item.report.form == other.report.form:
                same = "twice" if item.path == other.path else f"in {Path(other.path).name} and {Path(item.path).name}"
                raise ConflictError(
                    f"the same pass stands {same}: all figures are equal",
                    path=item.path,
                    hint="leave the copy out: a pass that is counted twice feigns more evidence than there is",
                )


def same_pass(values: Mapping[str, Number], others: object) -> bool:
    """Tell whether two outputs are of one pass: all figures equal, or equal as printed where one was printed for people.

    Args:
        values: Name to figure.
        others: Likewise, as a manifest keeps them; anything else is no pass.

    >>> full = {"completed": 4, "duration": 2.0041, "output_throughput": 7.5039, "median_ttft_ms": 3.128, "failed": 0}
    >>> text = {"completed": 4, "duration": 2.0, "output_throughput": 7.5, "median_ttft_ms": 3.13, "failed": 0}
    >>> same_pass(full, text), same_pass(full, {**text, "duration": 2.1})
    (True, False)
    """
    if not isinstance(others, Mapping):
        return False
    known = {name: item for name, item in others.items() if isinstance(item, int | float)}
    if values == known:
        return True
    shared = [name for name in values if name in known]
    printed = [_is_printed(found) for found in (values, known)]
    if len(shared) < _LEAST_SHARED or printed[0] == printed[1]:
        return False
    return all(abs(values[name] - known[name]) <= _SLACK * 0.5 * 10.0**-_PRINTED for name in shared)


def _is_printed(values: Mapping[str, Number]) -> bool:
    return all(round(value, _PRINTED) == value for value in values.values())


def _stem(path: str) -> str:
    plain = path.removesuffix(".gz")
    return str(Path(plain).with_suffix(""))
