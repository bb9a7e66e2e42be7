"""What the log of a vLLM server proves: which backends ran, whether markers are on, how many steps the profiler saw.

Lines of two processes may run into one another, progress bars share lines, colours may be on: facts are looked for
anywhere in the text, in the order they stand in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from moeprof.findings import JsonValue
from moeprof.store import redact

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_MOE = re.compile(r"Using '?([A-Za-z0-9_.-]+)'?(?: [\w-]+){0,3} MoE backend")
_HUMMING = re.compile(r"Using (\w+) gemm for humming moe")
_ALL2ALL = re.compile(r"Using (\w+) all2all manager")
_PREPARE = re.compile(r"Using (MoEPrepareAndFinalize\w+)")
_RUNNER = re.compile(r"Using V2 Model Runner")
_ATTENTION = re.compile(r"Using (\w+) attention backend")
_WORKER = re.compile(r"\((Worker\w*) pid=(\d+)\)")
_WORLD = re.compile(r"rank \d+ in world size (\d+) is assigned")
_GRAPHS = re.compile(r"Graph capturing finished in (\d+) secs")
_JIT = re.compile(r"JIT compilation during inference: (\S+?)[.,]?(?=\s|$)")
_UNTUNED = re.compile(r"Using default MoE config")
_MARKERS = re.compile(r"moeprof markers: (?:active \(([^)]*)\)|(not active[^:]*): ([^\n]*))")
_ERROR = re.compile(r"\bERROR\b|\b\w*(?:Error|Exception): |\braise \w|Traceback \(most recent call last\)")
_STEP = re.compile(
    r"Engine (?P<engine>\d+): Iteration\((?P<index>\d+)\): (?P<contexts>\d+) context requests, \d+ context tokens, "
    r"(?P<generations>\d+) generation requests, \d+ generation tokens(?P<rest>[^\n]*?)(?=\(\w+ pid=|Engine \d+: |$)"
)
_PROFILER = re.compile(r"(Starting profiler|Stopping profiler)")
_ERRORS_KEPT = 20
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of one engine while the profiler ran.

    Attributes:
        engine: Its number.
        iterations: Steps by the running index, which also covers steps whose line is missing.
        lines, dummy: Lines seen; those marked as dummy batches.
        contexts, generations: Lines with prefill requests; lines with decode requests.
    """

    engine: int
    iterations: int
    lines: int
    dummy: int
    contexts: int
    generations: int

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the JSON object."""
        return {
            "engine": self.engine,
            "iterations": self.iterations,
            "lines": self.lines,
            "dummy": self.dummy,
            "contexts": self.contexts,
            "generations": self.generations,
        }


@dataclass(frozen=True, slots=True)
class LogFacts:
    """Facts of a log; None or empty: the log does not say.

    Attributes:
        moe_backends: In order of appearance, the target's first.
        humming_gemm: ``indexed`` or ``grouped``.
        all2all, prepare_finalize, attention: Names as in the log.
        model_runner: ``V2``; ``V1`` where workers started and no line tells of V2.
        workers: Name to process id.
        world_size: Ranks of the job.
        graph_capture_s: Seconds that graph capture took; None: no graphs.
        jit: Kernels compiled during inference, which disturbs a timed pass.
        untuned: Whether Triton ran with a default MoE configuration.
        markers: Parts that the marker plugin marks; None where it is not active.
        markers_reason: Why it is not.
        profiler_starts, profiler_stops: Lines of the API server.
        windows: Per profiler window, the steps of each engine.
        errors: Lines that tell of an error, redacted, the last ones; error_count: all of them.
    """

    moe_backends: tuple[str, ...] = ()
    humming_gemm: str | None = None
    all2all: str | None = None
    prepare_finalize: str | None = None
    attention: str | None = None
    model_runner: str | None = None
    workers: tuple[tuple[str, int], ...] = ()
    world_size: int | None = None
    graph_capture_s: int | None = None
    jit: tuple[str, ...] = ()
    untuned: bool = False
    markers: tuple[str, ...] | None = None
    markers_reason: str | None = None
    profiler_starts: int = 0
    profiler_stops: int = 0
    windows: tuple[tuple[Steps, ...], ...] = ()
    errors: tuple[str, ...] = ()
    error_count: int = 0

    @property
    def moe_backend(self) -> str | None:
        """Return the target's MoE backend."""
        return self.moe_backends[0] if self.moe_backends else None

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the JSON object of the manifest."""
        return {
            "moe_backend": self.moe_backend,
            "moe_backends": list(self.moe_backends),
            "humming_gemm": self.humming_gemm,
            "all2all": self.all2all,
            "prepare_finalize": self.prepare_finalize,
            "attention": self.attention,
            "model_runner": self.model_runner,
            "workers": dict(self.workers),
            "world_size": self.world_size,
            "graph_capture_s": self.graph_capture_s,
            "jit": list(self.jit),
            "untuned": self.untuned,
            "markers": None if self.markers is None else list(self.markers),
            "markers_reason": self.markers_reason,
            "profiler_starts": self.profiler_starts,
            "profiler_stops": self.profiler_stops,
            "windows": [[steps.to_dict() for steps in window] for window in self.windows],
            "errors": list(self.errors),
            "error_count": self.error_count,
        }


def plain(text: str) -> str:
    """Return a log without colours, each state of a progress bar on a line of its own."""
    return _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n")


def log_facts(text: str) -> LogFacts:
    """Return what a server's log says.

    Args:
        text: The log.

    >>> log_facts("(Worker pid=1) INFO Using HUMMING Fp8 MoE backend out of potential backends: [...]").moe_backend
    'HUMMING'
    """
    log = plain(text)
    workers = dict.fromkeys((name, int(pid)) for name, pid in _WORKER.findall(log))
    active, reason = _markers(log)
    errors = [redact.text(line.strip()[:_LONGEST]) for line in log.splitlines() if _ERROR.search(line)]
    started = bool(workers) or _WORLD.search(log) is not None
    seconds = _first(_GRAPHS, log)
    world = _first(_WORLD, log)
    starts, stops, windows = _windows(log)
    return LogFacts(
        moe_backends=tuple(dict.fromkeys(_MOE.findall(log))),
        humming_gemm=_first(_HUMMING, log),
        all2all=_first(_ALL2ALL, log),
        prepare_finalize=_first(_PREPARE, log),
        attention=_first(_ATTENTION, log),
        model_runner="V2" if _RUNNER.search(log) else "V1" if started else None,
        workers=tuple(sorted(workers)),
        world_size=None if world is None else int(world),
        graph_capture_s=None if seconds is None else int(seconds),
        jit=tuple(dict.fromkeys(_JIT.findall(log))),
        untuned=_UNTUNED.search(log) is not None,
        markers=active,
        markers_reason=reason,
        profiler_starts=starts,
        profiler_stops=stops,
        windows=windows,
        errors=tuple(errors[-_ERRORS_KEPT:]),
        error_count=len(errors),
    )


def matches(text: str, patterns: Iterable[str]) -> dict[str, bool]:
    """Tell for each regular expression whether a log holds it."""
    log = plain(text)
    return {pattern: re.search(pattern, log, re.MULTILINE) is not None for pattern in patterns}


def _first(pattern: re.Pattern[str], log: str) -> str | None:
    match = pattern.search(log)
    return None if match is None else match[1]


def _markers(log: str) -> tuple[tuple[str, ...] | None, str | None]:
    """Return the parts marked, unless any process says that it is not marked."""
    active: tuple[str, ...] | None = None
    for match in _MARKERS.finditer(log):
        if match[2] is not None:
            return None, redact.text(match[3].strip())
        active = active or tuple(part.strip() for part in match[1].split(",") if part.strip())
    return active, None


def _windows(log: str) -> tuple[int, int, tuple[tuple[Steps, ...], ...]]:
    """Cut the log at the profiler's lines. A window ends where any process stops first: workers stop by themselves."""
    starts = stops = 0
    windows: list[tuple[Steps, ...]] = []
    seen: dict[int, list[re.Match[str]]] | None = None
    for line in log.splitlines():
        for match in _STEP.finditer(line):
            if seen is not None:
                seen.setdefault(int(match["engine"]), []).append(match)
        for word in _PROFILER.findall(line):
            from_workers = "Max profiling iterations reached" in line or "after delay" in line
            if word.startswith("Starting"):
                starts += not from_workers
                seen = {} if seen is None else seen
            else:
                stops += not from_workers
                if seen is not None:
                    windows.append(_steps(seen))
                seen = None
    return starts, stops, tuple(windows)


def _steps(seen: Mapping[int, Sequence[re.Match[str]]]) -> tuple[Steps, ...]:
    return tuple(
        Steps(
            engine=engine,
            iterations=max(int(line["index"]) for line in lines) - min(int(line["index"]) for line in lines) + 1,
            lines=len(lines),
            dummy=sum("(dummy)" in line["rest"] for line in lines),
            contexts=sum(int(line["contexts"]) > 0 for line in lines),
            generations=sum(int(line["generations"]) > 0 for line in lines),
        )
        for engine, lines in sorted(seen.items())
    )
