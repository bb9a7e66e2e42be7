"""What capture and run share: the dry run, progress, and what the analysis adds to a block."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from moeprof.commands.streams import Streams, write
from moeprof.config.checks import check
from moeprof.config.describe import describe
from moeprof.errors import StoreWriteError
from moeprof.profiler.block import command_line
from moeprof.profiler.order import Order, Seen
from moeprof.store import redact
from moeprof.store.folder import Store
from moeprof.store.manifest import Manifest
from moeprof.store.run import Run
from moeprof.wording import safe

_GUARD_S = 2.0
_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)")


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

    def table(self, columns: Mapping[str, list[Any]], path: Path) -> None:
        """Write the columns of GPU samples as Parquet.

        Raises:
            OSError: When the disk does not take them.
        """
        import polars as pl

        others: dict[str, pl.DataType] = {"time": pl.Float64(), "uuid": pl.String(), "pids": pl.List(pl.Int64())}
        frame = pl.DataFrame(columns, schema={name: others.get(name, pl.Int64()) for name in columns})
        with _refusals(path):
            frame.write_parquet(path)

    def normalise(self, traces: Path, events: Path) -> None:
        """Write the normalised tables of every rank.

        Raises:
            OSError: When the disk does not take them.
        """
        from moeprof.traces.open import open_trace
        from moeprof.traces.parquet import write_tables

        with _refusals(events):
            write_tables(open_trace(traces), events)


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    """Turn what polars' writer tells in words, the system's refusals, into the system's errors."""
    from polars.exceptions import PolarsError

    try:
        yield
    except PolarsError as error:
        number = _SYSTEM_ERROR.search(str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error


def dry_run(orders: Sequence[Order]) -> str:
    """Return exactly what would be run, secrets taken out; needs neither the server nor a GPU."""
    parts = []
    for order in orders:
        port = order.arm.server.port or 8000
        command = command_line(order, port, Path("RUN/traces").absolute())
        secrets = redact.secrets(command.env)
        env = redact.env(dict(command.env))
        sent = "no workload" if order.workload is None else f"workload {order.workload.name}"
        lines = [f"# block {order.block}-{order.arm.name}, {sent}"]
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
        with suppress(OSError):  # a stderr that takes nothing is no reason to lose a capture
            write(streams.stderr, f"moeprof: {safe(text)}\n")

    return say


def sweep(store: Store, streams: Streams) -> None:
    """Remove what earlier writers that were killed have left behind, and say so.

    Raises:
        StoreWriteError: When it cannot be removed.
    """
    try:
        swept = store.sweep()
    except StoreWriteError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        time.sleep(_GUARD_S)  # the guard of the killed one removes the same folder just now
        swept = store.sweep()
    if swept:
        write(streams.stderr, f"moeprof: removed {len(swept)} unfinished run folder{'s' if len(swept) > 1 else ''}\n")


def stored(run: Run) -> str:
    """Return the lines that tell of a stored run: its name, its folder, its gates."""
    lines = [f"stored {run.name}", f"  {run.path}", f"  gates: {gates(run.manifest)}"]
    for gate in run.manifest.gates:
        if gate.get("outcome") == "fail":
            lines.append(f"  gate {gate.get('name')} failed, and is not required: {gate.get('message')}")
    return "".join(f"{safe(line)}\n" for line in lines)


def gates(manifest: Manifest) -> str:
    """Return a summary of a run's gates: how many passed and failed, and which had no data."""
    by: dict[str, list[str]] = {"pass": [], "fail": [], "no-data": []}
    for gate in manifest.gates:
        by.setdefault(str(gate.get("outcome")), []).append(str(gate.get("name")))
    parts = [f"{len(by['pass'])} passed"]
    parts += [f"{len(by['fail'])} failed"] if by["fail"] else []
    parts += [f"no data for {', '.join(by['no-data'])}"] if by["no-data"] else []
    return "; ".join(parts)
