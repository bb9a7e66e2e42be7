"""What is done with a server that is ready: warm-up, timed passes, a probe, the profile window."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from moeprof.errors import PassFailedError, WindowFailedError
from moeprof.profiler import evidence, progress
from moeprof.profiler.backends.base import ServingBackend
from moeprof.profiler.load import Load
from moeprof.profiler.order import Findings, Order, Say
from moeprof.profiler.passes import run_with
from moeprof.profiler.probe import probe
from moeprof.profiler.results import PassResult
from moeprof.profiler.sending import Sending
from moeprof.profiler.window import Server, profile_window
from moeprof.store.writer import RunWriter

ASK_S = 5.0
_PROBE_S = 30.0  # beyond the limit of a stall, so that the watchdog speaks first and a slow server is waited for
_DEATH_S = 1.0  # a connection breaks before its server is a dead process


@dataclass(frozen=True, slots=True)
class Target:
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


def drive(
    order: Order,
    backend: ServingBackend,
    target: Target,
    sending: Sending,
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
                progress=lambda: backend.progress(target.address, ASK_S),
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


def _clock() -> float:
    return datetime.now(UTC).timestamp()
