"""One block of an arm: launch, wait, warm up, timed passes, probe, profile window, stop, gates, manifest.

The analysis is not imported here. What only it can tell (the kernels that a trace holds) comes in through `Analysis`, so that
capture and analysis meet in the run folder.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from moeprof.errors import (
    CaptureError,
    ConfigError,
    GateFailedError,
    MoeprofError,
    UsageError,
    WindowFailedError,
)
from moeprof.profiler import attached, evidence, failure, progress
from moeprof.profiler.backends.base import CommandLine, ServingBackend, is_serving
from moeprof.profiler.backends.command import run_to_end
from moeprof.profiler.drive import ASK_S, Target, drive
from moeprof.profiler.find_backend import find_backend
from moeprof.profiler.find_client import must_be_there
from moeprof.profiler.gates import GateResult
from moeprof.profiler.order import Analysis, Findings, Order, Say
from moeprof.profiler.ports import choose_port
from moeprof.profiler.process import ServerProcess
from moeprof.profiler.sending import prepare
from moeprof.profiler.signals import termination_as_exception
from moeprof.profiler.watchdog import Watchdog
from moeprof.store import disk, redact
from moeprof.store.folder import Store
from moeprof.store.run import Run
from moeprof.store.writer import RunWriter

_STEP_S = 1.0


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
        writer.hide(_secrets(None))
        try:
            with disk.explained("capture the block", writer.path):
                _run(order, writer, found, analysis, say)
                manifest, failed = evidence.manifest(order, writer.path, found, _now())
                if failed:
                    raise _gates_failed(failed)
                return writer.commit(manifest)
        except KeyboardInterrupt as ended:  # Ctrl-C, TERM, HUP; the server is gone by now
            begun = found.command is not None or found.client is not None
            failure.interrupted(writer, ended, keep=begun and order.keep_failed)
            raise
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
        _serve(order, backend, writer, found, analysis, say)
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


def _serve(
    order: Order, backend: ServingBackend, writer: RunWriter, found: Findings, analysis: Analysis, say: Say
) -> None:
    server = order.arm.server
    port = choose_port(server.host, server.port)
    traces = writer.path / "traces"
    found.command = backend.command(order.arm, port=port, traces=traces, window=order.config.window)
    address = backend.address(order.arm, port)
    environment = found.command.environment(os.environ)
    must_be_there(server.command, environment)
    sending = prepare(order, environment)
    found.client = sending.client
    cancelled = threading.Event()
    say(f"starting arm {order.arm.name} on port {port}")
    with _started(found.command, order, writer) as process:
        found.ready_s = process.wait_ready(backend.health(order.arm, address), server.ready_s, progress.Loading(say))
        say(f"ready after {found.ready_s:.0f} s")
        with (
            evidence.sampling(order, writer.path, found, analysis),
            Watchdog(
                process,
                lambda: backend.progress(address, ASK_S),
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
            target = Target(address, {**environment, **process.mark}, traces, check, cancelled)
            drive(order, backend, target, sending, writer, found, say)
            check()
            found.server_pids |= {member.pid for member in process.members()}
        say("stopping the server")


def _attach(
    order: Order, backend: ServingBackend, there: attached.Attached, writer: RunWriter, found: Findings, say: Say
) -> None:
    environment = dict(os.environ)
    sending = prepare(order, environment)
    found.client = sending.client
    attached.must_answer(backend.health(order.arm, there.address), ASK_S)
    say(f"attached to {there.address}")
    drive(order, backend, Target(there.address, environment, there.traces, _nothing), sending, writer, found, say)
    assert found.window is not None
    attached.take_over(there.traces, found.window.rank_files, writer.path / "traces")


@contextlib.contextmanager
def _started(command: CommandLine, order: Order, writer: RunWriter) -> Iterator[ServerProcess]:
    secrets = _secrets(command)
    writer.hide(secrets)
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
    failure.redact_error(error, _secrets(found.command))
    if order.keep_failed:
        failure.set_aside(writer, lambda: evidence.manifest(order, writer.path, found, _now())[0], error)
    else:
        failure.moved(error, writer.path, None)


def _nothing() -> None:
    return None


def _secrets(command: CommandLine | None) -> tuple[str, ...]:
    """Return the secrets that a server can print: those of the arm, and those that it inherits."""
    return redact.secrets({**os.environ, **(command.env if command else {})})


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
