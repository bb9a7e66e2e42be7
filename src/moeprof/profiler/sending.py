"""What is sent to a server: timed loads, and the long requests of the profile window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moeprof.errors import ConfigError
from moeprof.profiler.find_client import ChosenClient, choose_client
from moeprof.profiler.load import Load, find_vocabulary, loads
from moeprof.profiler.long_requests import window_load
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
    vocabulary = find_vocabulary(workload, order.arm.server.model)
    window = window_load(order.config.window, workload, vocabulary=vocabulary)
    return Sending(client, loads(workload, vocabulary=vocabulary), window)
