"""vLLM plugin: put ``moeprof.iter#n`` and its phases around the real calls of a worker.

Runs inside server processes, so it uses the standard library only, loads nothing heavy before `register` and never lets the
server fail: what cannot be marked is left alone and said in the log. Off unless ``MOEPROF_MARKERS=1``.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
from typing import Any

__all__ = ["register"]

ENABLE = "MOEPROF_MARKERS"
logger = logging.getLogger("vllm.moeprof")


def register() -> None:
    """Arrange that every worker of this process is marked once its device is set up. vLLM calls this by entry point."""
    if os.environ.get(ENABLE) != "1":
        return
    try:
        module = importlib.import_module("vllm.v1.worker.worker_base")
        _watch(module.WorkerWrapperBase)
    except Exception as error:  # noqa: BLE001 - a server that cannot be marked must still serve
        not_active(f"{type(error).__name__}: {error}")


def not_active(reason: str) -> None:
    """Say in one line of the server's log why nothing is marked."""
    logger.warning("moeprof markers: not active: %s", " ".join(reason.split()))


def _watch(wrapper: type[Any]) -> None:
    """Wrap `init_device` of vLLM's worker wrapper: after it, runner and drafter exist, whatever their classes."""
    original = vars(wrapper).get("init_device")
    if not callable(original):
        not_active(f"{wrapper.__module__}.{wrapper.__qualname__} has no init_device")
        return
    if getattr(original, "_moeprof", False):
        return

    @functools.wraps(original)
    def init_device(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        _mark(self)
        return result

    init_device._moeprof = True  # type: ignore[attr-defined]
    wrapper.init_device = init_device


def _mark(wrapper: Any) -> None:
    try:
        from .hooks import Unsupported, attach, this_process

        try:
            parts = attach(wrapper.worker, this_process())
        except Unsupported as reason:
            not_active(str(reason))
        else:
            logger.info("moeprof markers: active (%s)", ", ".join(parts))
    except Exception as error:  # noqa: BLE001 - as above
        not_active(f"{type(error).__name__}: {error}")
