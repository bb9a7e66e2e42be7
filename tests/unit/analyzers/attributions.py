"""Build small attributions by hand: rows say only what matters to the test, the rest is filled in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

import polars as pl

from moeprof.analyzers.tables import ATTRIBUTED, ITERATIONS, Attribution
from moeprof.traces.schema import Schema

Row = Mapping[str, object]

#: Words of `launches`: a class, and how many expert GEMMs one launch does.
WORDS: dict[str, tuple[str, int]] = {
    "AG": ("all_gather", 0),
    "RS": ("reduce_scatter", 0),
    "B": ("broadcast", 0),
    "D": ("reduce", 0),
    "G": ("moe_gemm", 1),
    "GG": ("moe_gemm", 2),  # an operator that does both
    "F": ("moe_fused", 0),
    "C": ("moe_combine", 0),
    "T": ("attention", 0),
}


def launches(words: str, *, iteration: int | None = 0, phase: str | None = "target") -> list[Row]:
    """Return rows for a sequence such as ``"T AG G G C RS"``; a number repeats a word: ``"3*AG GG RS"``."""
    rows: list[Row] = []
    for item in words.split():
        times, _, word = item.rpartition("*")
        class_, gemms = WORDS.get(word, (word, 0))
        row = {"class": class_, "gemms": gemms, "iteration": iteration, "phase": phase}
        rows += [row] * (int(times) if times else 1)
    return rows


def attribution(
    rows: Iterable[Row],
    iterations: int | Sequence[Row] | None = None,
    *,
    family: str | None = "vllm",
    counts_over: str | None = "decode",
    cpu_only: bool = False,
    rank: str | None = "rank0",
) -> Attribution:
    """Return an attribution.

    Args:
        rows: Launches, each with at least a ``class``. Rows start 100 ns apart in the order given and last 10 ns,
            unless they say otherwise. Without a family their iteration is null and their phase ``target``.
        iterations: How many complete decode iterations, or what is special about each; by default as many as rows name.
        family, counts_over, cpu_only, rank: As in `Attribution`.
    """
    rows = list(rows)
    if family is None:
        iterations, counts_over = 0, None
    elif iterations is None:
        named = [number for row in rows if isinstance(number := row.get("iteration", 0), int)]
        iterations = max(named, default=-1) + 1
    specials = [{}] * iterations if isinstance(iterations, int) else list(iterations)
    windows = [_iteration(number, row, len(specials), counts_over) for number, row in enumerate(specials)]
    filled = [_launch(number, row, family, cpu_only) for number, row in enumerate(rows)]
    return Attribution(
        rank=rank,
        family=family,
        cpu_only=cpu_only,
        counts_over=counts_over,
        iterations=_frame(windows, ITERATIONS),
        launches=_frame(filled, ATTRIBUTED).sort("start_ns", "event"),
    )


def _launch(number: int, row: Row, family: str | None, cpu_only: bool) -> Row:
    class_ = row["class"]
    activity = class_ if class_ in ("memcpy", "memset") else "operator" if cpu_only else "kernel"
    start = row.get("start_ns", 100 * number)
    duration = row.get("duration_ns", 10)
    assert isinstance(start, int)
    assert isinstance(duration, int)
    return {
        "event": number,
        "name": f"{class_}_kernel",
        "backend": None,
        "gemms": 1 if class_ == "moe_gemm" else 0,
        "activity": activity,
        "device": None if cpu_only else 0,
        "stream": None if cpu_only else 7,
        "start_ns": start,
        "end_ns": start + duration,
        "duration_ns": duration,
        "launch": None if cpu_only else number,
        "launch_start_ns": start if cpu_only else start - 50,
        "phase": "target",
        **row,
        "iteration": None if family is None else row.get("iteration", 0),
    }


def _iteration(number: int, row: Row, total: int, counts_over: str | None) -> Row:
    start = 1_000_000 * number
    kind = row.get("kind", "decode" if counts_over != "all" else None)
    partial = row.get("partial", False)
    return {
        "iteration": number,
        "label": "execute_context_0(0)_generation_4(16)",
        "kind": kind,
        "start_ns": start,
        "marker_end_ns": start + 500_000,
        "next_start_ns": start + 1_000_000 if number + 1 < total else None,
        "track": 0,
        "partial": partial,
        "partial_reason": "cut" if partial else None,
        "transient": False,
        "counted": not partial and (counts_over == "all" or kind == counts_over),
        **row,
    }


def _frame(rows: Sequence[Row], schema: Schema) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=schema, orient="row").select(list(schema))


def shuffled(source: Attribution, random: Random) -> Attribution:
    """Return an attribution with the rows of both tables in another order."""
    tables = {}
    for name in ("iterations", "launches"):
        frame = getattr(source, name)
        order = list(range(frame.height))
        random.shuffle(order)
        tables[name] = frame[order]
    return replace(source, **tables)
