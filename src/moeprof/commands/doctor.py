"""``moeprof doctor``: what works on this machine, and the cure for what does not."""

from __future__ import annotations

import json
from pathlib import Path

import click

from moeprof.commands.group import GroupedCommand, GroupedOption
from moeprof.commands.streams import Streams, write
from moeprof.doctor import machine, software
from moeprof.doctor.check import run_all
from moeprof.wording import safe

_HELP = """Say what works on this machine, and what to do about the rest.

The exit code is 0 whatever is found: a machine without a GPU can still analyse traces.
"""


def _run(store: str, format_: str, debug: bool) -> int:
    streams = click.get_current_context().find_object(Streams) or Streams(None, None)
    found = run_all([*software.checks(), *machine.checks(Path(store))])
    if format_ == "json":
        value = {"checks": [item.to_dict() for item in found], "schema": "moeprof.doctor/1"}
        write(streams.stdout, json.dumps(value, indent=2, sort_keys=True) + "\n", as_json=True)
        return 0
    width = max(len(item.name) for item in found)
    lines = []
    for item in found:
        lines.append(f"{item.result.state:<7}  {item.name:<{width}}  {safe(item.result.what)}")
        if item.result.cure is not None:
            lines.append(f"{'':<7}  {'':<{width}}  try: {safe(item.result.cure)}")
    states = [item.result.state for item in found]
    lines.append(f"{states.count('ok')} ok, {states.count('warn')} with a catch, {states.count('missing')} missing")
    write(streams.stdout, "".join(f"{line}\n" for line in lines))
    return 0


command = GroupedCommand(
    "doctor",
    callback=_run,
    help=_HELP,
    params=[
        GroupedOption(
            "--store", metavar="DIR", default=".moeprof", envvar="MOEPROF_STORE",
            help="The store whose disk is looked at (default: $MOEPROF_STORE, else .moeprof).",
        ),
        GroupedOption(
            "--format", "format_", type=click.Choice(("text", "json")), default="text",
            help="What goes to stdout (default: text).",
        ),
        GroupedOption("--debug", is_flag=True, help="Show the traceback of an error."),
    ],
)  # fmt: skip
command.examples = ("moeprof doctor", "moeprof doctor --format json")
