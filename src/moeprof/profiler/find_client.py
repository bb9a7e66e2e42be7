"""Which client makes the passes: vLLM's own ones, where they belong to the server's environment, or the built-in one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from moeprof.config.schema import ClientName
from moeprof.errors import ConfigError

Client = Literal["builtin", "vllm", "vllm-rs"]
_MODULE = "vllm.entrypoints.cli.main"


@dataclass(frozen=True, slots=True)
class ChosenClient:
    """Which client makes the passes.

    Attributes:
        name: The client.
        words: Its command up to ``bench serve``; empty for the built-in one.
        because: Why this one, for the manifest.
    """

    name: Client
    words: tuple[str, ...]
    because: str


def find_vllm_bench(command: Sequence[str], env: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the command of the Python client that belongs to a server's environment; None where there is none.

    Args:
        command: The server's command.
        env: The server's environment.
    """
    words = tuple(command[:-1] if command and command[-1] == "serve" else command)
    if not words:
        return None
    program = shutil.which(words[0], path=env.get("PATH"))
    if program is None:
        return None
    if len(words) == 1 and Path(program).name == "vllm":
        return (program, "bench", "serve")
    if len(words) == 3 and words[1] == "-m" and words[2].split(".")[0] == "vllm":
        return (program, "-m", _MODULE, "bench", "serve")
    beside = Path(program).parent / "vllm"
    return (str(beside), "bench", "serve") if _runs(beside) else None


def must_be_there(command: Sequence[str], env: Mapping[str, str]) -> None:
    """Refuse a server's program that cannot be found, before anything else is asked of it.

    Raises:
        ConfigError: It is on no PATH.
    """
    if command and os.sep not in command[0] and shutil.which(command[0], path=env.get("PATH")) is None:
        raise ConfigError(
            f"the command {command[0]} was not found on PATH",
            hint="name the program with its folder in server.command, or activate its environment",
        )


def find_vllm_rs(command: Sequence[str], env: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the command of the Rust client, beside the server's program or on its PATH; None where there is none.

    Args:
        command: The server's command.
        env: The server's environment.
    """
    program = shutil.which(command[0], path=env.get("PATH")) if command else None
    beside = Path(program).parent / "vllm-rs" if program else None
    if beside is not None and _runs(beside):
        return (str(beside), "bench", "serve")
    found = shutil.which("vllm-rs", path=env.get("PATH"))
    return (found, "bench", "serve") if found else None


def choose_client(wanted: ClientName, command: Sequence[str], env: Mapping[str, str]) -> ChosenClient:
    """Choose a client: as wanted, or with ``auto`` the Rust one, else the Python one, else the built-in one.

    Args:
        wanted: From the configuration.
        command: The server's command.
        env: The server's whole environment.

    Raises:
        ConfigError: The wanted client is not there.
    """
    if wanted == "builtin":
        return ChosenClient("builtin", (), "passes.client asks for it")
    rust = find_vllm_rs(command, env) if wanted in ("auto", "vllm-rs") else None
    if rust is not None:
        return ChosenClient("vllm-rs", rust, "passes.client asks for it" if wanted == "vllm-rs" else "vllm-rs is there")
    python = find_vllm_bench(command, env) if wanted in ("auto", "vllm") else None
    if python is not None:
        because = "passes.client asks for it" if wanted == "vllm" else "vllm is there and vllm-rs is not"
        return ChosenClient("vllm", python, because)
    if wanted == "auto":
        return ChosenClient("builtin", (), "neither vllm-rs nor vllm is in the server's environment")
    raise ConfigError(
        f"passes.client asks for {wanted} bench serve, which is not in the server's environment",
        hint='passes.client = "auto" takes what is there',
    )


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
