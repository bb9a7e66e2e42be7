"""The program: its subcommands, and the only place that catches, prints and exits."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from typing import TextIO

import click

from moeprof.commands.crash import describe
from moeprof.commands.group import LazyGroup
from moeprof.commands.streams import Streams, is_terminal, write

_HELP = """Profile and compare Mixture-of-Experts LLM serving.

Counts launches per iteration in traces of torch.profiler and says what changed between two arms.
"""
_EPILOG = (
    "moeprof COMMAND --help says more. Exit codes: 0 done, 1 regression or failed gate, 2 error, 3 capture failed."
)
_COMMANDS = {
    "init": ("moeprof.commands.init", "Write a commented moeprof.toml to start from."),
    "capture": ("moeprof.commands.capture", "Launch an arm's server, measure it, profile it, store the run."),
    "run": ("moeprof.commands.run", "Capture the blocks of a plan, one server at a time."),
    "ingest": ("moeprof.commands.ingest", "Take traces and results made elsewhere into the store."),
    "report": ("moeprof.commands.report", "Count launches per iteration and measure GPU time of a trace."),
    "diff": ("moeprof.commands.diff", "Compare two arms: launches, times, serving metrics."),
    "gate": ("moeprof.commands.gate", "Hold a run against its accepted baseline, for CI."),
    "baseline": ("moeprof.commands.baseline", "Accept what a run did, with a reason; show what was accepted."),
    "claims": ("moeprof.commands.claims", "Hold written claims against the passes that they rest on."),
    "kernels": ("moeprof.commands.kernels", "Measure the MoE kernels of arms with Nsight Compute."),
    "doctor": ("moeprof.commands.doctor", "Say what works on this machine, and what to do about the rest."),
    "runs": ("moeprof.commands.runs", "List, show and remove stored runs."),
}
_PIPE_WIDTH = 100
_COMPLETION = "_MOEPROF_COMPLETE"


def main(argv: Sequence[str] | None = None, stdout: TextIO | None = None, stderr: TextIO | None = None) -> int:
    """Run the program and return its exit code; nothing is raised but SystemExit of foreign code.

    Args:
        argv: Arguments without the program's name; those of the process by default.
        stdout: Where the result goes; the process' own by default.
        stderr: Where errors go; the process' own by default.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    with ExitStack() as stack:
        if stdout is not None:
            stack.enter_context(redirect_stdout(stdout))
        if stderr is not None:
            stack.enter_context(redirect_stderr(stderr))
        streams = Streams(sys.stdout, sys.stderr)
        try:
            return _invoke(arguments, streams)
        except (SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a Rust panic derives from BaseException
            code, text = describe(error, debug="--debug" in arguments)
            with suppress(OSError, ValueError):  # nobody can be told; the code still tells
                write(streams.stderr, text)
            return code


def run() -> None:
    """Run the program and exit with its code."""
    sys.exit(main())


def _invoke(arguments: list[str], streams: Streams) -> int:
    group = LazyGroup("moeprof", summary=_HELP, epilog=_EPILOG, modules=_COMMANDS)
    group.params.append(_version_option(streams))
    if _COMPLETION in os.environ:
        from click.shell_completion import shell_complete

        return shell_complete(group, {}, "moeprof", _COMPLETION, os.environ[_COMPLETION])
    width = None if is_terminal(streams.stdout) else _PIPE_WIDTH
    try:
        with group.make_context(
            "moeprof", arguments, obj=streams, terminal_width=width, max_content_width=_PIPE_WIDTH
        ) as context:
            code: object = group.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    except BrokenPipeError:  # the reader of a help text has gone away
        write(streams.stdout, "")
        return 0
    return code if isinstance(code, int) else 0


def _version_option(streams: Streams) -> click.Option:
    def show(context: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            write(streams.stdout, f"{_version()}\n")
            context.exit()

    return click.Option(
        ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=show, help="Show the version and exit."
    )


def _version() -> str:
    from moeprof import __version__
    from moeprof.errors import NativeMissingError

    try:
        from moeprof.traces.kineto import build_info

        info = build_info()
    except NativeMissingError:
        return f"moeprof {__version__} (native module not installed)"
    profile = info.get("profile", "unknown build")
    slow = "; a debug build is slow" if profile == "debug" else ""
    return f"moeprof {__version__} (native {info.get('version', 'unknown')}, {profile}{slow})"
