"""What a configuration says, after defaults and `extends` are resolved. Durations are seconds here: a person writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

BackendName = Literal["vllm", "command"]
ClientName = Literal["auto", "vllm", "vllm-rs", "builtin"]

#: Name under which vLLM finds moeprof's markers where VLLM_PLUGINS restricts what is loaded.
MARKER_PLUGIN = "moeprof_markers"


@dataclass(frozen=True, slots=True)
class Server:
    """How the server is started and reached.

    Attributes:
        backend: ``vllm`` (an OpenAI server with vLLM's routes) or ``command`` (any program; runs to its end, writes traces).
        command: Words of the command, before model and flags; for ``command`` the whole command line.
        model: What follows ``serve``; None for ``command``.
        served_name: Name that requests use; None: the model.
        host: Loopback address to bind, unless `allow_remote`.
        allow_remote: Whether another address than loopback may be bound.
        port: Port, or 0 for a free one.
        health: Path that answers 200 when ready.
        ready_s, stop_s, stall_s: Limits: until ready; from TERM to KILL; without a new token while requests run.
    """

    backend: BackendName = "vllm"
    command: tuple[str, ...] = ("vllm",)
    model: str | None = None
    served_name: str | None = None
    host: str = "127.0.0.1"
    allow_remote: bool = False
    port: int = 0
    health: str = "/health"
    ready_s: float = 600.0
    stop_s: float = 15.0
    stall_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Expect:
    """What an arm must prove, from the server's log and from the trace's kernels. None: not required."""

    moe_backend: str | None = None  # HUMMING, TRITON ..., as in the log line "Using X ... MoE backend"
    all2all: str | None = None  # AgRsAll2AllManager, allgather_reducescatter ...
    model_runner: Literal["V1", "V2"] | None = None
    log: tuple[str, ...] = ()  # regular expressions that the log must hold
    kernels: Mapping[str, int] = field(default_factory=dict)  # class or class/phase -> launches per iteration


@dataclass(frozen=True, slots=True)
class Arm:
    """A named server configuration, with what it inherits from `extends` already merged in."""

    name: str
    flags: tuple[str, ...]
    env: Mapping[str, str]
    server: Server
    expect: Expect
    markers: bool = True


@dataclass(frozen=True, slots=True)
class Workload:
    """What the client sends. Decode: a list of concurrencies with two prompts each per unit; prefill: a list of rates."""

    name: str
    kind: Literal["decode", "prefill"]
    input_len: int
    output_len: int
    concurrency: tuple[int, ...] = ()  # decode
    rate: tuple[float, ...] = ()  # prefill, requests per second
    prompts_per_concurrency: int = 2
    num_prompts: int | None = None  # prefill
    seed: int = 0
    vocabulary: int | None = None  # for the built-in client's random token ids; None: asked from the server's model
    temperature: float = 0.0
    ignore_eos: bool = True


@dataclass(frozen=True, slots=True)
class Passes:
    """Timed client runs of a block, never profiled."""

    timed: int = 3
    warmup: int = 1
    client: ClientName = "auto"
    timeout_s: float = 1800.0


@dataclass(frozen=True, slots=True)
class Window:
    """The profile window: opened while at least `concurrency` requests run, closed after `iterations` or `seconds`."""

    iterations: int = 20
    seconds: float = 10.0
    concurrency: int | None = None  # None: the workload's largest
    input_len: int | None = None  # None: the workload's
    output_len: int = 900  # long enough to outlast the window
    start_s: float = 120.0
    stop_s: float = 300.0
    traces_s: float = 300.0
    min_bytes: int = 20_000


@dataclass(frozen=True, slots=True)
class Profiler:
    """Who records the profile window.

    Attributes:
        tool: The server's torch profiler, or nsys around the server.
        cuda_graphs: For nsys: every kernel of a graph (``node``, for structure), or each graph as one row (``graph``, for time).
        nsys: The program; None: that of PATH, else of the usual folders.
        keep_report: Whether nsys' own report stays beside its SQLite file; it holds whole environments.
    """

    tool: Literal["torch", "nsys"] = "torch"
    cuda_graphs: Literal["node", "graph"] = "node"
    nsys: str | None = None
    keep_report: bool = False


@dataclass(frozen=True, slots=True)
class Gates:
    """Which checks a capture must pass. A gate without data fails only when it is required."""

    required: tuple[str, ...] = (
        "no-failed-requests",
        "token-counts",
        "expected-backend",
        "traces-complete",
        "profile-apart",
    )
    clock_tolerance: float = 0.05
    allow_cotenants: bool = False


@dataclass(frozen=True, slots=True)
class Sampler:
    """GPU samples."""

    period_s: float = 5.0
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Compare:
    """How two arms are compared.

    Attributes:
        accuracy_margin: The largest drop of accuracy that is acceptable, as a difference of shares; None: none is stated.
        allow_environment: Keys of the environment that may differ.
    """

    accuracy_margin: float | None = None
    allow_environment: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """A whole configuration.

    Attributes:
        source: File it was read from, absolute.
        arms: By name, in file order.
        workloads: By name, in file order; the first is the default.
    """

    source: str
    arms: Mapping[str, Arm]
    workloads: Mapping[str, Workload]
    passes: Passes = Passes()
    window: Window = Window()
    profiler: Profiler = Profiler()
    gates: Gates = Gates()
    sampler: Sampler = Sampler()
    compare: Compare = Compare()
    store: str = ".moeprof"  # absolute once loaded

    @property
    def folder(self) -> Path:
        """Return the folder of the file: its relative paths count from there."""
        return Path(self.source).parent
