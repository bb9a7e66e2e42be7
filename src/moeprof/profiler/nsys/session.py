"""A session of nsys around one server: launch prefix, start, stop, and from the recording to a report and a SQLite file."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from moeprof.errors import WindowFailedError
from moeprof.profiler.nsys.program import Nsys

GraphTrace = Literal["node", "graph"]

_LAST = 3  # lines of nsys' words that an error quotes


@dataclass(frozen=True, slots=True)
class Session:
    """A session, by name.

    Attributes:
        nsys: The program.
        name: Letters and digits; one for each server.
        graphs: ``node``: every kernel of a CUDA graph, for structure; ``graph``: each graph as one row, for time.
        env: Environment of nsys' own commands.
    """

    nsys: Nsys
    name: str
    graphs: GraphTrace
    env: Mapping[str, str]

    def prefix(self) -> tuple[str, ...]:
        """Return the words before the server's own: nothing is recorded until `start`."""
        return (
            *(self.nsys.path, "launch", f"--session-new={self.name}", "--trace=cuda,nvtx"),
            f"--cuda-graph-trace={self.graphs}",
        )

    def start(self, output: Path, limit_s: float) -> None:
        """Begin to record.

        Args:
            output: The report to be made, without its ending.
            limit_s: Limit; a nsys that hangs is ended.

        Raises:
            WindowFailedError: It did not begin.
        """
        words = ("start", f"--session={self.name}", "--sample=none", "--cpuctxsw=none", f"--output={output}")
        self._do((*words, "--force-overwrite=true"), limit_s, "begin to record")

    def stop(self, output: Path, limit_s: float) -> Path:
        """End the recording and return its report.

        Raises:
            WindowFailedError: It did not end, or left no report.
        """
        said = self._do(("stop", f"--session={self.name}"), limit_s, "end its recording")
        report = output.with_name(output.name + ".nsys-rep")
        if report.exists():
            return report
        stream = output.with_name(output.name + ".qdstrm")
        if not stream.exists():
            raise WindowFailedError(f"nsys left no report{_quoted(said)}", path=str(report))
        return self._import(stream, report, limit_s)

    def export(self, report: Path, limit_s: float) -> Path:
        """Turn a report into a SQLite file beside it.

        Raises:
            WindowFailedError: It cannot be exported.
        """
        made = report.with_suffix(".sqlite")
        words = ("export", "--type=sqlite", "--force-overwrite=true", f"--output={made}", str(report))
        said = self._do(words, limit_s, "export its report")
        if not made.exists():
            raise WindowFailedError(f"nsys exported nothing{_quoted(said)}", path=str(made))
        return made

    def shut(self, limit_s: float) -> None:
        """End the session; the server goes on. Nothing is raised: what is left ends with the server's processes."""
        try:
            self._do(("shutdown", f"--session={self.name}", "--kill=none"), limit_s, "end its session")
        except WindowFailedError:
            return

    def _import(self, stream: Path, report: Path, limit_s: float) -> Path:
        """Do by hand what nsys does where it finds its importer."""
        importer = self.nsys.importer
        if importer is None:
            raise WindowFailedError(
                "nsys recorded, and has no importer that makes a report of it",
                path=str(stream),
                hint="install a full Nsight Systems; moeprof doctor explains",
            )
        said = _run(
            (importer, "-i", str(stream), "-o", str(report)), limit_s, self.env, "make a report of the recording"
        )
        if not report.exists():
            raise WindowFailedError(
                f"nsys' importer made no report{_quoted(said)}",
                path=str(stream),
                hint="it needs libdw1 and libelf1 (LD_LIBRARY_PATH), and the version of the nsys that recorded",
            )
        stream.unlink()
        return report

    def _do(self, words: Sequence[str], limit_s: float, what: str) -> str:
        return _run((self.nsys.path, *words), limit_s, self.env, what)


def has_room(folder: Path, bytes_: int) -> bool:
    """Return whether a folder's disk has so many bytes left."""
    return shutil.disk_usage(folder).free >= bytes_


def _run(words: Sequence[str], limit_s: float, env: Mapping[str, str], what: str) -> str:
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
            env=dict(env),
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise WindowFailedError(
            f"nsys did not {what} within {limit_s:g} s",
            hint="window.start_s and window.stop_s are the limits; a shorter window is written faster",
        ) from error
    except OSError as error:
        raise WindowFailedError(f"nsys does not run: {os.strerror(error.errno or 0)}", path=words[0]) from error
    said = done.stdout + done.stderr
    if done.returncode != 0:
        raise WindowFailedError(f"nsys could not {what} (it ended with {done.returncode}){_quoted(said)}")
    return said


def _quoted(said: str) -> str:
    lines = [line.rpartition("\r")[2].strip() for line in said.splitlines()]
    kept = [line for line in lines if line and not line.startswith("[1/")][-_LAST:]
    return f": {' / '.join(kept)[:300]}" if kept else ""
