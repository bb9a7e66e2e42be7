"""What a block is asked for, and what it has found so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from moeprof.config.schema import Arm, Config, Workload
from moeprof.profiler.attached import Attached
from moeprof.profiler.backends.base import CommandLine
from moeprof.profiler.find_client import ChosenClient
from moeprof.profiler.gpu_samples import SampleSummary
from moeprof.profiler.probe import Probe
from moeprof.profiler.results import PassResult
from moeprof.profiler.window import WindowResult

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Seen:
    """What the traces hold.

    Attributes:
        kernels: Class/phase to launches per iteration.
        iterations: Rank to its iterations, partial ones included.
        family: Marker family that the traces were cut by; None: no marker.
    """

    kernels: Mapping[str, int]
    iterations: Mapping[str, int]
    family: str | None


class Analysis(Protocol):
    """What the analysis adds to a block once its traces are there."""

    def look(self, traces: Path) -> Seen:
        """Return what the traces hold."""
        ...

    def table(self, columns: Mapping[str, list[Any]], path: Path) -> None:
        """Write the columns of GPU samples as Parquet."""
        ...

    def normalise(self, traces: Path, events: Path) -> None:
        """Write the normalised tables."""
        ...


@dataclass(frozen=True, slots=True)
class Order:
    """What to capture.

    Attributes:
        config: The whole configuration.
        arm, workload: Of it; no workload for a program that runs to its end.
        block: Number in its plan.
        plan: Name of the plan, or None.
        attach: A server that already runs; it is neither started nor stopped.
        keep_failed: Keep what a failed block left, for a person to look at.
        other_kernels: Class/phase to launches per iteration of the arm that this one is compared with; None: not known.
    """

    config: Config
    arm: Arm
    workload: Workload | None
    block: int = 0
    plan: str | None = None
    attach: Attached | None = None
    keep_failed: bool = True
    other_kernels: Mapping[str, int] | None = None


@dataclass(slots=True)
class Findings:
    """What a block has found so far; it grows as the block goes on, so that a failure keeps what was there."""

    started: str
    command: CommandLine | None = None
    ready_s: float | None = None
    client: ChosenClient | None = None
    passes: list[PassResult] = field(default_factory=list)
    times: list[tuple[float, float]] = field(default_factory=list)
    probe: Probe | None = None
    window: WindowResult | None = None
    seen: Seen | None = None
    samples: SampleSummary | None = None
    server_pids: set[int] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
