"""Options that report and diff share, and what they mean together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, Unpack

import click

from moeprof.commands.group import GroupedOption
from moeprof.errors import UsageError

#: Kept here as text so that help needs no renderer; a test holds it against `moeprof.reports.render.FORMATS`.
FORMATS = ("text", "json", "markdown")
#: For results that hold one thing against another; likewise held against `moeprof.reports.render.CHECK_FORMATS`.
CHECK_FORMATS = ("junit", "github", "gitlab", "buildkite")
FAMILIES = ("moeprof", "vllm", "sglang", "profiler_step", "user", "anchor")

_READING = "Reading"
_OUTPUT = "Output"


class SharedValues(TypedDict):
    """The shared options as click hands them over."""

    format_: str | None
    output: tuple[str, ...]
    color: str
    wide: bool
    recover: bool
    rules: str | None
    marker: str | None
    marker_family: str | None
    store: str | None
    debug: bool


@dataclass(frozen=True, slots=True)
class Target:
    """Where one format goes: a path, or None for stdout."""

    format: str
    path: str | None


@dataclass(frozen=True, slots=True)
class Reading:
    """How traces are read and cut into iterations."""

    recover: bool
    rules: str | None
    marker: str | None
    marker_family: str | None
    store: str | None = None


@dataclass(frozen=True, slots=True)
class Shared:
    """The shared options, checked."""

    targets: tuple[Target, ...]
    color: str
    wide: bool
    reading: Reading


def shared_params(formats: tuple[str, ...] = FORMATS) -> list[click.Parameter]:
    """Return the shared options for the parameter list of a command with these formats."""
    return [*reading_params(), *output_params(formats)]


def reading_params() -> list[click.Parameter]:
    """Return the options that say how traces are read."""
    return [
        GroupedOption("--rules", metavar="FILE", heading=_READING, help="Kernel rules (TOML) to use."),
        GroupedOption(
            "--marker", metavar="REGEX", heading=_READING, help="Annotations that match start an iteration each."
        ),
        GroupedOption(
            "--marker-family",
            type=click.Choice(FAMILIES),
            metavar="NAME",
            heading=_READING,
            help=f"Use these markers only: {', '.join(FAMILIES)}.",
        ),
        GroupedOption(
            "--recover",
            is_flag=True,
            heading=_READING,
            help="Read what is whole in a damaged trace, and say what is not.",
        ),
        GroupedOption(
            "--store",
            envvar="MOEPROF_STORE",
            metavar="DIR",
            heading=_READING,
            help="Where arms are looked for (default: the nearest configuration's store, else .moeprof).",
        ),
    ]


def output_params(formats: tuple[str, ...] = FORMATS) -> list[click.Parameter]:
    """Return the options that say where a result goes, and ``--debug``."""
    return [
        GroupedOption(
            "--format",
            "format_",
            type=click.Choice(formats),
            heading=_OUTPUT,
            help="What goes to stdout (default: text).",
        ),
        GroupedOption(
            "--output",
            multiple=True,
            metavar="FORMAT=PATH",
            heading=_OUTPUT,
            help="Write a file as well; may be repeated; - is stdout.",
        ),
        GroupedOption("--wide", is_flag=True, heading=_OUTPUT, help="Full kernel names, and no rows left out."),
        GroupedOption(
            "--color",
            type=click.Choice(("auto", "always", "never")),
            default="auto",
            heading=_OUTPUT,
            help="Colour on stdout; auto obeys NO_COLOR and FORCE_COLOR.",
        ),
        GroupedOption("--debug", is_flag=True, help="Show the traceback of an error."),
    ]


def shared(formats: tuple[str, ...] = FORMATS, **values: Unpack[SharedValues]) -> Shared:
    """Return the shared options, checked against each other, for a command with these formats.

    Raises:
        UsageError: Where they contradict each other.
    """
    if values["marker"] is not None or values["marker_family"] is not None:
        from moeprof.analyzers.markers import MarkerChoice

        MarkerChoice(values["marker"], values["marker_family"])
    return Shared(
        targets=targets(values["format_"], values["output"], formats),
        color=values["color"],
        wide=values["wide"],
        reading=Reading(values["recover"], values["rules"], values["marker"], values["marker_family"], values["store"]),
    )


def targets(format_: str | None, outputs: tuple[str, ...], formats: tuple[str, ...] = FORMATS) -> tuple[Target, ...]:
    """Return where each format goes; stdout is the last one.

    Args:
        format_: The format of ``--format``, None when it was not given.
        outputs: The values of ``--output``.
        formats: Those that the command has.
    """
    found = [_target(output, formats) for output in outputs]
    paths = [target.path for target in found if target.path is not None]
    for path in paths:
        if paths.count(path) > 1:
            raise UsageError(f"two outputs go to the same file {path}", hint="give each --output its own path")
    stdout = [target for target in found if target.path is None]
    if len(stdout) + (format_ is not None) > 1:
        raise UsageError("two formats go to stdout", hint="use one of --format FORMAT and --output FORMAT=-")
    if not stdout:
        stdout = [Target(format_ or "text", None)]
    return (*(target for target in found if target.path is not None), *stdout)


def _target(output: str, formats: tuple[str, ...]) -> Target:
    name, sign, path = output.partition("=")
    if not sign or not path:
        raise UsageError(f"--output {output} is not FORMAT=PATH", hint="for example --output json=result.json")
    if name not in formats:
        raise UsageError(f"--output {output}: no format {name!r}", hint=f"the formats are {', '.join(formats)}")
    return Target(name, None if path == "-" else path)
