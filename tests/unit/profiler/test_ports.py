"""Free ports, taken ports, and who takes them."""

from __future__ import annotations

import os
import socket

import pytest

from moeprof.errors import ConfigError
from moeprof.profiler.ports import choose_port, holder, is_loopback


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("host", False),
    ],
)
def test_is_loopback(host: str, expected: bool) -> None:
    # GIVEN a host THEN only this machine's own addresses are loopback
    assert is_loopback(host) is expected


def test_port_zero_gives_a_port_that_can_be_bound() -> None:
    # WHEN a free port is asked for
    port = choose_port("127.0.0.1", 0)
    # THEN it can be bound, and asking for it by number gives it back
    assert choose_port("127.0.0.1", port) == port
    with socket.create_server(("127.0.0.1", port)) as server:
        assert server.getsockname()[1] == port


@pytest.mark.parametrize("address", ["127.0.0.1", ""])
def test_a_taken_port_is_an_error_that_names_the_holder(address: str) -> None:
    # GIVEN a port that we hold, on loopback or on all addresses
    with socket.create_server((address, 0)) as server:
        port = server.getsockname()[1]
        # WHEN it is asked for
        with pytest.raises(ConfigError) as caught:
            choose_port("127.0.0.1", port)
        # THEN we are named, and the way out
        assert caught.value.message.startswith(f"port {port} on 127.0.0.1 is held by ")
        assert caught.value.message.endswith(f"(pid {os.getpid()})")
        assert caught.value.hint == "end that process, or set server.port = 0 for a free port"
    # AND once it is free, nobody holds it
    assert holder(port) is None


def test_a_port_of_a_closed_connection_is_free() -> None:
    # GIVEN a server that closed first, so that its port lingers
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
        accepted.close()
        client.close()
    # WHEN the port is asked for THEN it is given
    assert choose_port("127.0.0.1", port) == port


def test_a_host_that_is_not_ours_is_an_error() -> None:
    # GIVEN an address of a documentation network WHEN a port is asked for THEN the host is named
    with pytest.raises(ConfigError, match=r"port 0 on 192\.0\.2\.1 cannot be bound"):
        choose_port("192.0.2.1", 0)
