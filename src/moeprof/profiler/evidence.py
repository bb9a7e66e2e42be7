"""From what a block found to its manifest: facts, fingerprint, gates."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from moeprof.config.flags import grouped
from moeprof.config.schema import Arm
from moeprof.findings import JsonValue
from moeprof.profiler import gpu_samples
from moeprof.profiler.backends.flags import parse
from moeprof.profiler.gates import Evidence, GateResult, judge, outcome
from moeprof.profiler.load import Load
from moeprof.profiler.log_facts import LogFacts, log_facts, matches
from moeprof.store import facts
from moeprof.store.fingerprint import common_flags, fingerprint
from moeprof.store.manifest import Manifest

if TYPE_CHECKING:
    from moeprof.profiler.order import Analysis, Findings, Order


def engines(arm: Arm) -> int:
    """Return how many engines count steps: the data parallel size."""
    return _number(arm, "--data-parallel-size", "-dp")


def ranks(arm: Arm) -> int:
    """Return how many ranks write a trace."""
    return (
        engines(arm) * _number(arm, "--tensor-parallel-size", "-tp") * _number(arm, "--pipeline-parallel-size", "-pp")
    )


def point_name(load: Load) -> str:
    """Return the name of a measuring point: ``c128`` for a concurrency, ``r2.5`` for a rate."""
    return f"c{load.concurrency}" if load.rate is None else f"r{load.rate:g}"


@contextlib.contextmanager
def sampling(order: Order, folder: Path, found: Findings, analysis: Analysis) -> Iterator[None]:
    """Sample the GPUs while the block runs; afterwards `found` holds the summary and the folder the samples."""
    if not order.config.sampler.enabled:
        yield
        return
    sampler = gpu_samples.Sampler(order.config.sampler.period_s)
    try:
        with sampler:
            yield
    finally:
        if sampler.samples:
            gpu_samples.write(sampler.samples, folder, analysis.table)
        found.samples = gpu_samples.summary(sampler.samples, found.times, found.server_pids, reason=sampler.reason)


def arm_fingerprint(order: Order) -> str:
    """Return the digest over what two blocks must share to be compared fairly, as it would be now."""
    config = order.config
    return fingerprint(
        versions=_versions(_python(order)),
        model=facts.model(order.arm.server.model),
        hardware=_hardware(),
        flags=common_flags([arm.flags for arm in config.arms.values()]),
        workload=_workload(order),
        passes={"timed": config.passes.timed, "warmup": config.passes.warmup, "client": config.passes.client},
    )


def own_settings(order: Order) -> tuple[str, ...]:
    """Return the flags and variables that not all arms of the configuration share: what makes one of them an arm.

    Each as ``flags.NAME`` or ``env.NAME``, sorted.
    """
    arms = list(order.config.arms.values())
    words = [{flag.key: flag.values for flag in grouped(arm.flags) if flag.name} for arm in arms]
    variables = [dict(arm.env) for arm in arms]
    return tuple(sorted((*_unshared("flags", words), *_unshared("env", variables))))


def _unshared(prefix: str, settings: Sequence[Mapping[str, object]]) -> set[str]:
    names = {name for one in settings for name in one}
    return {f"{prefix}.{name}" for name in names if len({str(one.get(name)) for one in settings}) > 1}


def manifest(order: Order, folder: Path, found: Findings, ended: str) -> tuple[Manifest, list[GateResult]]:
    """Return the manifest of a block as far as it got, and the required gates that failed."""
    log, matched = _log(folder / "server.log", order.arm)
    seen = found.seen
    program = order.arm.server.backend == "command"
    results = judge(
        Evidence(
            workload=order.workload,
            expect=order.arm.expect,
            passes=found.passes,
            pass_times=found.times,
            window=found.window,
            log=log,
            log_matches=matched,
            iterations=seen.iterations if seen else None,
            ranks=None if program else ranks(order.arm),
            program=program,
            markers=order.arm.markers,
            marker_family=seen.family if seen else None,
            kernels=seen.kernels if seen else None,
            other_kernels=order.other_kernels,
            logprobs=found.probe.logprobs or None if found.probe else None,
            probe_seen=found.probe.seen if found.probe else None,
            most_iterations=_most_iterations(order),
            one_recording=order.config.profiler.tool == "nsys",
            samples=found.samples,
        ),
        order.config.gates,
    )
    built = Manifest(
        arm=order.arm.name,
        block=order.block,
        started=found.started,
        ended=ended,
        plan=order.plan,
        workload=_workload(order),
        argv=found.command.argv if found.command else (),
        env=dict(found.command.env) if found.command else {},
        versions=_versions(_python(order)),
        model=facts.model(order.arm.server.model),
        git=facts.git(Path.cwd()),
        hardware=_hardware(),
        fingerprint=arm_fingerprint(order),
        passes=tuple(
            _plain({**asdict(result), "at": list(at)}) for result, at in zip(found.passes, found.times, strict=False)
        ),
        window=_plain(asdict(found.window)) if found.window else {},
        log_facts=log.to_dict() if log else {},
        gates=tuple(result.to_dict() for result in results),
        extra={
            "ready_s": None if found.ready_s is None else round(found.ready_s, 1),
            "client": None if found.client is None else {"name": found.client.name, "because": found.client.because},
            "per_iteration": dict(seen.kernels) if seen else None,
            "gpu_samples": found.samples.to_dict() if found.samples else None,
            "probe": None if found.probe is None else found.probe.to_dict(),
            "attached": order.attach is not None,
            "own": list(own_settings(order)),
            "profiler": _plain(asdict(order.config.profiler)),
            "notes": list(found.notes),
        },
    )
    return built, outcome(results)


def _workload(order: Order) -> dict[str, JsonValue]:
    return {} if order.workload is None else _plain(asdict(order.workload))


def _most_iterations(order: Order) -> int | None:
    """Return after how many iterations the recorder stops by itself, where it does."""
    by_itself = order.arm.server.backend == "vllm" and order.config.profiler.tool == "torch"
    return order.config.window.iterations if by_itself else None


@functools.cache
def _versions(python: str | None) -> dict[str, JsonValue]:
    """Return the versions; they are asked for again and again, by programs that take their time."""
    return facts.versions(python)


@functools.cache
def _hardware() -> dict[str, JsonValue]:
    return facts.hardware()


def _log(path: Path, arm: Arm) -> tuple[LogFacts | None, dict[str, bool] | None]:
    """Return what the server's log says, and which of the arm's patterns it holds; None where there is no log."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None, None
    return log_facts(text), matches(text, arm.expect.log)


def _python(order: Order) -> str | None:
    """Return the interpreter that the server runs on, where the command names one."""
    first = order.arm.server.command[0] if order.arm.server.command else ""
    path = Path(first)
    if path.name.startswith("python"):
        return first
    beside = path.parent / "python"
    return str(beside) if path.parent != Path() and beside.exists() else None


def _number(arm: Arm, *names: str) -> int:
    for flag in parse(arm.flags):
        if flag.name in names and flag.values and flag.values[-1].isdigit():
            return int(flag.values[-1])
    return 1


def _plain(value: object) -> dict[str, JsonValue]:
    def plain(item: object) -> JsonValue:
        if isinstance(item, dict):
            return {str(key): plain(inner) for key, inner in item.items()}
        if isinstance(item, list | tuple):
            return [plain(inner) for inner in item]
        return item if isinstance(item, str | int | float | bool) or item is None else str(item)

    made = plain(value)
    assert isinstance(made, dict)
    return made
