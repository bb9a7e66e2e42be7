"""Arms for tests of backends."""

from __future__ import annotations

from collections.abc import Mapping

from moeprof.config.schema import Arm, Expect, Server

SERVER = Server(model="m")


def arm(*flags: str, env: Mapping[str, str] | None = None, markers: bool = False, server: Server = SERVER) -> Arm:
    """Return an arm with these flags."""
    return Arm("mega", flags, env or {}, server, Expect(), markers)
