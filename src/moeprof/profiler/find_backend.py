"""From what a configuration names to the backend."""

from __future__ import annotations

import secrets

from moeprof.config.schema import Arm, Profiler
from moeprof.errors import ConfigError
from moeprof.profiler.backends.base import Backend, is_serving
from moeprof.profiler.backends.command import CommandBackend
from moeprof.profiler.backends.vllm import VllmBackend
from moeprof.profiler.nsys.backend import NsysBackend
from moeprof.profiler.nsys.program import Nsys, find_nsys

_TORCH = Profiler()
_UNSEEN = Nsys("nsys", (), None, finds_importer=False)


def find_backend(arm: Arm, profiler: Profiler = _TORCH, *, dry: bool = False) -> Backend:
    """Return what launches an arm and records its profile window.

    Args:
        arm: The arm.
        profiler: Who records.
        dry: Only the command line is wanted, so that nsys need not be here.

    Raises:
        ConfigError: nsys is wanted and cannot be had, or the arm's program cannot be recorded by it.
    """
    inner = VllmBackend(profiler.tool) if arm.server.backend == "vllm" else CommandBackend()
    if profiler.tool == "torch":
        return inner
    if not is_serving(inner):
        raise ConfigError(
            f"arm {arm.name} runs a command to its end, which profiler nsys does not record",
            hint='put nsys before its words, or leave profiler.tool = "torch"',
        )
    try:
        nsys = find_nsys(profiler.nsys)
    except ConfigError:
        if not dry:
            raise
        nsys = _UNSEEN
    return NsysBackend(inner, profiler, nsys, "moeprof" if dry else f"moeprof{secrets.token_hex(4)}")
