"""The markers inside vLLM: the entry point for environments where moeprof is installed, and the folder for all others."""

from __future__ import annotations

from pathlib import Path

#: Name of the plugin: an arm that sets VLLM_PLUGINS must list it.
NAME = "moeprof_markers"


def server_site() -> Path:
    """Return the folder to put on a server's PYTHONPATH: only the plugin lies there, no part of moeprof."""
    return Path(__file__).parent / "server_site"


def register() -> None:
    """Mark the workers of this process, if ``MOEPROF_MARKERS=1``. vLLM calls this by entry point."""
    from moeprof.profiler.server_site.moeprof_markers import register as mark

    mark()
