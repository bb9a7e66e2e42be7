"""The command group: subcommands are imported when they run, so help and completion stay instant."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

import click

from moeprof.pipes import refuse_pipe

_OTHER = "Other"


class LazyGroup(click.Group):
    """A group that knows the first help line of its subcommands without importing them.

    Args:
        name: Name of the program.
        summary: Help of the program.
        epilog: Text after the list of commands.
        modules: Subcommand to its module (which has `command`) and the first line of its help.
    """

    def __init__(self, name: str, *, summary: str, epilog: str, modules: Mapping[str, tuple[str, str]]) -> None:
        super().__init__(name, help=summary, epilog=epilog)
        self.modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a subcommand; None where there is none of that name."""
        if cmd_name not in self.modules:
            return None
        return cast(click.Command, import_module(self.modules[cmd_name][0]).command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of subcommands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.modules.items()])


class GroupedCommand(click.Command):
    """A command whose help lists its options under headings and ends with examples.

    Options name their heading through `heading`; parameters without one stand under "Other".
    """

    examples: tuple[str, ...] = ()

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, unless it would wait for ever on an input."""
        for value in ctx.params.values():
            for each in value if isinstance(value, tuple | list) else (value,):
                if isinstance(each, str | os.PathLike):
                    refuse_pipe(each)
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, grouped."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = None if isinstance(parameter, click.Argument) else parameter.get_help_record(ctx)
            if record is not None:
                groups.setdefault(getattr(parameter, "heading", _OTHER), []).append(record)
        for heading, records in sorted(groups.items(), key=lambda group: group[0] == _OTHER):
            with formatter.section(heading):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}$ {example}\n")


class GroupedOption(click.Option):
    """An option that stands under a heading of the help."""

    def __init__(self, *names: str, heading: str = _OTHER, **attributes: Any) -> None:
        super().__init__(names, **attributes)
        self.heading = heading
