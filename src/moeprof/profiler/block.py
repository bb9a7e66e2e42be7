"""One block of an arm: launch, wait, warm up, timed passes, probe, profile window, stop, gates, manifest.

The analysis is not imported here. What only it can tell (the kernels that a trace holds) comes in through `Analysis`, so that
capture and analysis meet in the run folder.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from moeprof.config.schema import Arm, Config, Window, Workload
from moeprof.errors import CaptureError, ConfigError, GateFailedError, PassFailedError
from moeprof.profiler import evidence
from moeprof.profiler.backends.base import CommandLine, ServingBackend, is_serving
from moeprof.profiler.backends.command import run_to_end
from moeprof.profiler.backends.find import find_backend
from moeprof.profiler.find_client import ChosenClient, choose_client
from moeprof.profiler.gpu_samples import SampleSummary
from moeprof.profiler.load import Load, find_vocabulary, loads
from moeprof.profiler.passes import run_with
from moeprof.profiler.ports import choose_port
from moeprof.profiler.probe import Probe, probe
from moeprof.profiler.process import ServerProcess
from moeprof.profiler.results import PassResult
from moeprof.profiler.signals import termination_as_exception
from moeprof.profiler.watchdog import Watchdog
from moeprof.profiler.window import Server, WindowResult, profile_window
from moeprof.store import redact
from moeprof.store.folder import Store
from moeprof.store.run import Run
from moeprof.store.writer import RunWriter

_ASK_S = 5.0
_STEP_S = 1.0

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

    def normalise(self, traces: Path, events: Path) -> None:
        """Write the normalised tables."""
        ...


@dataclass(frozen=True, slots=True)
class Order:
    """What to capture.

    Attributes:
        config: The whole configuration.
        arm, workload: Of it.
        block: Number in its plan.
        plan: Name of the plan, or None.
        attach: Base address of a server that already runs; it is neither started nor stopped.
        keep_failed: Keep what a failed block left, for a person to look at.
    """

    config: Config
    arm: Arm
    workload: Workload
    block: int = 0
    plan: str | None = None
    attach: str | None = None
    keep_failed: bool = True


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


def capture(order: Order, store: Store, analysis: Analysis, say: Say) -> Run:
    """Capture one block and return its run.

    Args:
        order: What to capture.
        store: Where to; its lock must be held.
        analysis: What the analysis adds.
        say: Told of progress, a line at a time.

    Raises:
        ConfigError: The configuration cannot be run.
        CaptureError: The block failed; what it left lies in the store's ``failed`` folder.
        StoreWriteError: The store cannot be written.
    """
    with termination_as_exception(), store.begin(order.arm.name, order.block) as writer:
        found = Findings(started=_now())
        try:
            _run(order, writer, found, analysis, say)
            manifest, failed = evidence.manifest(order, writer.path, found, _now())
            if failed:
                names = ", ".join(gate.name for gate in failed)
                raise GateFailedError(
                    f"{len(failed)} required gate{'s' if len(failed) > 1 else ''} failed: {names}; {failed[0].message}",
                    hint="gates.required in moeprof.toml says which gates a capture must pass",
                )
            return writer.commit(manifest)
        except (CaptureError, ConfigError) as error:
            if order.keep_failed and isinstance(error, CaptureError):
                _set_aside(order, writer, found, error)
            raise


def command_line(order: Order, port: int, traces: Path) -> CommandLine:
    """Return exactly what would be started.

    Raises:
        ConfigError: The arm cannot be turned into a command line.
    """
    backend = find_backend(order.arm.server.backend)
    return backend.command(order.arm, port=port, traces=traces, window=_window(order))


def _run(order: Order, writer: RunWriter, found: Findings, analysis: Analysis, say: Say) -> None:
    backend = find_backend(order.arm.server.backend)
    traces = writer.path / "traces"
    if not is_serving(backend):
        _run_program(order, writer, found, say)
    elif order.attach is not None:
        _drive(order, backend, order.attach, dict(os.environ), writer, found, say, check=_nothing, cancelled=None)
    else:
        _serve(order, backend, writer, found, say)
    say("reading the traces")
    found.seen = analysis.look(traces)
    analysis.normalise(traces, writer.path / "events")


def _run_program(order: Order, writer: RunWriter, found: Findings, say: Say) -> None:
    port = choose_port(order.arm.server.host, order.arm.server.port)
    found.command = command_line(order, port, writer.path / "traces")
    say(f"running {found.command.argv[0]}")
    with _started(found.command, order, writer) as process:
        run_to_end(process, order.config.passes.timeout_s)


def _serve(order: Order, backend: ServingBackend, writer: RunWriter, found: Findings, say: Say) -> None:
    server = order.arm.server
    port = choose_port(server.host, server.port)
    found.command = backend.command(order.arm, port=port, traces=writer.path / "traces", window=_window(order))
    address = backend.address(order.arm, port)
    cancelled = threading.Event()
    say(f"starting arm {order.arm.name} on port {port}")
    with _started(found.command, order, writer) as process:
        found.ready_s = process.wait_ready(
            backend.health(order.arm, address), server.ready_s, lambda passed, seen: say(f"{passed:.0f} s: {seen}")
        )
        say(f"ready after {found.ready_s:.0f} s")
        with (
            evidence.sampling(order, writer.path, found),
            Watchdog(
                process,
                lambda: backend.progress(address, _ASK_S),
                stall_s=server.stall_s,
                on_trouble=lambda _: cancelled.set(),
                evidence=writer.path / "stall.txt",
                period_s=_STEP_S,
            ) as watchdog,
        ):
            found.server_pids |= {member.pid for member in process.members()}
            environment = {**found.command.environment(os.environ), **process.mark}
            _drive(order, backend, address, environment, writer, found, say, check=watchdog.check, cancelled=cancelled)
            watchdog.check()
            found.server_pids |= {member.pid for member in process.members()}
        say("stopping the server")


@contextlib.contextmanager
def _started(command: CommandLine, order: Order, writer: RunWriter) -> Iterator[ServerProcess]:
    secrets = redact.secrets(command.env)
    with ServerProcess.start(
        command.argv,
        env=command.environment(os.environ),
        log=writer.path / "server.log",
        cwd=command.cwd,
        stop_s=order.arm.server.stop_s,
        scratch=writer.path,
        redact=lambda line: redact.text(line, known=secrets),
    ) as process:
        yield process


def _drive(
    order: Order,
    backend: ServingBackend,
    address: str,
    environment: Mapping[str, str],
    writer: RunWriter,
    found: Findings,
    say: Say,
    *,
    check: Callable[[], None],
    cancelled: threading.Event | None,
) -> None:
    """Warm up, measure, probe, profile: everything that needs a server and does not care who started it."""
    passes = order.config.passes
    model = backend.served_name(order.arm)
    command = order.arm.server.command
    found.client = choose_client(passes.client, command, environment)
    vocabulary = (
        find_vocabulary(order.workload, order.arm.server.model) if _needs_vocabulary(order, found.client) else None
    )
    points = loads(order.workload, vocabulary=vocabulary)

    def run(name: str, load: Load) -> PassResult:
        assert found.client is not None
        try:
            return run_with(
                found.client,
                address,
                model,
                load,
                writer.path / "bench" / f"{name}.json",
                tokenizer=order.arm.server.model or model,
                env=environment,
                timeout_s=passes.timeout_s,
                cancelled=cancelled,
            )
        except PassFailedError:
            check()  # a dead or stalled server is the better reason
            raise

    for number in range(passes.warmup):
        say(f"warm-up {number + 1} of {passes.warmup} ({found.client.name})")
        run(f"warmup{number}", points[-1])
    for load in points:
        for number in range(passes.timed):
            name = f"{evidence.point_name(load)}-pass{number}"
            say(f"pass {number + 1} of {passes.timed}, {evidence.point_name(load)}")
            began = _clock()
            found.passes.append(run(name, load))
            found.times.append((began, _clock()))
            check()
    found.probe = probe(address, model, points[0], _ASK_S * 6)
    check()
    say("profile window")
    window = _window(order)
    found.window = profile_window(
        Server(
            address,
            model,
            progress=lambda: backend.progress(address, _ASK_S),
            start=lambda: backend.start_profile(address, window),
            stop=lambda: backend.stop_profile(address, window),
            engines=evidence.engines(order.arm),
            ranks=evidence.ranks(order.arm),
            check=check,
        ),
        _window_load(order, window, vocabulary),
        window,
        writer.path / "traces",
    )


def _needs_vocabulary(order: Order, client: ChosenClient) -> bool:
    """The built-in client and the window's long requests send token ids."""
    return client.name == "builtin" or order.arm.server.backend == "vllm"


def _window(order: Order) -> Window:
    return order.config.window


def _window_load(order: Order, window: Window, vocabulary: int | None) -> Load:
    workload = order.workload
    concurrency = window.concurrency or max(workload.concurrency, default=8)
    return Load(
        prompts=concurrency,
        input_len=window.input_len or workload.input_len,
        output_len=window.output_len,
        concurrency=concurrency,
        seed=workload.seed,
        vocabulary=vocabulary,
        temperature=workload.temperature,
        ignore_eos=True,
    )


def _set_aside(order: Order, writer: RunWriter, found: Findings, error: CaptureError) -> None:
    manifest, _ = evidence.manifest(order, writer.path, found, _now())
    folder = writer.fail(error.message, manifest)
    error.hint = f"look at {folder}{f'; {error.hint}' if error.hint else ''}"


def _nothing() -> None:
    return None


def _clock() -> float:
    return datetime.now(UTC).timestamp()


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
