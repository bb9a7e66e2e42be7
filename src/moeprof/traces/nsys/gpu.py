"""GPU rows of an export: kernels, copies, fills, and whole graphs where the capture recorded nothing finer."""

from __future__ import annotations

import polars as pl

from moeprof.traces.nsys.export import Export, Rows

PREFIX = "CUPTI_ACTIVITY_KIND_"
#: Table, category of its events, and activity.
TABLES = (
    ("KERNEL", "kernel", "kernel"),
    ("MEMCPY", "gpu_memcpy", "memcpy"),
    ("MEMSET", "gpu_memset", "memset"),
    ("GRAPH_TRACE", "gpu_graph", "graph"),
)
_COMMON = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "graphNodeId")
_KERNEL = (
    *("demangledName", "shortName", "mangledName", "graphId", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
    *("registersPerThread", "staticSharedMemory", "dynamicSharedMemory"),
)
_COPY = ("bytes", "copyKind", "srcKind", "dstKind")
_FILL = ("bytes", "memKind")
_GRAPH = ("graphId", "graphExecId")
_OWN = {"KERNEL": _KERNEL, "MEMCPY": _COPY, "MEMSET": _FILL, "GRAPH_TRACE": _GRAPH}

# The words of torch.profiler for the same numbers.
_COPY_KINDS = ("Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")
_UNIFIED = {11: "Unified HtoD", 12: "Unified DtoH", 13: "Unified DtoD"}
_MEMORIES = ("Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static", "Unknown")

#: Columns of GPU rows here, beside ``name`` and ``category``.
NUMBERS = (
    *("device", "stream", "start_ns", "end_ns", "process", "correlation", "graph_id", "graph_node_id"),
    *("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers_per_thread", "shared_memory", "bytes"),
)


def wanted(export: Export, kind: str) -> list[str]:
    """Return the columns that are read of a table of GPU rows, those that it has."""
    held = set(export.tables.get(PREFIX + kind, ()))
    if {"demangledName", "shortName"} & held:
        held.discard("mangledName")
    return [name for name in (*_COMMON, *_OWN[kind]) if name in held]


def read_table(export: Export, kind: str) -> Rows:
    """Read one table of GPU rows as the file holds it."""
    return export.read(PREFIX + kind, wanted(export, kind))


def name_ids(kernels: pl.DataFrame) -> pl.Series:
    """Return the string that names each kernel: the full name where there is one, as torch.profiler writes it."""
    held = [name for name in ("demangledName", "shortName", "mangledName") if name in kernels.columns]
    if not held:
        return pl.repeat(None, kernels.height, dtype=pl.Int64, eager=True).alias("name")
    return kernels.select(pl.coalesce(held).alias("name")).to_series()


def names(kind: str, rows: pl.DataFrame) -> pl.Series:
    """Name copies, fills and graphs in the words of torch.profiler."""
    if kind == "MEMCPY":
        return _copies(rows)
    if kind == "MEMSET":
        return _spelled(rows, ["memKind"], lambda values: f"Memset ({_memory(values[0])})")
    return _spelled(rows, ["graphExecId"], lambda values: "graph" if values[0] is None else f"graph {values[0]}")


def unified(kind: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with the columns `NUMBERS`; what the file does not say is null."""
    held = set(rows.columns)

    def column(name: str) -> pl.Expr:
        return pl.col(name) if name in held else pl.lit(None, dtype=pl.Int64)

    def number(name: str) -> pl.Expr:
        return column(name).reinterpret(signed=False) if name in held else pl.lit(None, dtype=pl.UInt64)

    of_node = column("graphNodeId").reinterpret(signed=False) // 2**32 if "graphNodeId" in held else None
    graph = [of_node, number("graphExecId"), number("graphId")] if of_node is not None else [
        number("graphExecId"), number("graphId")
    ]  # fmt: skip
    shared = [column(name) for name in ("staticSharedMemory", "dynamicSharedMemory") if name in held]
    return rows.select(
        column("deviceId").alias("device"),
        column("streamId").alias("stream"),
        column("start").alias("start_ns"),
        column("end").alias("end_ns"),
        column("globalPid").alias("process"),
        number("correlationId").alias("correlation"),
        pl.coalesce(graph).alias("graph_id"),
        number("graphNodeId").alias("graph_node_id"),
        *(column(f"{what}{axis.upper()}").alias(f"{what}_{axis}") for what in ("grid", "block") for axis in "xyz"),
        column("registersPerThread").alias("registers_per_thread"),
        (pl.sum_horizontal(shared) if shared else column("sharedMemory")).alias("shared_memory"),
        column("bytes").alias("bytes"),
    )


def _copies(rows: pl.DataFrame) -> pl.Series:
    def spelled(values: tuple[int | None, ...]) -> str:
        kind, source, target = values
        known = _COPY_KINDS[kind] if kind is not None and 0 <= kind < len(_COPY_KINDS) else None
        word = known or _UNIFIED.get(kind or 0, "Unknown")
        return f"Memcpy {word} ({_memory(source)} -> {_memory(target)})"

    return _spelled(rows, ["copyKind", "srcKind", "dstKind"], spelled)


def _memory(kind: int | None) -> str:
    return _MEMORIES[kind] if kind is not None and 0 <= kind < len(_MEMORIES) else "Unknown"


def _spelled(rows: pl.DataFrame, columns: list[str], spell: object) -> pl.Series:
    """Name rows by few distinct combinations of numbers."""
    assert callable(spell)
    keys = rows.select(
        pl.col(name) if name in rows.columns else pl.lit(None, dtype=pl.Int64).alias(name) for name in columns
    )
    if keys.height != rows.height:  # none of the columns is there
        keys = pl.DataFrame({name: pl.repeat(None, rows.height, dtype=pl.Int64, eager=True) for name in columns})
    distinct = keys.unique().sort(columns)
    words = distinct.with_columns(
        pl.Series("name", [str(spell(values)) for values in distinct.iter_rows()], dtype=pl.String)
    )
    return keys.join(words, on=columns, how="left", nulls_equal=True, maintain_order="left")["name"]
