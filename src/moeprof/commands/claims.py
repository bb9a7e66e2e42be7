"""``moeprof claims``: whether written claims agree with the raw passes."""

from __future__ import annotations

import click

from moeprof.commands.group import GroupedCommand, GroupedOption
from moeprof.commands.options import Reading, Shared, output_params, targets
from moeprof.commands.output import emit, protect
from moeprof.commands.streams import Streams
from moeprof.errors import UsageError

_HELP = """Hold written claims, such as "+6.72 % output throughput", against the passes that they rest on.

FILE is TOML: base and candidate, and a [[claim]] for each. Printed digits stand for every value that rounds to them, so a claim is
confirmed, consistent, contradicted, or without data. The exit code is 1 where one is contradicted or has no data.
"""
_BAD = ("contradicted", "no_data")


def _run(
    file: str,
    base: str | None,
    candidate: str | None,
    metrics: str | None,
    store: str | None,
    format_: str | None,
    output: tuple[str, ...],
    color: str,
    wide: bool,
    debug: bool,
) -> int:
    del debug
    from moeprof import api
    from moeprof.analyzers.serving.metrics import load_metrics
    from moeprof.commands.claims_file import read_claims
    from moeprof.reports.render import render_claims

    streams = click.get_current_context().find_object(Streams) or Streams(None, None)
    options = Shared(targets(format_, output), color, wide, Reading(False, None, None, None, store))
    protect(options, (file,))
    held = read_claims(file, load_metrics(metrics))
    before, after = base or held.base, candidate or held.candidate
    if before is None or after is None:
        raise UsageError(
            "the claims name no base or no candidate",
            hint='say base = "base" and candidate = "mega" at the top of the file',
        )
    checked = api.check_claims(held.claims, before, after, store=store or held.store, metrics=metrics)
    code = 1 if any(row.label in _BAD for row in checked.claims) else 0
    emit(options, streams, lambda fmt, look: render_claims(checked, fmt, look, code))
    return code


command = GroupedCommand(
    "claims",
    callback=_run,
    help=_HELP,
    params=[
        click.Argument(["file"]),
        GroupedOption("--base", metavar="ARM_OR_PATH", heading="Reading", help="Base arm, instead of the file's."),
        GroupedOption(
            "--candidate", metavar="ARM_OR_PATH", heading="Reading", help="Candidate, instead of the file's."
        ),
        GroupedOption(
            "--metrics",
            metavar="FILE",
            heading="Reading",
            help="Serving metrics of your own (TOML): unit and direction.",
        ),
        GroupedOption(
            "--store",
            envvar="MOEPROF_STORE",
            metavar="DIR",
            heading="Reading",
            help="Where arms are looked for (default: the file's, the nearest configuration's, else .moeprof).",
        ),
        *output_params(),
    ],
)
command.examples = ("moeprof claims CHECK.toml", "moeprof claims CHECK.toml --base base --candidate mega --format json")
