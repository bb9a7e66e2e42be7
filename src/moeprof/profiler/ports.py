"""Loopback ports: a free one, or an error that names who holds the wanted one."""

from __future__ import annotations

import ipaddress
import socket
from pathlib import Path

from moeprof.errors import ConfigError

_LISTEN = "0A"  # TCP_LISTEN in /proc/net/tcp


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine's own loopback.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def choose_port(host: str, port: int) -> int:
    """Return the port to bind: the wanted one if it is free, a free one for 0.

    Args:
        host: Loopback address.
        port: Wanted port, or 0.

    Raises:
        ConfigError: The host cannot be bound, or somebody holds the port.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise ConfigError(f"the server's host {host} is no address of this machine: {error.strerror}") from error
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: a closed connection holds nothing
        try:
            probe.bind(address)
        except OSError as error:
            raise _refused(host, port, error) from error
        return int(probe.getsockname()[1])


def holder(port: int) -> str | None:
    """Return who listens on a port, as ``NAME (pid N)``; None where ``/proc`` does not tell."""
    wanted = {f"socket:[{inode}]" for inode in _inodes(port)}
    if not wanted:
        return None
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if any(str(item.readlink()) in wanted for item in (folder / "fd").iterdir()):
                return f"{(folder / 'comm').read_text().strip()} (pid {folder.name})"
        except OSError:  # gone, or another user's
            continue
    return None


def _refused(host: str, port: int, error: OSError) -> ConfigError:
    who = holder(port)
    if who is not None:
        return ConfigError(
            f"port {port} on {host} is held by {who}", hint="end that process, or set server.port = 0 for a free port"
        )
    reason = (error.strerror or str(error)).lower()
    return ConfigError(f"port {port} on {host} cannot be bound: {reason}", hint="set server.port = 0 for a free port")


def _inodes(port: int) -> set[str]:
    found = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(fields[9])
    return found
