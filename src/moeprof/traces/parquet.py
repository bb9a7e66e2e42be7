"""The normalised tables of a trace as Parquet files, one folder per rank."""

from __future__ import annotations

from pathlib import Path

from moeprof.traces.trace import Trace

TABLES = ("events", "kernels", "launches", "markers", "collectives", "tracks", "invalid")


def write_tables(trace: Trace, folder: Path) -> list[Path]:
    """Write ``rank=<key>/<table>.parquet`` below a folder and return the files.

    Names are strings there (dictionary-encoded by Parquet), times are ns relative to the rank's base time, which the file's metadata
    holds under ``moeprof.base_time_ns``; columns are those of `moeprof.traces.schema`.

    Args:
        trace: The trace.
        folder: Made where it is missing.

    Raises:
        OSError: A file cannot be written.
    """
    written = []
    for rank in trace:
        below = folder / f"rank={rank.key or 'unknown'}"
        below.mkdir(parents=True, exist_ok=True)
        for name in TABLES:
            file = below / f"{name}.parquet"
            metadata = {"moeprof.schema": "moeprof.tables/1", "moeprof.base_time_ns": str(rank.metadata.base_time_ns)}
            getattr(rank, name).write_parquet(file, compression="zstd", metadata=metadata)
            written.append(file)
    return written
