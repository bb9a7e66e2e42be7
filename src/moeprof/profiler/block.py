"""One block of an arm: launch, wait, warm up, timed passes, probe, profile window, stop, gates, manifest.

The analysis is not imported here. What only it can tell (the kernels that a trace holds) comes in through `Analysis`, so that
capture and analysis meet in the run folder.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from moeprof.config.schema import Arm, Config, Workload
from moeprof.errors import (
    CaptureError,
    ConfigError,
    GateFailedError,
    MoeprofError,
    PassFailedError,
    UsageError,
    WindowFailedError,
)
from moeprof.profiler import attached, evidence, failure, progress
from moeprof.profiler.backends.base import CommandLine, ServingBackend, is_serving
from moeprof.profiler.backends.command import run_to_end
from moeprof.profiler.find_backend import find_backend
from moeprof.profiler.find_client import ChosenClient, choose_client
from moeprof.profiler.gates import GateResult
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
from moeprof.store import disk, redact
from moeprof.store.folder import Store
from moeprof.store.run import Run
from moeprof.store.writer import RunWriter

_ASK_S = 5.0
_STEP_S = 1.0
_PROBE_S = 30.0  # beyond the limit of a stall, so that the watchdog speaks first and a slow server is waited for
_DEATH_S = 1.0  # a connection breaks before its server is a dead process

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
        attach: A server that already runs; it is neither started nor stopped.
        keep_failed: Keep what a failed block left, for a person to look at.
        other_kernels: Class/phase to launches per iteration of the arm that this one is compared with; None: not known.
    """

    config: Config
    arm: Arm
    workload: Workload
    block: int = 0
    plan: str | None = None
    attach: attached.Attached | None = None
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


@dataclass(frozen=True, slots=True)
class _Target:
    """A server to be driven, whoever started it.

    Attributes:
        address: Its base address.
        environment: For load clients.
        traces: Folder that its profiler writes to.
        check: Raises when it is dead or stalled.
        cancelled: Set when a pass has no sense any more.
    """

    address: str
    environment: Mapping[str, str]
    traces: Path
    check: Callable[[], None]
    cancelled: threading.Event | None = None


@dataclass(frozen=True, slots=True)
class _Sending:
    """What is sent, decided before a server is started, so that a wrong configuration costs no start."""

    client: ChosenClient
    points: list[Load]
    window: Load


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
            with disk.explained("capture the block", writer.path):
                _run(order, writer, found, analysis, say)
                manifest, failed = evidence.manifest(order, writer.path, found, _now())
                if failed:
                    raise _gates_failed(failed)
                return writer.commit(manifest)
        except (ConfigError, UsageError):
            raise
        except CaptureError as error:
            _set_aside(order, writer, found, error)
            raise
        except MoeprofError as error:
            told = CaptureError(f"the block cannot be stored: {error.message}", path=error.path, hint=error.hint)
            _set_aside(order, writer, found, told)
            raise told from error
        except Exception as error:
            _set_aside(order, writer, found, error)
            raise


def command_line(order: Order, port: int, traces: Path) -> CommandLine:
    """Return exactly what would be started.

    Raises:
        ConfigError: The arm cannot be turned into a command line.
    """
    backend = find_backend(order.arm, order.config.profiler, dry=True)
    return backend.command(order.arm, port=port, traces=traces, window=order.config.window)


def _run(order: Order, writer: RunWriter, found: Findings, analysis: Analysis, say: Say) -> None:
    backend = find_backend(order.arm, order.config.profiler)
    traces = writer.path / "traces"
    if not is_serving(backend):
        if order.attach is not None:
            raise UsageError(
                f"arm {order.arm.name} runs a command to its end, so there is no server to attach to",
                hint="leave --attach out",
            )
        _run_program(order, writer, found, say)
    elif order.attach is not None:
        if order.config.profiler.tool == "nsys":
            raise UsageError(
                "nsys records only servers that it launched, so it cannot attach to one",
                hint="leave --attach out, or use --profiler torch",
            )
        _attach(order, backend, order.attach, writer, found, say)
    else:
        _serve(order, backend, writer, found, say)
    say("reading the traces")
    try:
        found.seen = analysis.look(traces)
        analysis.normalise(traces, writer.path / "events")
    except CaptureError:
        raise
    except MoeprofError as error:
        raise WindowFailedError(
            f"the traces cannot be read: {error.message}", path=error.where, hint=error.hint
        ) from error


def _run_program(order: Order, writer: RunWriter, found: Findings, say: Say) -> None:
    port = choose_port(order.arm.server.host, order.arm.server.port)
    found.command = command_line(order, port, writer.path / "traces")
    say(f"running {found.command.argv[0]}")
    with _started(found.command, order, writer) as process:
        run_to_end(process, order.config.passes.timeout_s)


def _serve(order: Order, backend: ServingBackend, writer: RunWriter, found: Findings, say: Say) -> None:
    server = order.arm.server
    port = choose_port(server.host, server.port)
    traces = writer.path / "traces"
    found.command = backend.command(order.arm, port=port, traces=traces, window=order.config.window)
    address = backend.address(order.arm, port)
    environment = found.command.environment(os.environ)
    sending = _prepare(order, environment)
    found.client = sending.client
    cancelled = threading.Event()
    say(f"starting arm {order.arm.name} on port {port}")
    with _started(found.command, order, writer) as process:
        found.ready_s = process.wait_ready(backend.health(order.arm, address), server.ready_s, progress.Loading(say))
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

            def check() -> None:
                watchdog.check()
                if not process.alive():  # the watchdog looks once a second
                    raise process.died("while it was measured")

            found.server_pids |= {member.pid for member in process.members()}
            target = _Target(address, {**environment, **process.mark}, traces, check, cancelled)
            _drive(order, backend, target, sending, writer, found, say)
            check()
            found.server_pids |= {member.pid for member in process.members()}
        say("stopping the server")


def _attach(
    order: Order, backend: ServingBackend, there: attached.Attached, writer: RunWriter, found: Findings, say: Say
) -> None:
    environment = dict(os.environ)
    sending = _prepare(order, environment)
    found.client = sending.client
    attached.must_answer(backend.health(order.arm, there.address), _ASK_S)
    say(f"attached to {there.address}")
    _drive(order, backend, _Target(there.address, environment, there.traces, _nothing), sending, writer, found, say)
    assert found.window is not None
    attached.take_over(there.traces, found.window.rank_files, writer.path / "traces")


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


def _prepare(order: Order, environment: Mapping[str, str]) -> _Sending:
    client = choose_client(order.config.passes.client, order.arm.server.command, environment)
    vocabulary = find_vocabulary(order.workload, order.arm.server.model) if _needs_vocabulary(order, client) else None
    return _Sending(client, loads(order.workload, vocabulary=vocabulary), _window_load(order, vocabulary))


def _drive(
    order: Order,
    backend: ServingBackend,
    target: _Target,
    sending: _Sending,
    writer: RunWriter,
    found: Findings,
    say: Say,
) -> None:
    """Warm up, measure, probe, profile: everything that needs a server and does not care who started it."""
    passes = order.config.passes
    model = backend.served_name(order.arm)

    def run(name: str, load: Load) -> PassResult:
        try:
            result = run_with(
                sending.client,
                target.address,
                model,
                load,
                writer.path / "bench" / f"{name}.json",
                tokenizer=order.arm.server.model or model,
                env=target.environment,
                timeout_s=passes.timeout_s,
                cancelled=target.cancelled,
            )
        except PassFailedError:
            _settle(target.check)  # a dead or stalled server is the better reason
            raise
        if result.failed:
            _settle(target.check)
        return result

    for number in range(passes.warmup):
        say(f"warm-up {number + 1} of {passes.warmup} ({sending.client.name})")
        run(f"warmup{number}", sending.points[-1])
    for load in sending.points:
        point = evidence.point_name(load)
        say(f"measuring {point}: {passes.timed} pass{'es' if passes.timed != 1 else ''}")
        for number in range(passes.timed):
            began = _clock()
            found.passes.append(run(f"{point}-pass{number}", load))
            found.times.append((began, _clock()))
            say(progress.pass_line(point, number, found.passes[-1]))
            target.check()
    found.probe = probe(target.address, model, sending.points[0], order.arm.server.stall_s + _PROBE_S)
    target.check()
    say("profile window")
    window = order.config.window
    try:
        found.window = profile_window(
            Server(
                target.address,
                model,
                progress=lambda: backend.progress(target.address, _ASK_S),
                start=lambda: backend.start_profile(target.address, window),
                stop=lambda: backend.stop_profile(target.address, window),
                engines=evidence.engines(order.arm),
                ranks=evidence.ranks(order.arm),
                check=target.check,
                collect=backend.collect,
            ),
            sending.window,
            window,
            target.traces,
        )
    except WindowFailedError:
        _settle(target.check)  # as with a pass
        raise


def _settle(check: Callable[[], None]) -> None:
    """Look for a moment whether the server is dead: it is the better reason, and shows a little later than its connections break."""
    deadline = time.monotonic() + _DEATH_S
    while time.monotonic() < deadline:
        check()
        time.sleep(0.05)
    check()


def _needs_vocabulary(order: Order, client: ChosenClient) -> bool:
    """The built-in client and the window's long requests send token ids."""
    return client.name == "builtin" or order.arm.server.backend == "vllm"


def _window_load(order: Order, vocabulary: int | None) -> Load:
    workload, window = order.workload, order.config.window
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


def _gates_failed(failed: list[GateResult]) -> GateFailedError:
    names = ", ".join(gate.name for gate in failed)
    many = "s" if len(failed) > 1 else ""
    error = GateFailedError(
        f"{len(failed)} required gate{many} failed: {names}; {failed[0].message}",
        hint="gates.required in moeprof.toml says which gates a capture must pass",
    )
    if many:
        error.add_note("\n".join(f"{gate.name}: {gate.message}" for gate in failed))
    return error


def _set_aside(order: Order, writer: RunWriter, found: Findings, error: Exception) -> None:
    failure.redact_error(error, redact.secrets(found.command.env if found.command else {}))
    if order.keep_failed:
        failure.set_aside(writer, lambda: evidence.manifest(order, writer.path, found, _now())[0], error)
    else:
        failure.moved(error, writer.path, None)


def _nothing() -> None:
    return None


def _clock() -> float:
    return datetime.now(UTC).timestamp()


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
