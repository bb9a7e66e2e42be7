"""``moeprof run``: the blocks of a plan, one after another, resumable."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from moeprof.commands.capturing import TraceAnalysis, dry_run, say_to, stored, sweep
from moeprof.commands.group import GroupedCommand, GroupedOption
from moeprof.commands.store_options import capture_params, configuration, recorded_by, store_of
from moeprof.commands.streams import Streams, write
from moeprof.config.load import find_arm, workload_for
from moeprof.profiler.block import capture
from moeprof.profiler.evidence import arm_fingerprint
from moeprof.profiler.order import Order
from moeprof.profiler.plan import PLANS, PlanName, blocks, missing, newest_kernels
from moeprof.profiler.signals import termination_as_exception
from moeprof.store.lock import exclusive

_HELP = """Capture the blocks of a plan, one server at a time: 0-base, 1-mega, 2-base.

BASE and CANDIDATE are arms of moeprof.toml. Blocks that are stored already (same plan, same fingerprint) are not repeated, so a run
that was stopped is resumed by the same command. The first block that fails ends the run with code 3.
"""


def _run(
    base: str,
    candidate: str,
    plan: PlanName,
    again: bool,
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
    planned = blocks(plan, base, candidate)
    arms = {name: find_arm(loaded, name) for name in (base, candidate)}
    loads = {name: workload_for(loaded, arm, workload) for name, arm in arms.items()}
    orders = {block: Order(loaded, arms[block.arm], loads[block.arm], block.number, plan) for block in planned}
    if dry_run_:
        write(streams.stdout, dry_run(list(orders.values())))
        return 0
    kept = store_of(store, loaded)
    say = say_to(streams)
    with termination_as_exception(), exclusive(kept.root):
        sweep(kept, streams)
        fingerprints = {order.arm.name: arm_fingerprint(order) for order in orders.values()}
        done = [] if again else [run.manifest for run in kept.runs()]
        todo = missing(list(orders), plan, done, fingerprints)
        for block, order in orders.items():
            if block not in todo:
                say(f"block {block} is stored already")
                continue
            say(f"block {block}")
            other = candidate if block.arm == base else base
            order = replace(order, other_kernels=newest_kernels(kept.runs(other), plan, fingerprints[other]))
            run = capture(order, kept, TraceAnalysis(), say)
            write(streams.stdout, stored(run))
    write(streams.stdout, f"next: moeprof diff {base} {candidate}\n")
    return 0


command = GroupedCommand(
    "run",
    callback=lambda dry_run, **values: _run(dry_run_=dry_run, **values),
    help=_HELP,
    params=[
        click.Argument(["base"]),
        click.Argument(["candidate"]),
        GroupedOption(
            "--plan",
            type=click.Choice(PLANS),
            default="aba",
            heading="Running",
            help="Schedule: aba, abba or ab (default: aba).",
        ),
        GroupedOption("--again", is_flag=True, heading="Running", help="Capture blocks that are stored already, too."),
        *capture_params(),
    ],
)
command.examples = ("moeprof run --plan aba base mega", "moeprof run base mega --dry-run")
