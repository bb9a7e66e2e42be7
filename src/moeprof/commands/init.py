"""``moeprof init``: a commented configuration to start from."""

from __future__ import annotations

from pathlib import Path

import click

from moeprof.commands.group import GroupedCommand, GroupedOption
from moeprof.commands.streams import Streams, write
from moeprof.config.init import TEMPLATES, TemplateName, look_around, target, template, write_new

_HELP = """Write a commented moeprof.toml for the server found here, or for one named.

PATH is the file to write, or a folder for it (default: the working directory). Without --backend: vllm with the arms base and
mega; cpu where vLLM is installed and no NVIDIA GPU is found; h200 where eight H200 are.
"""


def _run(path: str, backend: TemplateName | None, force: bool, debug: bool) -> int:
    streams = click.get_current_context().find_object(Streams) or Streams(None, None)
    found = None if backend else look_around()
    name: TemplateName = backend or (found.template if found else "vllm")
    file = target(path)
    write_new(file, template(name, devices=len(found.devices) if found else 0), force=force)
    reason = f"found: {found}" if found else "as asked for"
    option = "" if file.resolve().parent == Path.cwd() and file.name == "moeprof.toml" else f" --config {file}"
    write(
        streams.stdout,
        f"wrote {file} from the example {name} ({reason})\n"
        "next: change the lines marked EDIT, then look at what would be run:\n"
        f"  moeprof capture --arm base --dry-run{option}\n",
    )
    return 0


command = GroupedCommand(
    "init",
    callback=_run,
    help=_HELP,
    params=[
        click.Argument(["path"], default="."),
        GroupedOption(
            "--backend",
            type=click.Choice(TEMPLATES),
            metavar="NAME",
            heading="Writing",
            help=f"The example to write: {', '.join(TEMPLATES)}.",
        ),
        GroupedOption("--force", is_flag=True, heading="Writing", help="Replace a file that is there already."),
        GroupedOption("--debug", is_flag=True, help="Show the traceback of an error."),
    ],
)
command.examples = ("moeprof init", "moeprof init --backend h200 experiments/moeprof.toml")
