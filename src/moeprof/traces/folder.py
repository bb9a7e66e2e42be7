"""Find the trace files that a path names, and say which files beside them were left out and why."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from moeprof.errors import InputNotFoundError, TraceEmptyError, TraceTruncatedError, UnsupportedFormatError
from moeprof.findings import Finding
from moeprof.pipes import is_pipe, refuse_pipe
from moeprof.traces import formats, kineto
from moeprof.traces.nsys.export import is_export, table_files
from moeprof.wording import listed

_TRACE = re.compile(r"\.json(\.gz)?$", re.IGNORECASE)
# Exports and reports of one capture that may lie beside each other, the one to read first.
_NSYS = (".sqlite", ".sqlite.gz", "_pqtdir", "_arwdir", ".nsys-rep", ".qdstrm")
_HINT = "give a trace file, or a folder that holds one trace file per rank"
# Names that look like traces, and are none of a serving rank: pattern and reason.
_NOT_RANKS = (
    (re.compile(r"\.async_llm\."), "trace of the API server"),
    (re.compile(r"^graph_capture_"), "graph-capture trace"),
    (re.compile(r"\.kernels\.json$"), "kernel summary"),
)


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A file to read, and its name as results show it."""

    path: Path
    source: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file or folder that was not read, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Found:
    """The files that a path names; `named` holds those that the caller named one by one."""

    files: tuple[TraceFile, ...]
    left_out: tuple[LeftOut, ...]
    named: frozenset[Path]


def find(path: str) -> Found:
    """Return the trace files of a file, a folder, a run's folder, or several of them joined by commas.

    Raises:
        InputNotFoundError: A path does not exist.
        TraceEmptyError: A folder holds no trace.
        TraceTruncatedError: A folder holds a ``.tmp`` that a killed writer left.
        UnsupportedFormatError: A folder holds only exports of a format that is not read.
    """
    parts = [path] if _exists(path) else [part.strip() for part in path.split(",")]
    if not all(parts):
        raise InputNotFoundError("an empty path in the list", path=path, hint=_HINT)
    files: dict[Path, TraceFile] = {}
    left_out: list[LeftOut] = []
    named: set[Path] = set()
    for part in parts:
        where = Path(part)
        prefix = "" if len(parts) == 1 else f"{where.name}/"
        if _is_run(where):
            where = where / "traces"
        if _is_tables(where):
            found = [TraceFile(where, where.name)]
            named.add(where)
        elif where.is_dir():
            found, others = _folder(where, prefix)
            left_out += others
        elif _exists(part):
            refuse_pipe(where)
            found = [TraceFile(where, where.name)]
            named.add(where)
        else:
            raise InputNotFoundError("no such file or folder", path=part, hint=_HINT)
        for file in found:
            files.setdefault(Path(os.path.realpath(file.path)), file)
    return Found(tuple(files.values()), tuple(left_out), frozenset(named))


def finding(left_out: list[LeftOut]) -> list[Finding]:
    """Return one note per reason for leaving files out."""
    by_reason: dict[str, list[str]] = {}
    for item in left_out:
        by_reason.setdefault(item.reason, []).append(item.name)
    return [
        Finding(
            "left-out",
            "note",
            f"left out ({reason}): {listed(sorted(names))}",
            evidence={"reason": reason, "names": [*sorted(names)]},
        )
        for reason, names in sorted(by_reason.items())
    ]


def _is_run(folder: Path) -> bool:
    """Tell whether a folder is a run of the store, whose traces lie in a folder of their own."""
    return (folder / "manifest.json").is_file() and (folder / "traces").is_dir()


def _is_tables(folder: Path) -> bool:
    """Tell whether a folder is one export of Nsight Systems, with a file for each table."""
    try:
        return folder.is_dir() and is_export(list(table_files(folder)))
    except OSError:
        return False


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError as error:
        raise InputNotFoundError(f"cannot read the path: {error.strerror}", path=path, hint=_HINT) from error


def _folder(folder: Path, prefix: str) -> tuple[list[TraceFile], list[LeftOut]]:
    try:
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except OSError as error:
        raise InputNotFoundError(f"cannot read the folder: {error.strerror}", path=str(folder), hint=_HINT) from error
    files: list[TraceFile] = []
    left_out: list[LeftOut] = []
    for entry in entries:
        if entry.name.endswith(".tmp") and _TRACE.search(entry.name.removesuffix(".tmp")):
            raise TraceTruncatedError(
                "an unfinished trace: its writer was killed or is still running",
                path=str(entry),
                hint="wait for the writer, or remove the file and capture again",
            )
        reason = _reason(entry) or _read_elsewhere(entry, entries)
        if reason is None:
            files.append(TraceFile(entry, prefix + entry.name))
        else:
            left_out.append(LeftOut(prefix + entry.name + ("/" if entry.is_dir() else ""), reason))
    if not files:
        raise _no_trace(folder, entries)
    return files, left_out


def _reason(entry: Path) -> str | None:
    """Return why an entry of a folder is left out, or None for a trace by its name."""
    if _is_tables(entry):
        return None
    if is_pipe(entry):
        return "a named pipe"
    if entry.is_dir():
        return "graph-capture traces" if entry.name == "capture_traces" else "a sub-folder"
    if reason := next((reason for pattern, reason in _NOT_RANKS if pattern.search(entry.name)), None):
        return reason
    if _TRACE.search(entry.name) or entry.name.endswith(_NSYS):
        return None
    if entry.name.endswith(formats.SUFFIXES):
        return "an export of another profiler"
    return "no trace by its name"


def _read_elsewhere(entry: Path, entries: list[Path]) -> str | None:
    """Return the reason for leaving out a second form of one nsys capture, or None."""
    stem = formats.stem(entry.name)
    if stem == entry.name:
        return None
    forms = [other.name for other in entries if other.name != stem and formats.stem(other.name) == stem]
    first = min(forms, key=lambda name: next((at for at, end in enumerate(_NSYS) if name.endswith(end)), len(_NSYS)))
    return None if entry.name == first else f"the same capture as {first}"


def _no_trace(folder: Path, entries: list[Path]) -> TraceEmptyError | UnsupportedFormatError:
    for entry in entries:
        if entry.is_file() and entry.name.endswith(formats.SUFFIXES) and (error := kineto.unsupported(entry)):
            return error
    inside = [entry.name for entry in entries if entry.is_dir() and _holds_traces(entry)]
    if inside:
        return TraceEmptyError(
            f"no trace in the folder itself; its sub-folders hold traces: {listed(inside)}",
            path=str(folder),
            hint="name one of the sub-folders, or several joined by commas",
        )
    return TraceEmptyError("no trace in the folder", path=str(folder), hint=_HINT)


def _holds_traces(folder: Path) -> bool:
    return any(entry.is_file() and _reason(entry) is None for entry in folder.iterdir())
