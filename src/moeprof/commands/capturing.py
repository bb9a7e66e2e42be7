"""What capture and run share: the dry run, progress, and what the analysis adds to a block."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from moeprof.commands.streams import Streams, write
from moeprof.config.checks import check
from moeprof.config.describe import describe
from moeprof.profiler.block import Order, Seen, command_line
from moeprof.store import redact


class TraceAnalysis:
    """The analysis' part of a block; heavy imports happen when it is used."""

    def look(self, traces: Path) -> Seen:
        """Return what the traces hold; of ranks that disagree, the first one's counts (the gates see their iterations)."""
        import moeprof

        report = moeprof.report(moeprof.open_trace(traces))
        kernels: dict[str, int] = {}
        for rank in report.ranks:
            for row in rank.counts:
                if row.per_iteration is not None:
                    kernels.setdefault(f"{row.class_}/{row.phase}", row.per_iteration)
        iterations = {rank.rank or rank.source: rank.iterations.total for rank in report.ranks}
        families = {rank.iterations.marker for rank in report.ranks}
        return Seen(kernels, iterations, families.pop() if len(families) == 1 else None)

    def normalise(self, traces: Path, events: Path) -> None:
        """Write the normalised tables of every rank."""
        from moeprof.traces.open import open_trace
        from moeprof.traces.parquet import write_tables

        write_tables(open_trace(traces), events)


def dry_run(orders: Sequence[Order]) -> str:
    """Return exactly what would be run, secrets taken out; needs neither the server nor a GPU."""
    parts = []
    for order in orders:
        port = order.arm.server.port or 8000
        command = command_line(order, port, Path("RUN/traces").absolute())
        secrets = redact.secrets(command.env)
        env = redact.env(dict(command.env))
        lines = [f"# block {order.block}-{order.arm.name}, workload {order.workload.name}"]
        lines += ["# port: a free one; RUN: the run's folder"] if order.arm.server.port == 0 else []
        lines += [f"{name}={shlex.quote(value)} \\" for name, value in sorted(env.items())]
        lines.append(shlex.join(redact.argv(list(command.argv), known=secrets)))
        lines += ["", describe(order.config, order.arm.name).rstrip(), ""]
        parts.append("\n".join(lines))
    findings = check(orders[0].config) if orders else ()
    notes = [f"# {finding.severity}[{finding.slug}]: {finding.message}" for finding in findings]
    return "\n".join([*parts, *notes]) + "\n"


def say_to(streams: Streams) -> Callable[[str], None]:
    """Return where progress goes: stderr, a line at a time."""

    def say(text: str) -> None:
        write(streams.stderr, f"moeprof: {text}\n")

    return say


def report_failures(swept: Sequence[Path], streams: Streams) -> None:
    """Say what an earlier writer that was killed had left behind."""
    if swept:
        write(streams.stderr, f"moeprof: removed {len(swept)} unfinished run folder{'s' if len(swept) > 1 else ''}\n")
