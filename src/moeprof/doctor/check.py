"""One check and its result; a check that fails unexpectedly is a warning of its own, never the end of the others."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from moeprof.findings import JsonValue

State = Literal["ok", "warn", "missing"]
LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Result:
    """What a check found.

    Attributes:
        state: ``ok``; ``warn``: there, with a catch; ``missing``.
        what: What was found, in a few words.
        cure: What to do about it; None where nothing needs doing.
    """

    state: State
    what: str
    cure: str | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A named check.

    Attributes:
        name: Stable, in kebab case.
        run: Finds out.
    """

    name: str
    run: Callable[[], Result]


@dataclass(frozen=True, slots=True)
class Named:
    """A check's name with its result."""

    name: str
    result: Result

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the JSON object."""
        return {"name": self.name, "state": self.result.state, "what": self.result.what, "cure": self.result.cure}


def run_all(checks: Sequence[Check]) -> list[Named]:
    """Return the result of every check, in order."""
    return [Named(check.name, _isolated(check)) for check in checks]


def _isolated(check: Check) -> Result:
    try:
        return check.run()
    except Exception as error:  # noqa: BLE001 - one broken check must not hide what the others found
        return Result("warn", f"the check itself failed: {type(error).__name__}: {error}", "please report it")


def answer(*command: str) -> str | None:
    """Return what a program prints on both streams; None when it is absent, fails, or takes too long."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            timeout=LIMIT_S, text=True, errors="replace", check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
