"""A serving backend whose profile window is recorded by nsys instead of the server's own profiler."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from moeprof.config.schema import Arm, Profiler, Window
from moeprof.errors import WindowFailedError
from moeprof.profiler.backends.base import CommandLine, ServingBackend
from moeprof.profiler.metrics import Progress
from moeprof.profiler.nsys.contents import contents
from moeprof.profiler.nsys.program import Nsys
from moeprof.profiler.nsys.scrub import scrub
from moeprof.profiler.nsys.session import Session, has_room
from moeprof.store import redact

NAME = "nsys"
_ROOM = 2 * 10**9  # a recording, its report and its export lie side by side
_SHUT_S = 20.0
_SPAWN = "VLLM_WORKER_MULTIPROC_METHOD"


class NsysBackend:
    """Launch a server under nsys and record its profile window.

    Args:
        inner: Launches and drives the server.
        profiler: What the configuration says.
        nsys: The program.
        session: Name of the session; none of this name may be open.
    """

    serves: ClassVar[bool] = True

    def __init__(self, inner: ServingBackend, profiler: Profiler, nsys: Nsys, session: str) -> None:
        self._inner = inner
        self._profiler = profiler
        self._nsys = nsys
        self._name = session
        self._session: Session | None = None
        self._output: Path | None = None
        self._secrets: Collection[str] = ()

    def command(
        self, arm: Arm, *, port: int, traces: Path, window: Window, inherited: Mapping[str, str] | None = None
    ) -> CommandLine:
        """Compose the server's command line behind ``nsys launch``.

        Raises:
            ConfigError: The arm does not fit the backend.
        """
        inner = self._inner.command(arm, port=port, traces=traces, window=window, inherited=inherited)
        # A forked worker does not carry nsys' injection along.
        env = {_SPAWN: "spawn", **inner.env}
        self._session = Session(self._nsys, self._name, self._profiler.cuda_graphs, {**os.environ, **env})
        self._output = traces / f"{NAME}_{self._profiler.cuda_graphs}"
        self._secrets = redact.secrets({**os.environ, **env})
        return replace(inner, argv=(*self._session.prefix(), *inner.argv), env=env)

    def address(self, arm: Arm, port: int) -> str:
        """Return the server's base address."""
        return self._inner.address(arm, port)

    def health(self, arm: Arm, address: str) -> str:
        """Return the address that answers 200 when the server is ready."""
        return self._inner.health(arm, address)

    def served_name(self, arm: Arm) -> str:
        """Return the model's name in requests."""
        return self._inner.served_name(arm)

    def progress(self, address: str, limit_s: float) -> Progress | None:
        """Return the server's progress; None if it does not answer."""
        return self._inner.progress(address, limit_s)

    def start_profile(self, address: str, window: Window) -> None:
        """Begin to record; the server's own profiler comes first, as its annotations begin with it.

        Raises:
            WindowFailedError: The server or nsys refused, or the disk is too full.
        """
        session, output = self._ready()
        output.parent.mkdir(parents=True, exist_ok=True)
        if not has_room(output.parent, _ROOM):
            raise WindowFailedError("less than 2 GB are left on the disk for nsys' files", path=str(output.parent))
        self._inner.start_profile(address, window)
        session.start(output, window.start_s)

    def stop_profile(self, address: str, window: Window) -> None:
        """End the recording and leave a SQLite file without environments; the report stays only where it was asked for.

        Raises:
            WindowFailedError: nsys left nothing, or what it left cannot be used.
        """
        session, output = self._ready()
        try:
            report = session.stop(output, window.stop_s)
        finally:
            self._inner.stop_profile(address, window)
        file = session.export(report, window.traces_s)
        scrub(file, self._secrets)
        if not self._profiler.keep_report:
            report.unlink()
        session.shut(_SHUT_S)

    def collect(self) -> tuple[Path, ...]:
        """Return the recording, checked.

        Raises:
            WindowFailedError: Nothing was recorded.
        """
        _, output = self._ready()
        file = output.with_name(output.name + ".sqlite")
        found = contents(file)
        if found.empty:
            raise WindowFailedError(
                "nsys recorded neither kernels nor calls nor ranges of the server",
                path=str(file),
                hint=f"workers must be spawned ({_SPAWN}=spawn), and the window must be open while requests run",
            )
        if not found.kernels and not found.graphs and found.calls:
            raise WindowFailedError(
                f"nsys recorded {found.calls} CUDA calls and not one kernel",
                path=str(file),
                hint="another profiler may hold CUPTI, or the driver does not let nsys trace: moeprof doctor",
            )
        return (file,)

    def _ready(self) -> tuple[Session, Path]:
        assert self._session is not None and self._output is not None, "command() comes first"
        return self._session, self._output
