"""From the name in a configuration to the backend."""

from __future__ import annotations

from moeprof.config.schema import BackendName
from moeprof.profiler.backends.base import Backend
from moeprof.profiler.backends.command import CommandBackend
from moeprof.profiler.backends.vllm import VllmBackend


def find_backend(name: BackendName) -> Backend:
    """Return the backend of a name."""
    return VllmBackend() if name == "vllm" else CommandBackend()
