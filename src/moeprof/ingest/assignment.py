"""Which arm, block, pass and workload a file belongs to: from options, or from a pattern with named groups."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from moeprof.errors import InputNotFoundError, UsageError
from moeprof.traces.benchmarks.files import files_in

GROUPS = ("arm", "block", "pass", "workload")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the content of a file belongs; None: not said.

    Attributes:
        arm, block, number, workload: What was said.
    """

    arm: str
    block: int = 0
    number: int | None = None
    workload: str | None = None


@dataclass(frozen=True, slots=True)
class Assigned:
    """A file, or a folder of rank traces, with its place; `named`: the user named it himself."""

    path: str
    place: Place
    named: bool


@dataclass(frozen=True, slots=True)
class Assignment:
    """The files with their places, and those of a folder that the pattern leaves out."""

    files: tuple[Assigned, ...]
    left_out: tuple[str, ...]


def assign(
    paths: Sequence[str],
    *,
    arm: str | None,
    block: int | None = None,
    number: int | None = None,
    workload: str | None = None,
    pattern: str | None = None,
) -> Assignment:
    """Return the place of every file that paths name.

    Args:
        paths: Files and folders; folders are not searched below their first level.
        arm: For all files, unless the pattern says it.
        block: Likewise; 0 where nothing says it.
        number: Of the pass, likewise.
        workload: Likewise.
        pattern: Regular expression with named groups of `GROUPS`, matched against the end of each path.

    Raises:
        UsageError: Something is said twice or not at all, or the pattern makes no sense.
        InputNotFoundError: A path does not exist.
    """
    given = {"arm": arm, "block": block, "pass": number, "workload": workload}
    compiled = None if pattern is None else _compiled(pattern, given)
    if compiled is None and arm is None:
        raise UsageError("no arm is named", hint="say --arm NAME, or --pattern with a group (?P<arm>...)")
    files: list[Assigned] = []
    left_out: list[str] = []
    for path in paths:
        if not Path(path).exists():
            raise InputNotFoundError("no such file or folder", path=path)
        is_folder = Path(path).is_dir()
        if not is_folder and not Path(path).is_file():
            raise InputNotFoundError(
                "a device or a pipe, not a file",
                path=path,
                hint="write what it gives to a file, or pipe it in and name -",
            )
        for file in files_in(path) if is_folder else [path]:
            found = None if compiled is None else _matched(compiled, file)
            if compiled is not None and found is None:
                if not is_folder:
                    raise UsageError(f"{file} does not match the pattern {pattern}", hint=_HINT)
                left_out.append(file)
                continue
            files.append(Assigned(file, _place(found, arm, block, number, workload, file), named=not is_folder))
    if not files:
        raise UsageError(
            "no file matches the pattern" if compiled is not None else "there is no file in the folder",
            hint=_HINT if compiled is not None else "name files, or a folder that holds some",
        )
    return Assignment(tuple(files), tuple(left_out))


_HINT = r"for example --pattern '(?P<arm>\w+?)(?P<block>\d+)_pass(?P<pass>\d+)\.txt'"


def _compiled(pattern: str, given: Mapping[str, object]) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError) as error:
        raise UsageError(f"--pattern is no regular expression: {error}", hint=_HINT) from error
    unknown = sorted(set(compiled.groupindex) - set(GROUPS))
    if unknown:
        raise UsageError(f"--pattern has a group {unknown[0]!r}", hint=f"the groups are {', '.join(GROUPS)}")
    twice = [name for name in GROUPS if name in compiled.groupindex and given[name] is not None]
    if twice:
        raise UsageError(f"--{twice[0]} and the pattern both say the {twice[0]}", hint="leave one of them out")
    if "arm" not in compiled.groupindex and given["arm"] is None:
        raise UsageError("neither --arm nor the pattern names an arm", hint=_HINT)
    return compiled


def _matched(pattern: re.Pattern[str], file: str) -> re.Match[str] | None:
    """Return the match of the file's whole name, else of as few folders before it as it takes."""
    parts = Path(file).as_posix().split("/")
    ends = ("/".join(parts[place:]) for place in range(len(parts) - 1, -1, -1))
    return next((match for end in ends if (match := pattern.fullmatch(end)) is not None), None)


def _place(
    match: re.Match[str] | None,
    arm: str | None,
    block: int | None,
    number: int | None,
    workload: str | None,
    file: str,
) -> Place:
    said = {} if match is None else match.groupdict()
    return Place(
        arm=said.get("arm") or arm or "",
        block=_integer(said.get("block"), "block", file) if said.get("block") is not None else block or 0,
        number=_integer(said.get("pass"), "pass", file) if said.get("pass") is not None else number,
        workload=said.get("workload") or workload,
    )


def _integer(text: str | None, name: str, file: str) -> int:
    if text is None or not re.fullmatch(r"[0-9]{1,6}", text):
        raise UsageError(f"the pattern takes {text!r} of {file} for the {name}", hint=r"let it match digits: \d+")
    return int(text)
