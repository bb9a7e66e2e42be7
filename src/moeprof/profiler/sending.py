"""What is sent to a server: timed loads, and the long requests of the profile window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moeprof.config.schema import Window, Workload
from moeprof.errors import ConfigError
from moeprof.profiler.find_client import ChosenClient, choose_client
from moeprof.profiler.load import Load, find_vocabulary, loads
from moeprof.profiler.order import Order


@dataclass(frozen=True, slots=True)
class Sending:
    """What is sent, decided before a server is started, so that a wrong configuration costs no start."""

    client: ChosenClient
    points: list[Load]
    window: Load


def prepare(order: Order, environment: Mapping[str, str]) -> Sending:
    """Return what is sent to a server, and by whom.

    Args:
        order: Of an arm that serves.
        environment: The server's, in which its load client is looked for.

    Raises:
        ConfigError: There is no workload, no such client, or no vocabulary to draw token ids from.
    """
    workload = order.workload
    if workload is None:
        raise ConfigError(f"arm {order.arm.name} serves, and there is no workload to send", path=order.config.source)
    client = choose_client(order.config.passes.client, order.arm.server.command, environment)
    vocabulary = find_vocabulary(workload, order.arm.server.model) if _needs_vocabulary(order, client) else None
    return Sending(
        client, loads(workload, vocabulary=vocabulary), _window_load(workload, order.config.window, vocabulary)
    )


def _needs_vocabulary(order: Order, client: ChosenClient) -> bool:
    """The built-in client and the window's long requests send token ids."""
    return client.name == "builtin" or order.arm.server.backend == "vllm"


def _window_load(workload: Workload, window: Window, vocabulary: int | None) -> Load:
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
