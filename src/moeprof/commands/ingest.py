"""``moeprof ingest``: take what was made elsewhere into the store."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import click

from moeprof.commands.group import GroupedCommand, GroupedOption
from moeprof.commands.streams import Streams, write
from moeprof.errors import UsageError
from moeprof.store.folder import Store
from moeprof.store.lock import exclusive
from moeprof.store.run import Run
from moeprof.store.subject import store_root
from moeprof.wording import listed, plural, safe

_HELP = """Take traces, outputs of load clients and evaluations made elsewhere into the store, as runs of an arm.

What a file is follows from its content. Several outputs are passes 0, 1, 2 ... in the order given; - reads one from stdin. Text and
JSON of one pass are one pass. Everything is checked first: either all is stored, or nothing.
"""


def _run(
    path: tuple[str, ...],
    arm: str | None,
    block: int | None,
    number: int | None,
    workload: str | None,
    pattern: str | None,
    store: str | None,
    debug: bool,
) -> int:
    del debug
    from moeprof.commands.capturing import TraceAnalysis
    from moeprof.ingest.assignment import assign
    from moeprof.ingest.content import contents
    from moeprof.ingest.store import check_against_store
    from moeprof.ingest.store import write as write_runs

    streams = click.get_current_context().find_object(Streams) or Streams(None, None)
    with ExitStack() as stack:
        paths = _with_stdin(path, stack)
        assigned = assign(paths, arm=arm, block=block, number=number, workload=workload, pattern=pattern)
        held = contents(assigned.files)
        if number is not None and sum(len(group.passes) for group in held.groups) > 1:
            raise UsageError("--pass names one pass, and there are several", hint="leave --pass out, or use --pattern")
        kept = Store(store_root(store))
        with exclusive(kept.root):
            check_against_store(held.groups, kept)
            runs = write_runs(held.groups, kept, TraceAnalysis().normalise)
    if left := [*assigned.left_out, *held.left_out]:
        names = listed(safe(Path(name).name) for name in left)
        write(streams.stderr, f"moeprof: note: left out, as no trace or result or not of the pattern: {names}\n")
    write(streams.stdout, "".join(_line(run) for run in runs))
    return 0


def _with_stdin(paths: Sequence[str], stack: ExitStack) -> list[str]:
    """Return the paths, with a file for what comes from stdin."""
    if "-" not in paths:
        return list(paths)
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="moeprof-"))
    file = Path(folder, "stdin.txt")
    file.write_bytes(sys.stdin.buffer.read())
    return [str(file) if path == "-" else path for path in paths]


def _line(run: Run) -> str:
    told = run.manifest
    files = [name for name in told.files if name.startswith("traces/")]
    evaluations = told.extra.get("evaluations")
    parts = [plural(len(told.passes), "pass", "passes")] if told.passes else []
    parts += [plural(len(evaluations), "evaluation")] if isinstance(evaluations, list) and evaluations else []
    parts += [plural(len(files), "trace")] if files else []
    return f"stored {safe(run.name)}: {', '.join(parts)}\n"


command = GroupedCommand(
    "ingest",
    callback=_run,
    help=_HELP,
    params=[
        click.Argument(["path"], nargs=-1, required=True, metavar="PATH..."),
        GroupedOption("--arm", metavar="NAME", heading="Place", help="Arm that the files belong to."),
        GroupedOption(
            "--block",
            type=click.IntRange(min=0),
            metavar="N",
            heading="Place",
            help="Number of the block, in order of time over all arms (default: 0).",
        ),
        GroupedOption(
            "--pass", "number", type=click.IntRange(min=0), metavar="N", heading="Place", help="Number of the one pass."
        ),
        GroupedOption(
            "--workload", metavar="NAME", heading="Place", help="Workload, where the arms served more than one."
        ),
        GroupedOption(
            "--pattern",
            metavar="REGEX",
            heading="Place",
            help="Take arm, block, pass and workload from the names: groups (?P<arm>), (?P<block>), (?P<pass>), (?P<workload>).",
        ),
        GroupedOption(
            "--store",
            envvar="MOEPROF_STORE",
            metavar="DIR",
            heading="Place",
            help="Where runs are kept (default: the nearest configuration's store, else .moeprof).",
        ),
        GroupedOption("--debug", is_flag=True, help="Show the traceback of an error."),
    ],
)
command.examples = (
    "moeprof ingest pass0.json pass1.json pass2.json --arm base --block 0",
    r"moeprof ingest results/ --pattern '(?P<arm>\w+?)(?P<block>\d+)_pass(?P<pass>\d+)\.txt'",
)
