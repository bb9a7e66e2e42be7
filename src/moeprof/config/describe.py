"""What an arm comes to, as text for the dry run; the exact command line is the backend's to print."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from moeprof.config.flags import grouped
from moeprof.config.load import find_arm
from moeprof.config.schema import Arm, Config, Expect, Workload

_HIDDEN = "<redacted>"
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTH|COOKIE", re.IGNORECASE)
_SECRET_TEXT = re.compile(r"\b(?:hf_|sk-|ghp_)\w{4,}[\w-]*|\bBearer\s+\S+|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)")
#: Flags whose names look like secrets and are counts.
_COUNTS = re.compile(r"tokens?(-|$)", re.IGNORECASE)


def describe(config: Config, arm: str) -> str:
    """Return the resolved arm with its workloads and limits; secrets are hidden.

    Args:
        config: A loaded configuration.
        arm: Name of the arm.

    Raises:
        ConfigError: There is no such arm.
    """
    return "".join(f"{line}\n" for line in _lines(config, find_arm(config, arm)))


def _lines(config: Config, arm: Arm) -> Iterator[str]:
    server = arm.server
    markers = f", markers {'on' if arm.markers else 'off'}" if server.backend == "vllm" else ""
    yield f"arm {arm.name} of {config.source}"
    yield f"  backend      {server.backend}{markers}"
    yield f"  command      {_joined(server.command)}"
    if server.model is not None:
        yield f"  model        {_safe(server.model)}{f', served as {server.served_name}' if server.served_name else ''}"
    if server.backend == "vllm":
        yield f"  address      {server.host}:{server.port or 'a free port'}{server.health}"
    yield f"  limits       ready {server.ready_s:g} s, stop {server.stop_s:g} s, stall {server.stall_s:g} s"
    yield from _block("flags", [_flag(flag.name, flag.words) for flag in grouped(arm.flags)])
    yield from _block("environment", [f"{name}={_variable(name, value)}" for name, value in sorted(arm.env.items())])
    yield from _block("must prove", list(_expected(arm.expect)))
    yield from _block("workloads", [_workload(workload) for workload in config.workloads.values()])
    if server.backend == "vllm":
        passes, window = config.passes, config.window
        yield f"  passes       {passes.warmup} warm-up, {passes.timed} timed, client {passes.client}, {passes.timeout_s:g} s each"
        yield f"  window       {window.iterations} iterations or {window.seconds:g} s"
    yield f"  gates        {', '.join(config.gates.required) or 'none required'}"
    yield f"  store        {config.store}"


def _block(heading: str, lines: list[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"  {heading if number == 0 else '':12} {line}"


def _flag(name: str, words: tuple[str, ...]) -> str:
    if not _SECRET_NAME.search(name) or _COUNTS.search(name):
        return _joined(words)
    return shlex.join([words[0].partition("=")[0]]) + (f" {_HIDDEN}" if len(words) > 1 or "=" in words[0] else "")


def _variable(name: str, value: str) -> str:
    return _HIDDEN if _SECRET_NAME.search(name) else shlex.quote(_safe(value))


def _joined(words: tuple[str, ...]) -> str:
    return shlex.join(_safe(word) for word in words)


def _safe(text: str) -> str:
    return _SECRET_TEXT.sub(_HIDDEN, text)


def _expected(expect: Expect) -> Iterator[str]:
    for name in ("moe_backend", "all2all", "model_runner"):
        value = getattr(expect, name)
        if value is not None:
            yield f"{name} {value}"
    for pattern in expect.log:
        yield f"log {pattern}"
    for name, count in expect.kernels.items():
        yield f"{count} x {name} an iteration"


def _workload(workload: Workload) -> str:
    if workload.kind == "decode":
        load = (
            f"concurrency {' '.join(map(str, workload.concurrency))}, {workload.prompts_per_concurrency} prompts each"
        )
    else:
        load = f"rate {' '.join(f'{rate:g}' for rate in workload.rate)} a second, {workload.num_prompts} prompts"
    return f"{workload.name}: {workload.kind}, {workload.input_len} + {workload.output_len} tokens, {load}, seed {workload.seed}"
