"""The command line of an arm that is any program."""

from __future__ import annotations

from pathlib import Path

import pytest

from moeprof.config.schema import Server, Window
from moeprof.errors import ConfigError
from moeprof.profiler.backends.base import CommandLine
from moeprof.profiler.backends.command import CommandBackend
from moeprof.profiler.find_backend import find_backend
from tests.unit.profiler.backends.arms import arm


def test_places_are_filled_in_and_other_braces_left() -> None:
    # GIVEN placeholders in words and environment, and JSON among them
    subject = arm(
        *("--port={port}", '{"a":{}}'),
        env={"OUT": "{traces}/x"},
        server=Server(backend="command", command=("torchrun", "k.py", "{traces}")),
    )
    # WHEN the command line is composed THEN only ours are filled in
    line = find_backend(subject).command(subject, port=9, traces=Path("/t"), window=Window())
    assert line == CommandLine(
        ("torchrun", "k.py", "/t", "--port=9", '{"a":{}}'), {"PYTHONUNBUFFERED": "1", "OUT": "/t/x"}, None
    )
    # AND it is added to what the program inherits
    assert line.environment({"OUT": "no", "HOME": "/h"}) == {"PYTHONUNBUFFERED": "1", "OUT": "/t/x", "HOME": "/h"}


@pytest.mark.parametrize(
    ("command", "message"),
    [((), "arm mega has no command"), (("x",), "the command of arm mega is not told where its traces go")],
)
def test_a_command_that_cannot_leave_traces_is_refused(command: tuple[str, ...], message: str) -> None:
    # GIVEN such a command WHEN it is composed THEN that is an error
    with pytest.raises(ConfigError, match=f"^{message}$"):
        CommandBackend().command(arm(server=Server(command=command)), port=9, traces=Path("/t"), window=Window())
