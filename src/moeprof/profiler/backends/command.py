"""Any program that runs to its end and leaves traces: a ``torchrun`` of a kernel, another server's own benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from moeprof.config.schema import Arm, Window
from moeprof.errors import ConfigError
from moeprof.profiler.backends.base import CommandLine
from moeprof.profiler.process import ServerProcess


class CommandBackend:
    """Run the arm's command; ``{traces}`` and ``{port}`` in its words and environment are filled in."""

    serves: ClassVar[bool] = False

    def command(
        self, arm: Arm, *, port: int, traces: Path, window: Window, inherited: Mapping[str, str] | None = None
    ) -> CommandLine:
        """Compose the command line of an arm: the server's command, then the arm's flags.

        Args:
            arm: What to launch.
            port: What ``{port}`` stands for.
            traces: What ``{traces}`` stands for.
            window: Not used: the program decides what it records.
            inherited: Not used.

        Raises:
            ConfigError: No command, or one that has no place for traces.
        """
        words = (*arm.server.command, *arm.flags)
        if not arm.server.command:
            raise ConfigError(f"arm {arm.name} has no command", hint="set server.command to the program and its words")
        if not any("{traces}" in text for text in (*words, *arm.env.values())):
            raise ConfigError(
                f"the command of arm {arm.name} is not told where its traces go",
                hint="put {traces} where the program takes its folder, in its words or in its environment",
            )

        def fill(text: str) -> str:
            # Only these two: other braces are the program's own, such as JSON.
            return text.replace("{traces}", str(traces)).replace("{port}", str(port))

        env = {"PYTHONUNBUFFERED": "1"} | {name: fill(value) for name, value in arm.env.items()}
        return CommandLine(tuple(fill(word) for word in words), env)


def run_to_end(process: ServerProcess, limit_s: float) -> None:
    """Wait for a command's end.

    Raises:
        ServerDiedError: Its exit code was not 0.
        CaptureError: It did not end in time.
    """
    if process.wait(limit_s) != 0:
        raise process.died("instead of finishing")
