"""``moeprof capture``: one block of an arm, from start to stored run."""

from __future__ import annotations

from pathlib import Path

import click

from moeprof.commands.capturing import TraceAnalysis, dry_run, say_to, stored, sweep
from moeprof.commands.group import GroupedCommand, GroupedOption
from moeprof.commands.store_options import capture_params, configuration, recorded_by, store_of
from moeprof.commands.streams import Streams, write
from moeprof.config.load import find_arm, workload_for
from moeprof.profiler.attached import attach_to
from moeprof.profiler.block import capture
from moeprof.profiler.order import Order
from moeprof.profiler.signals import termination_as_exception
from moeprof.store.lock import exclusive

_HELP = """Launch an arm's server, measure it unprofiled, profile it in a window of its own, check and store the run.

The block: start, wait until ready, warm up, timed passes, a probe, the profile window, stop, gates. Nothing is left running, and a
run is stored whole or not at all. A block that fails ends with code 3 and says why.
"""


def _run(
    arm: str,
    block: int,
    attach: str | None,
    attach_traces: Path | None,
    config: Path | None,
    workload: str | None,
    store: Path | None,
    profiler: str | None,
    cuda_graphs: str | None,
    dry_run_: bool,
    debug: bool,
) -> int:
    streams = click.get_current_context().find_object(Streams) or Streams(None, None)
    loaded = recorded_by(configuration(config), profiler, cuda_graphs)
    chosen = find_arm(loaded, arm)
    order = Order(
        config=loaded,
        arm=chosen,
        workload=workload_for(loaded, chosen, workload),
        block=block,
        attach=attach_to(attach, attach_traces),
    )
    if dry_run_:
        write(streams.stdout, dry_run([order]))
        return 0
    kept = store_of(store, loaded)
    with termination_as_exception(), exclusive(kept.root):
        sweep(kept, streams)
        run = capture(order, kept, TraceAnalysis(), say_to(streams))
    write(streams.stdout, f"{stored(run)}next: moeprof report {order.arm.name}\n")
    return 0


command = GroupedCommand(
    "capture",
    callback=lambda dry_run, **values: _run(dry_run_=dry_run, **values),
    help=_HELP,
    params=[
        GroupedOption("--arm", required=True, metavar="NAME", heading="Configuration", help="Arm to capture."),
        GroupedOption(
            "--block",
            type=click.IntRange(min=0),
            default=0,
            metavar="N",
            heading="Running",
            help="Number of the block in its plan (default: 0).",
        ),
        GroupedOption(
            "--attach",
            metavar="URL",
            heading="Running",
            help="Profile a server that already runs there; it is neither started nor stopped.",
        ),
        GroupedOption(
            "--attach-traces",
            type=click.Path(path_type=Path),
            metavar="DIR",
            heading="Running",
            help="Folder that the attached server writes its traces to; they are copied.",
        ),
        *capture_params(),
    ],
)
command.examples = ("moeprof capture --arm mega", "moeprof capture --arm mega --dry-run")
