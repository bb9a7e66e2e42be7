"""A trace in memory: ranks by key, each with its tables, its metadata and what was found while reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import polars as pl

from moeprof.findings import Finding, JsonValue


@dataclass(frozen=True, slots=True)
class TraceMetadata:
    """What a trace file says about itself outside its events.

    Attributes:
        base_time_ns: Unix ns to add to every time of the rank; 0 when ``base_time_known`` is False.
        base_time_known: Whether the file states its base time.
        distributed_rank: ``distributedInfo.rank``, or None.
        world_size: ``distributedInfo.world_size``, or None.
        backend: ``distributedInfo.backend``, or None.
        devices: Device index to device name, as listed (all visible devices, not only the used ones).
        versions: cupti, cuda runtime and driver, hip, vllm, schema ... as text.
        trace_name: ``traceName``, or None.
        raw: Every top-level key but traceEvents.
    """

    base_time_ns: int = 0
    base_time_known: bool = False
    distributed_rank: int | None = None
    world_size: int | None = None
    backend: str | None = None
    devices: Mapping[int, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    trace_name: str | None = None
    raw: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RankTrace:
    """One rank: tables by `moeprof.traces.schema`, metadata and findings.

    Attributes:
        key: ``dp0_pp0_tp0_dcp0_ep0_rank0``, ``rank5`` ..., or None where neither name nor metadata tells the rank.
        source: Name of the file, relative to the folder that was opened.
        events, kernels, launches, markers, collectives, tracks, invalid: polars frames, see `schema`.
        event_counts: Events of the file by category, skipped ones included.
        partial: True when `recover` read a damaged file.
    """

    key: str | None
    source: str
    events: pl.DataFrame
    kernels: pl.DataFrame
    launches: pl.DataFrame
    markers: pl.DataFrame
    collectives: pl.DataFrame
    tracks: pl.DataFrame
    invalid: pl.DataFrame
    metadata: TraceMetadata
    event_counts: Mapping[str, int]
    findings: tuple[Finding, ...] = ()
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Trace:
    """The ranks of one capture.

    Attributes:
        source: The path as the caller gave it, or the name of a stored run.
        by_rank: Rank traces by key, in natural key order (2 before 10).
        findings: What was found about the set of files: files left out, ranks unknown or missing.
        arm: The arm of the store that it is a run of; None for a path.
    """

    source: str
    by_rank: Mapping[str | None, RankTrace]
    findings: tuple[Finding, ...] = ()
    arm: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_rank", MappingProxyType(dict(self.by_rank)))

    @property
    def ranks(self) -> tuple[str | None, ...]:
        """Return the rank keys in order."""
        return tuple(self.by_rank)

    def __getitem__(self, rank: str | None) -> RankTrace:
        return self.by_rank[rank]

    def __iter__(self) -> Iterator[RankTrace]:
        return iter(self.by_rank.values())

    def __len__(self) -> int:
        return len(self.by_rank)
