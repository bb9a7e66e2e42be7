"""CSV that ``ncu --csv`` prints: the raw page (a row per kernel) and the details page (a row per metric)."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from moeprof.errors import NotATraceError, TraceEmptyError, TraceMalformedError
from moeprof.findings import Finding
from moeprof.traces.ncu.table import METRICS
from moeprof.traces.ncu.units import number, scale

Row = dict[str, object]

_HEAD = '"ID","Process ID"'
_IDENTITY = ("ID", "Process ID", "Host Name")
_MOST_DIGITS = 9
_NVTX = "Push/Pop_Range"
_DEVICE_NAME = "device__attribute_display_name"


@dataclass(frozen=True, slots=True)
class _Line:
    """Fields of a CSV row, and where it stands."""

    number: int
    fields: Sequence[str]


def looks_like(text: str) -> bool:
    r"""Tell whether text is CSV of Nsight Compute; other lines may stand before it.

    >>> looks_like('==PROF== Connected\n"ID","Process ID","Process Name"')
    True
    """
    return any(line.startswith(_HEAD) for line in text.splitlines())


def rows(text: str, source: str) -> tuple[list[Row], list[Finding]]:
    """Return one dictionary per kernel with the columns of `KERNEL_METRICS`, and what was found.

    Args:
        text: The whole file.
        source: Its name, for messages.

    Raises:
        NotATraceError: No header of ``ncu --csv``.
        TraceEmptyError: A header and no kernel.
        TraceMalformedError: A row that does not fit the header, or a value or unit that cannot be read.
    """
    head, lines, foreign = _split(text, source)
    if not lines:
        raise TraceEmptyError("the report holds no kernel", path=source, hint="look at ncu's own messages")
    read = _details if "Metric Name" in head else _raw
    found = read(head, lines, source)
    findings = []
    if foreign:
        findings.append(
            Finding(
                "ncu-foreign-lines",
                "note",
                f"{foreign} lines of {source} are not Nsight Compute's and were left aside",
                evidence={"lines": foreign},
            )
        )
    return found, findings


def _split(text: str, source: str) -> tuple[Sequence[str], list[_Line], int]:
    """Return the header, the rows, and how many lines are other programs' output."""
    head: Sequence[str] | None = None
    lines: list[_Line] = []
    foreign = 0
    for at, line in enumerate(text.splitlines(), 1):
        if line.startswith(_HEAD):
            head = next(csv.reader([line]))
        elif head is not None and line.startswith('"'):
            fields = next(csv.reader([line]))
            if len(fields) != len(head):
                raise TraceMalformedError(
                    f"a row has {len(fields)} fields where the header has {len(head)}", path=source, line=at
                )
            lines.append(_Line(at, fields))
        elif line.strip() and not line.startswith("=="):
            foreign += 1
    if head is None:
        raise NotATraceError(
            "no CSV of Nsight Compute was found",
            path=source,
            hint="make it with: ncu --import REPORT.ncu-rep --csv --page raw",
        )
    return head, lines, foreign


def _raw(head: Sequence[str], lines: Sequence[_Line], source: str) -> list[Row]:
    """Read the raw page: units stand in the row below the header."""
    units, kernels = (lines[0].fields, lines[1:]) if lines[0].fields[0] == "" else ([""] * len(head), list(lines))
    if not kernels:
        raise TraceEmptyError("the report holds no kernel", path=source, hint="look at ncu's own messages")
    at = {name: index for index, name in enumerate(head)}
    result = []
    seen: dict[tuple[str, ...], int] = {}
    for line in kernels:
        _refuse_twice(seen, at, line, source)
        values = {
            name: (line.fields[at[name]], units[at[name]]) for metric in METRICS for name in metric.names if name in at
        }
        result.append({**_common(at, line), **_metrics(values, source, line.number)})
    return result


def _details(head: Sequence[str], lines: Sequence[_Line], source: str) -> list[Row]:
    """Read the details page: a kernel's rows share its ID and process."""
    at = {name: index for index, name in enumerate(head)}
    result = []
    seen: dict[tuple[str, ...], int] = {}
    for group in _groups(at, lines):
        _refuse_twice(seen, at, group[0], source)
        values: dict[str, tuple[str, str]] = {}
        for line in group:
            name, unit = line.fields[at["Metric Name"]], line.fields[at["Metric Unit"]]
            if any(name in metric.names and scale(unit, metric.unit) is not None for metric in METRICS):
                values.setdefault(name, (line.fields[at["Metric Value"]], unit))
        result.append({**_common(at, group[0]), **_metrics(values, source, group[0].number)})
    return result


def _groups(at: Mapping[str, int], lines: Sequence[_Line]) -> Iterator[list[_Line]]:
    group: list[_Line] = []
    for line in lines:
        if group and line.fields[at["ID"]] != group[0].fields[at["ID"]]:
            yield group
            group = []
        group.append(line)
    if group:
        yield group


def _refuse_twice(seen: dict[tuple[str, ...], int], at: Mapping[str, int], line: _Line, source: str) -> None:
    """Refuse a kernel that stands twice: a report that was appended to itself feigns more runs than there were."""
    number = line.fields[at["ID"]]
    if not number.isdecimal() or len(number) > _MOST_DIGITS:
        raise TraceMalformedError(f"the ID of a kernel is {number[:40]!r}, no number", path=source, line=line.number)
    first = seen.setdefault(tuple(line.fields[at[name]] for name in _IDENTITY if name in at), line.number)
    if first != line.number:
        raise TraceMalformedError(
            f"kernel {number} of one process stands twice, first in line {first}",
            path=source,
            line=line.number,
            hint="is a report in it twice? give each once",
        )


def _common(at: Mapping[str, int], line: _Line) -> Row:
    def cell(name: str) -> str | None:
        return (line.fields[at[name]].strip() or None) if name in at else None

    nvtx = next((line.fields[index] for name, index in at.items() if _NVTX in name), "")
    return {
        "kernel": int(line.fields[at["ID"]]),
        "name": (cell("Kernel Name") or "").rpartition(f"{_innermost(nvtx)}/")[
            2
        ],  # --print-nvtx-rename puts the range before it
        "range": _innermost(nvtx),
        "device": cell(_DEVICE_NAME),
        "grid": cell("Grid Size"),
        "block": cell("Block Size"),
    }


def _innermost(cell: str) -> str | None:
    """Return the innermost range of a cell such as ``520  "domain:message:none:none:none:none:none:none"``; ours come before others.

    Six fields follow the message: payload (type, value), colour (type, value), message (type, text); a message and a registered
    text may hold colons.
    """
    found = [_message(part) for part in cell.split('"')[1::2]]
    ours = [name for name in found if name.startswith("moeprof.")]
    return next(iter(reversed(ours or found)), None)


def _message(text: str) -> str:
    registered = text.partition(":REGISTERED:")[2]
    return registered or text.rsplit(":", 6)[0].partition(":")[2]


def _metrics(values: Mapping[str, tuple[str, str]], source: str, line: int) -> Row:
    result: Row = {}
    for metric in METRICS:
        name = next((name for name in metric.names if name in values), None)
        result[metric.column] = None if name is None else _value(name, *values[name], metric.unit, source, line)
    return result


def _value(name: str, text: str, unit: str, wanted: str, source: str, line: int) -> float | None:
    factor = scale(unit, wanted) if unit else 1.0
    if factor is None:
        raise TraceMalformedError(
            f"{name} is in {unit!r}, which is no unit of {wanted}",
            path=source,
            line=line,
            hint="print the report with: --print-units base",
        )
    try:
        value = number(text)
    except ValueError as error:
        raise TraceMalformedError(f"{name} is {text!r}, which is no number", path=source, line=line) from error
    return None if value is None else value * factor
