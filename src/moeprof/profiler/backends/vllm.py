"""A vLLM server: its command line from an arm, and the routes that moeprof uses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

from moeprof.config.schema import Arm, Window
from moeprof.errors import ConfigError, WindowFailedError
from moeprof.profiler.backends.base import CommandLine
from moeprof.profiler.backends.flags import Flag, parse, without
from moeprof.profiler.backends.plugin import plugin_environment
from moeprof.profiler.fetch import Answer, fetch
from moeprof.profiler.metrics import Progress, progress
from moeprof.profiler.ports import is_loopback

_PROFILER = "--profiler-config"
_ITERATIONS = "--enable-logging-iteration-details"
_REFUSED = {
    "--uds": "moeprof reaches the server over a loopback port",
    "--ssl-keyfile": "moeprof reaches the server over plain HTTP on loopback",
    "--ssl-certfile": "moeprof reaches the server over plain HTTP on loopback",
    "--api-key": "a loopback server needs no key, and requests send none",
    "--headless": "a server without its HTTP front end cannot be measured",
    "--no-enable-logging-iteration-details": "the iterations in the log prove those in the trace",
}


class VllmBackend:
    """Launch and drive ``vllm serve``.

    Args:
        recorder: Who records the window: the server's torch profiler, or nsys, for which the server only marks it.
    """

    serves: ClassVar[bool] = True

    def __init__(self, recorder: Literal["torch", "nsys"] = "torch") -> None:
        self._recorder = recorder

    def command(
        self, arm: Arm, *, port: int, traces: Path, window: Window, inherited: Mapping[str, str] | None = None
    ) -> CommandLine:
        """Compose ``vllm serve MODEL``: where it listens, the arm's flags in their order, how it profiles.

        Args:
            arm: What to launch.
            port: Port to bind.
            traces: Folder for traces.
            window: Its iterations bound the profile.
            inherited: Environment that the server inherits; None: ours.

        Raises:
            ConfigError: No model, a host that is not loopback, or a flag that is moeprof's to give.
        """
        server = arm.server
        if not server.command:
            raise ConfigError(f"arm {arm.name} has no server command", hint='server.command = ["vllm"]')
        if server.model is None:
            raise ConfigError(f"arm {arm.name} has no model", hint="set server.model to a folder or a name")
        if not is_loopback(server.host):
            raise ConfigError(
                f"arm {arm.name} binds host {server.host}, and a server under profile must stay on loopback",
                hint='server.host = "127.0.0.1"',
            )
        flags = parse(arm.flags)
        _refuse(arm, flags, port)
        given = {flag.name for flag in flags}
        words = [*server.command, *(() if server.command[-1] == "serve" else ("serve",)), server.model]
        for name, value in (
            ("--host", server.host),
            ("--port", str(port)),
            ("--served-model-name", self.served_name(arm)),
        ):
            words += () if name in given else (name, value)
        words += without(arm.flags, _PROFILER)
        words += () if _ITERATIONS in given else (_ITERATIONS,)
        words += (_PROFILER, json.dumps(self._profiler(arm, flags, traces, window), separators=(",", ":")))
        env = {"PYTHONUNBUFFERED": "1", **arm.env, **plugin_environment(arm, inherited)}
        return CommandLine(tuple(words), env)

    def address(self, arm: Arm, port: int) -> str:
        """Return the server's base address."""
        host = arm.server.host
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def health(self, arm: Arm, address: str) -> str:
        """Return the address that answers 200 when the server is ready."""
        return address.rstrip("/") + "/" + arm.server.health.lstrip("/")

    def served_name(self, arm: Arm) -> str:
        """Return the model's name in requests: the configured one, the flag's first, or the model."""
        named = [name for flag in parse(arm.flags) if flag.name == "--served-model-name" for name in flag.values]
        wanted = arm.server.served_name
        if wanted is not None and named and wanted not in named:
            raise ConfigError(
                f"arm {arm.name} names its model {wanted} and, in --served-model-name, {named[0]}",
                hint="name it once, in server.served_name",
            )
        return wanted or (named[0] if named else None) or arm.server.model or ""

    def metrics(self, address: str, limit_s: float) -> str | None:
        """Return the Prometheus text; None if the server does not answer."""
        answer = fetch(f"{address}/metrics", limit_s)
        return answer.body if answer.ok else None

    def progress(self, address: str, limit_s: float) -> Progress | None:
        """Return the server's progress; None if it does not answer."""
        text = self.metrics(address, limit_s)
        return None if text is None else progress(text)

    def start_profile(self, address: str, window: Window) -> None:
        """Open the profile window.

        Raises:
            WindowFailedError: The server refused, or did not answer within ``start_s``.
        """
        _demand(fetch(f"{address}/start_profile", window.start_s, post=b""), "/start_profile", "window.start_s")

    def stop_profile(self, address: str, window: Window) -> None:
        """Close the profile window; returns when the traces are said to be written.

        Raises:
            WindowFailedError: The server refused, or did not answer within ``stop_s``.
        """
        _demand(fetch(f"{address}/stop_profile", window.stop_s, post=b""), "/stop_profile", "window.stop_s")

    def collect(self) -> None:
        """Return None: the server writes its traces itself."""

    def _profiler(self, arm: Arm, flags: list[Flag], traces: Path, window: Window) -> dict[str, object]:
        """Return the profiler's configuration. Under nsys it is the one that only marks steps, as NVTX ranges."""
        return {"profiler": "cuda"} if self._recorder == "nsys" else _profiler(arm, flags, traces, window)


def _refuse(arm: Arm, flags: list[Flag], port: int) -> None:
    ours = {"--host": ("server.host", arm.server.host), "--port": ("server.port", str(port))}
    for flag in flags:
        if flag.name in _REFUSED:
            raise ConfigError(f"arm {arm.name} gives {flag.word}, but {_REFUSED[flag.name]}", hint="leave the flag out")
        if flag.name == "--model":
            raise ConfigError(f"arm {arm.name} gives {flag.word} as a flag", hint="set server.model instead")
        if flag.name == _PROFILER and flag.key:
            raise ConfigError(
                f"arm {arm.name} gives {flag.word}, which would replace what moeprof says in {_PROFILER}",
                hint=f"give further keys as JSON: {_PROFILER} '{{\"torch_profiler_record_shapes\":true}}'",
            )
        if flag.name in ours and flag.values != (ours[flag.name][1],):
            key, value = ours[flag.name]
            raise ConfigError(
                f"arm {arm.name} gives {flag.word} {' '.join(flag.values)}, but {key} makes it {value}",
                hint=f"set {key} and leave the flag out",
            )


def _profiler(arm: Arm, flags: list[Flag], traces: Path, window: Window) -> dict[str, object]:
    """Return the profiler's configuration; the arm may add keys, and record stacks, but not move the traces."""
    fixed: dict[str, object] = {
        "profiler": "torch",
        "torch_profiler_dir": str(traces.absolute()),
        "ignore_frontend": True,
        "max_iterations": window.iterations,
    }
    result: dict[str, object] = {**fixed, "torch_profiler_with_stack": False}
    for flag in flags:
        if flag.name != _PROFILER:
            continue
        added = _object(arm, flag)
        for key, value in added.items():
            if key in fixed and fixed[key] != value:
                raise ConfigError(
                    f"arm {arm.name} sets {key} in {_PROFILER}, which is moeprof's to set",
                    hint="leave the key out; the iterations of the window are window.iterations",
                )
        result |= added
    return result


def _object(arm: Arm, flag: Flag) -> dict[str, object]:
    try:
        value = json.loads(" ".join(flag.values))
    except ValueError as error:
        raise ConfigError(f"arm {arm.name} gives {_PROFILER} a value that is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise ConfigError(f"arm {arm.name} gives {_PROFILER} a value that is no JSON object")
    return value


def _demand(answer: Answer, route: str, limit: str) -> None:
    if answer.ok:
        return
    if answer.status == 404:
        raise WindowFailedError(
            f"the server has no route {route}", hint="vLLM has it only when started with --profiler-config"
        )
    said = " ".join(answer.body.split())[:200]
    raise WindowFailedError(
        f"the server {answer.seen} to {route}" + (f": {said}" if said else ""),
        hint=f"{limit} is the limit; a shorter window is written faster" if answer.late else "look at the server's log",
    )
