"""``moeprof baseline``: accept what a run did, with a reason; show what was accepted. Only a person writes a baseline."""

from __future__ import annotations

import os
import re
from datetime import date as calendar
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moeprof.commands import gating
from moeprof.commands.group import GroupedCommand, GroupedOption
from moeprof.commands.options import Reading, Shared, output_params, reading_params, targets
from moeprof.commands.output import emit, write_file
from moeprof.commands.streams import Streams, write
from moeprof.errors import NothingToCompareError, UsageError

if TYPE_CHECKING:
    from moeprof.analyzers.gates.observation import Observation
    from moeprof.baselines.document import Object

_HELP = """Accept what a run did as the baseline of its arm, or show what was accepted.

The baseline is a small JSON file for your repository: raw values of every pass, counts per iteration, what the run ran on, and who
accepted what and why. Only this command writes it, and never in CI.
"""
_ACCEPT = """Accept what an arm or a path did as its baseline, all of it or single metrics and counts.

ARM_OR_PATH is an arm of the store, a trace, a folder with one trace per rank, or outputs of a load client.
"""
_SHOW = """Show what was accepted: per arm the figures, the reason and the history."""


def _accept(
    subject: str,
    reason: str,
    date: str | None,
    baseline: str | None,
    arm: str | None,
    metric: tuple[str, ...],
    structure: tuple[str, ...],
    config: Path | None,
    rules: str | None,
    marker: str | None,
    marker_family: str | None,
    recover: bool,
    store: str | None,
    debug: bool,
) -> int:
    del debug
    from moeprof.baselines.accept import accept_everything, accept_parts
    from moeprof.baselines.arms import object_of, observation_of
    from moeprof.baselines.document import read, text_of

    streams = click.get_current_context().find_object(Streams) or Streams(None, None)
    _refuse_ci()
    if not reason.strip():
        raise UsageError("a baseline needs a reason", hint='--reason "new MoE kernel, measured on the same node"')
    path = Path(gating.baseline_path(baseline, gating.settings_of(config)))
    found, day = gating.observed(subject, Reading(recover, rules, marker, marker_family, store))
    _refuse_useless(found)
    name = gating.name_of(found, arm)
    arms: dict[str, Object] = dict(read(path).arms) if path.exists() else {}
    for known, value in arms.items():
        observation_of(known, value, str(path))  # what cannot be read is not written over
    accepted: Object = {"reason": reason.strip(), "date": _day(date) or day, "source": _source(subject)}
    new = object_of(found, accepted)
    if metric or structure:
        if name not in arms:
            raise UsageError(
                f"the baseline has no arm {name!r} of which parts could be accepted", hint="accept the whole run first"
            )
        arms[name] = accept_parts(arms[name], new, metric, structure, path=str(path))
    else:
        arms[name] = accept_everything(arms.get(name), new)
    write_file(path, text_of(arms))
    write(streams.stdout, f"{path}: accepted {_what(metric, structure)} of {name}\n")
    return 0


def _refuse_ci() -> None:
    variable = gating.in_ci(os.environ)
    if variable is not None:
        raise UsageError(
            f"a baseline is not accepted in CI ({variable} is set)",
            hint="accept it on your machine and commit the file: a gate that accepts by itself lets every regression pass the second time",
        )


def _refuse_useless(found: Observation) -> None:
    """Refuse what holds nothing, or passes in which requests failed."""
    from moeprof.analyzers.serving.samples import gated

    if found.structure is None and found.samples is None and not found.evaluations:
        raise NothingToCompareError(
            "there is nothing to accept: no counts per iteration, no timed passes, no evaluation", path=found.source
        )
    excluded = () if found.samples is None else gated(found.samples).excluded
    if excluded:
        raise UsageError(
            f"{excluded[0].source}: {excluded[0].message}; a run that failed a gate is no baseline",
            hint="measure again, or name the passes that are good",
        )


def _day(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            return calendar.fromisoformat(text).isoformat()
    except ValueError:
        pass
    raise UsageError(f"--date {text} is no day", hint="write it as 2026-11-30")


def _source(subject: str) -> str:
    """Return a name that means something in another checkout: no absolute path."""
    return ",".join(Path(part).name if Path(part).is_absolute() else part for part in subject.split(","))


def _what(metrics: tuple[str, ...], structure: tuple[str, ...]) -> str:
    parts = [*(f"metric {name}" for name in metrics), *(f"structure {key}" for key in structure)]
    return ", ".join(parts) or "everything"


def _show(
    baseline: str | None,
    config: Path | None,
    format_: str | None,
    output: tuple[str, ...],
    color: str,
    wide: bool,
    debug: bool,
) -> int:
    del debug
    from moeprof.baselines.arms import observation_of
    from moeprof.baselines.document import read
    from moeprof.reports.render import render_baseline

    streams = click.get_current_context().find_object(Streams) or Streams(None, None)
    options = Shared(targets(format_, output), color, wide, Reading(False, None, None, None, None))
    document = read(gating.baseline_path(baseline, gating.settings_of(config)))
    found = {name: observation_of(name, value, document.path) for name, value in sorted(document.arms.items())}
    emit(options, streams, lambda fmt, look: render_baseline(document.path, document.arms, found, fmt, look))
    return 0


_FILE = GroupedOption(
    "--baseline",
    metavar="FILE",
    heading="Baseline",
    help="Baseline file (default: the configuration's, else moeprof-baseline.json beside it, else here).",
)
_CONFIG = GroupedOption(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    heading="Baseline",
    help="moeprof.toml beside which the baseline lies (default: the nearest one; none is needed).",
)

_accept_command = GroupedCommand(
    "accept",
    callback=_accept,
    help=_ACCEPT,
    params=[
        click.Argument(["subject"], metavar="ARM_OR_PATH"),
        GroupedOption(
            "--reason", required=True, metavar="TEXT", heading="Baseline", help="Why this is as it should be."
        ),
        GroupedOption(
            "--date", metavar="YYYY-MM-DD", heading="Baseline", help="Day to write down (default: the run's)."
        ),
        GroupedOption(
            "--metric",
            multiple=True,
            metavar="NAME",
            heading="Baseline",
            help="Accept this metric alone; may be repeated.",
        ),
        GroupedOption(
            "--structure",
            multiple=True,
            metavar="CLASS/PHASE",
            heading="Baseline",
            help="Accept this count alone, or pairs/ag_rs/target, backend/moe_gemm/target; may be repeated.",
        ),
        GroupedOption(
            "--arm",
            metavar="NAME",
            heading="Baseline",
            help="Name in the baseline (default: the arm's, or the path's last part).",
        ),
        _FILE,
        _CONFIG,
        *reading_params(),
        GroupedOption("--debug", is_flag=True, help="Show the traceback of an error."),
    ],
)
_accept_command.examples = (
    'moeprof baseline accept base --reason "vLLM 0.26, measured on node 3"',
    'moeprof baseline accept base --metric output_throughput --reason "new sampler, 3 % slower, known"',
)
_show_command = GroupedCommand("show", callback=_show, help=_SHOW, params=[_FILE, _CONFIG, *output_params()])
_show_command.examples = ("moeprof baseline show",)

command = click.Group("baseline", help=_HELP, commands=[_accept_command, _show_command])
