"""``moeprof report``: what one arm does per iteration."""

from __future__ import annotations

from typing import Unpack

import click

from moeprof.commands import analysis
from moeprof.commands.explain import explain
from moeprof.commands.group import GroupedCommand, GroupedOption
from moeprof.commands.options import SharedValues, shared, shared_params
from moeprof.commands.output import emit, protect
from moeprof.commands.streams import Streams
from moeprof.errors import UsageError

_HELP = """Count launches per iteration and measure GPU time of a trace.

PATH is a trace file, a folder with one trace per rank, or an arm that was captured. Of several each is reported on, one after another.
"""


def _run(
    path: tuple[str, ...],
    explain_class: str | None,
    layers: bool,
    timeline: bool,
    ranks: bool,
    **values: Unpack[SharedValues],
) -> int:
    options = shared(**values)
    streams = click.get_current_context().find_object(Streams) or Streams(None, None)
    if explain_class is not None:
        if path:
            raise UsageError("--explain-class needs no path", hint="leave the path out")
        return explain(explain_class, options, streams)
    if not path:
        raise UsageError("no trace was named", hint="moeprof report PATH")
    protect(options, path)
    reports = [analysis.report_of(item, options.reading, timeline=timeline, ranks=ranks) for item in path]
    from moeprof.reports.render import render_reports

    emit(options, streams, lambda fmt, look: render_reports(reports, fmt, look, layers=layers))
    return 0


command = GroupedCommand(
    "report",
    callback=_run,
    help=_HELP,
    params=[
        click.Argument(["path"], nargs=-1, metavar="PATH..."),
        GroupedOption(
            "--explain-class",
            metavar="NAME",
            heading="Reading",
            help="Say which rule takes this kernel name, and stop.",
        ),
        GroupedOption(
            "--layers",
            is_flag=True,
            heading="Content",
            help="Show the structure that repeats in an iteration: layers, passes and their launches.",
        ),
        GroupedOption(
            "--timeline",
            is_flag=True,
            heading="Content",
            help="Say where the wall time of iterations goes: device work, waits, idle gaps with their causes.",
        ),
        GroupedOption(
            "--ranks",
            is_flag=True,
            heading="Content",
            help="Match collectives across ranks: who waits for whom, whose work takes longer.",
        ),
        *shared_params(),
    ],
)
command.examples = (
    "moeprof report traces/h200/base",
    "moeprof report traces/h200/base --output json=base.json",
)
