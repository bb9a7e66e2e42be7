"""The report that a load client prints, once or several times among log lines and progress bars, whole or cut."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from moeprof.errors import ResultError
from moeprof.traces.benchmarks.labels import COUNTS, NEEDED, is_key, key_of
from moeprof.traces.benchmarks.results import BenchmarkPass, Client, Number, fault_of, plausible

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_HEADER = re.compile(r"^=+ Serving Benchmark Result =+$")
_STEADY = re.compile(r"^=+ Steady-State Metrics =+$")
_OTHER_PART = re.compile(r"^[=-]{3,} .+ [=-]{3,}$")
_RULE = re.compile(r"^={20,}$")
_LINE = re.compile(r"^\s*(?P<label>[A-Za-z][^:]*?):\s+(?P<value>\S+)\s*$")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_NOT_FINITE = re.compile(r"[-+]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
_KNOWN = re.compile(r"^\s*(?P<label>[A-Za-z][^:]*?):(?P<rest>\s.*)?$")
_EVALUATION = re.compile(r"Running \S+ evaluation:", re.IGNORECASE)
_CLIENTS: dict[int, Client] = {60: "vllm-rs", 50: "vllm"}  # by the width of the header


@dataclass(slots=True)
class _Report:
    """A report as far as it was read."""

    client: Client | None
    line: int
    values: dict[str, Number] = field(default_factory=dict)
    printed: dict[str, str] = field(default_factory=dict)
    steady: dict[str, Number] = field(default_factory=dict)
    rate: float | None = None
    whole: bool = False


def is_text(text: str) -> bool:
    """Tell whether a text holds a client's report."""
    return any(_HEADER.match(line) for _, line in _lines(text))


def from_text(text: str, path: str) -> tuple[BenchmarkPass, ...]:
    """Return the reports of a text, in their order; what an excerpt lacks is absent.

    Raises:
        ResultError: A figure is no finite number or stands twice with two values, or a report lacks what makes it one.
    """
    reports: list[_Report] = []
    part: dict[str, Number] | None = None
    for number, line in _lines(text):
        if _HEADER.match(line):
            reports.append(_Report(_CLIENTS.get(len(line)), number))
            part = reports[-1].values
        elif not reports:
            continue
        elif _STEADY.match(line):
            part = reports[-1].steady
        elif _RULE.match(line):
            reports[-1].whole = True
            part = None
        elif _OTHER_PART.match(line) or _EVALUATION.search(line):
            part = None  # a summary over runs, the next run's heading, or another program's output
        elif part is not None:
            _take(reports[-1], part, line, number, path)
    if reports and part is not None:
        _refuse_short(reports[-1], text, path)
    return tuple(_finished(report, repeat, path) for repeat, report in enumerate(reports))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield line numbers and lines; a progress bar overwrites itself with carriage returns within a line."""
    for number, line in enumerate(text.split("\n"), 1):
        for piece in _ANSI.sub("", line).split("\r"):
            yield number, piece.rstrip()


def _take(report: _Report, part: dict[str, Number], line: str, number: int, path: str) -> None:
    match = _LINE.match(line)
    if match is None:
        _refuse_unread(line, number, path)
        return
    label, written = match["label"].strip(), match["value"]
    key = key_of(label)
    if key == "request_rate":
        report.rate = float(written) if _NUMBER.fullmatch(written) or written == "inf" else None
        return
    if _NUMBER.fullmatch(written) is None:
        if _NOT_FINITE.fullmatch(written) or (key is not None and key not in ("max_concurrency", "request_goodput")):
            raise ResultError(f"{label} is {written}, not a number", path=path, line=number, hint=_HINT)
        return
    name = key or label
    value = _number(written, name)
    if (fault := fault_of(name, value)) is not None:
        raise ResultError(f"{label} is {fault}", path=path, line=number, hint="the file is damaged: run the pass again")
    if name in part and part[name] != value:
        raise ResultError(f"{label} stands twice, as {part[name]} and {written}", path=path, line=number)
    part[name] = value
    if part is report.values:
        report.printed[name] = written


_HINT = "the client did not measure it, or the file is damaged: run the pass again"


def _refuse_unread(line: str, number: int, path: str) -> None:
    """Refuse a known label behind which no single figure stands: to pass over it would lose the metric without a word."""
    match = _KNOWN.match(line)
    if match is None or key_of(match["label"]) is None:
        return
    label, rest = match["label"].strip(), (match["rest"] or "").strip()
    if not rest:
        raise ResultError(f"{label} has no figure", path=path, line=number, hint="the file is cut in a line")
    shown = rest if len(rest) <= 40 else f"{rest[:37]}..."
    raise ResultError(
        f"{label} is {shown!r}, not one number", path=path, line=number, hint="give the output as the client wrote it"
    )


def _refuse_short(report: _Report, text: str, path: str) -> None:
    """Refuse a report whose last figure has fewer decimals than all others: the file ends within a number."""
    if text.endswith("\n") or not report.printed:
        return
    name = next(reversed(report.printed))
    decimals = {
        len(written.partition(".")[2])
        for other, written in report.printed.items()
        if other not in COUNTS and other != name and is_key(other)
    }
    last = report.printed[name]
    if name not in COUNTS and is_key(name) and decimals and len(last.partition(".")[2]) < min(decimals):
        raise ResultError(
            f"the text ends within a number: {name} is {last}",
            path=path,
            line=text.count("\n") + 1,
            hint="the file is cut",
        )


def _number(text: str, name: str) -> Number:
    if name in COUNTS and re.fullmatch(r"\d+", text):
        return int(text)
    return float(text)


def _finished(report: _Report, repeat: int, path: str) -> BenchmarkPass:
    missing = [name for name in NEEDED if name not in report.values]
    if missing:
        raise ResultError(
            f"the report has no {' and no '.join(missing)}", path=path, line=report.line, hint="the file is cut"
        )
    if not all(plausible(value) for value in (*report.values.values(), *report.steady.values())):
        raise ResultError("a figure is no finite number of a plausible size", path=path, line=report.line)
    if report.values["duration"] <= 0:
        raise ResultError(f"the duration is {report.printed['duration']} s", path=path, line=report.line)
    drafts = any(name.startswith("spec_decode_") for name in report.values)
    return BenchmarkPass(
        form="text",
        client=report.client,
        values=report.values,
        printed=report.printed,
        steady_state=report.steady,
        rate=report.rate,
        speculative=True if drafts else (False if report.whole else None),
        repeat=repeat,
        line=report.line,
    )
