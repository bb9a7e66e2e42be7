"""What a stored run says it ran on, as flat keys: from its manifest, and its clocks from the GPU samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from moeprof.analyzers.environment.results import RunRecord
from moeprof.config.flags import grouped
from moeprof.findings import JsonValue
from moeprof.series.selection import is_ingested
from moeprof.store.manifest import Manifest
from moeprof.store.run import Run

OWN = "own"
_HARDWARE = ("cpu", "cpus", "machine", "memory_bytes", "host")
_SAMPLES = "samples.parquet"
_CLOCKS = (("sm_mhz", "clocks.sm_mhz"), ("memory_mhz", "clocks.memory_mhz"))


def records(runs: Iterable[Run]) -> tuple[RunRecord, ...]:
    """Return the facts of runs, in order of block."""
    return tuple(sorted((record(run) for run in runs), key=lambda found: (found.block, found.source)))


def record(run: Run) -> RunRecord:
    """Return the facts of a run; those of an ingested one are not known."""
    told = run.manifest
    own = told.extra.get(OWN)
    return RunRecord(
        source=run.name,
        block=told.block,
        facts={} if is_ingested(run) else {**facts(told), **_clocks(run.path / _SAMPLES, _windows(told.passes))},
        commanded=bool(told.argv),
        own=frozenset(str(key) for key in own) if isinstance(own, list) else None,
        fingerprint=told.fingerprint,
    )


def facts(told: Manifest) -> dict[str, JsonValue]:
    """Return what a manifest tells, by flat key; what it does not know is left out."""
    found: dict[str, JsonValue] = {}
    found.update(_under("versions", told.versions))
    found.update(_under("git", told.git))
    found.update(_under("model", told.model))
    found.update(_under("workload", told.workload))
    found.update(_under("hardware", {name: told.hardware.get(name) for name in _HARDWARE}))
    found.update(_gpus(told.hardware.get("gpus")))
    found.update({f"flags.{key}": value for key, value in flags(told.argv).items()})
    found.update({f"env.{name}": value for name, value in told.env.items()})
    client = told.extra.get("client")
    if isinstance(client, dict):
        found["client.name"] = client.get("name")
        if client.get("name") == "builtin":
            found["client.version"] = told.versions.get("moeprof")
    return {key: value for key, value in found.items() if value is not None}


def flags(argv: Iterable[str]) -> dict[str, str]:
    """Return the flags of a command line with their values; the last one of a name counts, and ``--no-x`` sets ``x``.

    >>> flags(["vllm", "serve", "m", "--seed", "0", "-tp=2", "--no-enable-prefix-caching"])
    {'seed': '0', 'tensor-parallel-size': '2', 'enable-prefix-caching': 'no'}
    """
    found = {}
    for flag in grouped(list(argv)):
        if flag.name:
            found[flag.key] = "no" if flag.name != flag.key else " ".join(flag.values) or "yes"
    return found


def _under(prefix: str, values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {f"{prefix}.{name}": value for name, value in values.items()}


def _gpus(value: JsonValue) -> dict[str, JsonValue]:
    """Return the GPUs without what tells one specimen from another."""
    gpus = [gpu for gpu in value if isinstance(gpu, dict)] if isinstance(value, list) else []
    if not gpus:
        return {}
    names = [str(gpu.get("name")) for gpu in gpus]
    counted = ", ".join(f"{names.count(name)} x {name}" for name in sorted(set(names)))
    memory = [size for gpu in gpus if isinstance(size := gpu.get("memory_mib"), int)]
    return {"hardware.gpus": counted, "hardware.gpu_memory_mib": min(memory) if memory else None}


def _clocks(path: Path, windows: Sequence[tuple[float, float]]) -> dict[str, JsonValue]:
    """Return the median clocks of all GPUs within the timed passes; nothing where they were not sampled there."""
    if not path.is_file() or not windows:
        return {}
    import polars as pl

    try:
        table = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError):
        return {}
    if "time" not in table.columns:
        return {}
    inside = table.filter(pl.any_horizontal([pl.col("time").is_between(start, end) for start, end in windows]))
    medians = {key: inside[column].median() for column, key in _CLOCKS if column in inside.columns}
    return {key: float(value) for key, value in medians.items() if isinstance(value, int | float)}


def _windows(passes: Iterable[Mapping[str, JsonValue]]) -> list[tuple[float, float]]:
    """Return when the timed passes ran, where the manifest says so."""
    spans = [at for entry in passes if isinstance(at := entry.get("at"), list) and len(at) == 2]
    return [
        (float(start), float(end))
        for start, end in spans
        if isinstance(start, int | float) and isinstance(end, int | float)
    ]
