"""Emit a result in each format asked for: files first, then stdout."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from moeprof.commands.options import Shared
from moeprof.commands.streams import Streams, fitted, look_of, write
from moeprof.errors import UsageError
from moeprof.reports.look import Look

_SUMMARY = "GITHUB_STEP_SUMMARY"
_SUMMARY_MOST = 900_000
_TOO_LONG = b"moeprof: the result is too long for this summary\n"


def emit(shared: Shared, streams: Streams, render: Callable[[str, Look], str]) -> None:
    """Render and write a result for every target.

    Args:
        shared: The options.
        streams: Where stdout is.
        render: Makes the text of a format with a look.
    """
    for target in shared.targets:
        as_json = target.format == "json"
        if target.format == "github":
            _summarise(render("markdown", Look(wide=shared.wide)))
        if target.path is None:
            look = look_of(streams.stdout, color=shared.color, wide=shared.wide, environ=os.environ)
            write(streams.stdout, render(target.format, look), as_json=as_json)
        else:
            text = render(target.format, Look(wide=shared.wide))
            write_file(Path(target.path), fitted(text, "utf-8", as_json=as_json))


def _summarise(text: str) -> None:
    """Append Markdown to the summary of the step, where GitHub says which file that is; it refuses one above 1 MiB as a whole."""
    file = os.environ.get(_SUMMARY)
    if not file:
        return
    path = Path(file)
    held = path.stat().st_size if path.is_file() else 0
    said = text.encode("utf-8", "backslashreplace")
    if held + len(said) > _SUMMARY_MOST:
        said = _TOO_LONG
    with path.open("ab") as stream:
        stream.write(said + b"\n")


def protect(shared: Shared, inputs: Iterable[str]) -> None:
    """Refuse an output that would replace an input: a trace is not made twice.

    Raises:
        UsageError: An output is an input file, or a trace in an input folder.
    """
    read = {Path(os.path.realpath(part)) for given in inputs for part in given.split(",")}
    for target in shared.targets:
        if target.path is None:
            continue
        final = Path(os.path.realpath(target.path))
        inside = final.parent in read and final.exists() and ".trace.json" in final.name
        if final in read or inside:
            raise UsageError(f"the output {target.path} would replace an input", hint="write to another file")


def write_file(path: Path, text: str) -> None:
    """Write a file as a whole or not at all; its folders are made. Devices and pipes are written directly.

    Raises:
        OSError: When it cannot be written.
    """
    final = Path(os.path.realpath(path))
    if final.is_dir():
        raise IsADirectoryError(21, "Is a directory", str(path))
    if final.exists() and not final.is_file():
        final.write_text(text, encoding="utf-8", newline="\n")
        return
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = final.with_name(f".{final.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(final)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
