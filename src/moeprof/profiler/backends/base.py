"""What a backend must do, and the command line that it composes: data, which a dry run prints and a test compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol, TypeGuard

from moeprof.config.schema import Arm, Window
from moeprof.profiler.metrics import Progress


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A program to start.

    Attributes:
        argv: Its words.
        env: What is added to the environment that moeprof itself has.
        cwd: Its working directory; None: moeprof's.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None

    def environment(self, ours: Mapping[str, str]) -> dict[str, str]:
        """Return the whole environment, given our own."""
        return {**ours, **self.env}


class Backend(Protocol):
    """A kind of program that can be launched."""

    serves: ClassVar[bool]  # whether it is a server, to be driven over HTTP, or runs to its end by itself

    def command(
        self, arm: Arm, *, port: int, traces: Path, window: Window, inherited: Mapping[str, str] | None = None
    ) -> CommandLine:
        """Compose the command line of an arm.

        Args:
            arm: What to launch.
            port: Port to bind; never 0.
            traces: Absolute folder for traces.
            window: The profile window.
            inherited: Environment that the program inherits; None: moeprof's own.

        Raises:
            ConfigError: The arm says something that moeprof must say itself, or does not fit the backend.
        """
        ...


class ServingBackend(Backend, Protocol):
    """A backend whose program is a server."""

    def address(self, arm: Arm, port: int) -> str:
        """Return the server's base address."""
        ...

    def health(self, arm: Arm, address: str) -> str:
        """Return the address that answers 200 when the server is ready."""
        ...

    def served_name(self, arm: Arm) -> str:
        """Return the model's name in requests."""
        ...

    def progress(self, address: str, limit_s: float) -> Progress | None:
        """Return the server's progress; None if it does not answer."""
        ...

    def start_profile(self, address: str, window: Window) -> None:
        """Open the profile window."""
        ...

    def stop_profile(self, address: str, window: Window) -> None:
        """Close the profile window."""
        ...

    def collect(self) -> tuple[Path, ...] | None:
        """Return the files of a profiler that is not the server's own; None: the server's are to be waited for."""
        ...


def is_serving(backend: Backend) -> TypeGuard[ServingBackend]:
    """Return whether a backend's program is a server."""
    return backend.serves
