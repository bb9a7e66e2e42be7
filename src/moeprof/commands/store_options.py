"""Options of the commands that read the configuration and write to the store."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import click

from moeprof.commands.group import GroupedOption
from moeprof.config.load import load_config
from moeprof.config.schema import Config
from moeprof.config.tables import changed
from moeprof.errors import UsageError
from moeprof.store.folder import Store


def capture_params() -> list[click.Parameter]:
    """Return the options that capture and run share."""
    return [
        GroupedOption(
            "--config",
            type=click.Path(path_type=Path),
            metavar="FILE",
            heading="Configuration",
            help="moeprof.toml to read (default: the nearest one above the working directory).",
        ),
        GroupedOption(
            "--workload", metavar="NAME", heading="Configuration", help="Workload to send (default: the first)."
        ),
        GroupedOption(
            "--store",
            type=click.Path(path_type=Path),
            envvar="MOEPROF_STORE",
            metavar="DIR",
            heading="Configuration",
            help="Where runs are kept (default: the configuration's, else .moeprof).",
        ),
        GroupedOption(
            "--profiler",
            type=click.Choice(("torch", "nsys")),
            metavar="NAME",
            heading="Running",
            help="Who records the window: torch, the server's own profiler, or nsys around the server (default: the configuration's).",
        ),
        GroupedOption(
            "--cuda-graphs",
            type=click.Choice(("node", "graph")),
            metavar="MODE",
            heading="Running",
            help="With nsys: node records every kernel of a graph, for structure; graph each graph as one row, for time.",
        ),
        GroupedOption(
            "--dry-run", is_flag=True, heading="Running", help="Print exactly what would be run, and run nothing."
        ),
        GroupedOption("--debug", is_flag=True, help="Show the traceback of an error."),
    ]


def configuration(path: Path | None) -> Config:
    """Load the configuration named, or the nearest one."""
    return load_config(path, start=Path.cwd())


def recorded_by(config: Config, tool: str | None, cuda_graphs: str | None) -> Config:
    """Return the configuration with who records replaced, where options say so.

    Raises:
        UsageError: A graph mode for the torch profiler, which has none.
    """
    given = {"tool": tool, "cuda_graphs": cuda_graphs}
    profiler = changed(config.profiler, {key: value for key, value in given.items() if value is not None})
    if cuda_graphs is not None and profiler.tool != "nsys":
        raise UsageError("--cuda-graphs is for nsys, and the torch profiler records", hint="add --profiler nsys")
    return replace(config, profiler=profiler)


def store_of(option: Path | None, config: Config | None = None) -> Store:
    """Return the store asked for by option or environment, else the configuration's, else the default."""
    if option is not None:
        return Store(option)
    if config is None:
        return Store(Path(os.environ.get("MOEPROF_STORE", ".moeprof")))
    folder = Path(config.store)
    return Store(folder if folder.is_absolute() else Path(config.source).resolve().parent / folder)
