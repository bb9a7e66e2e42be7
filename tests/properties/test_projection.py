"""The projection of ranges against the rule written out."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moeprof.analyzers.projection import PROJECTED, project
from moeprof.traces import schema
from moeprof.traces.open import open_trace
from moeprof.traces.trace import RankTrace
from tests.nsys_files import PROCESS, THREAD, write_tables

TIME = st.integers(0, 40)
CALLS = st.lists(st.tuples(TIME, st.integers(0, 6), st.integers(0, 1)), max_size=8)
RANGES = st.lists(st.tuples(TIME, st.none() | st.integers(0, 30), st.integers(0, 1)), max_size=8)
KERNELS = st.lists(st.tuples(st.integers(50, 90), st.integers(1, 9), st.integers(0, 9)), max_size=12)


def opened(calls: list[Any], ranges: list[Any], kernels: list[Any]) -> RankTrace:
    tables: dict[str, list[Any]] = {
        "StringIds": [(1, "cudaLaunchKernel"), (2, "k")],
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            (at, at + long, 0, 7, ident, PROCESS, 2, 2, None) for at, long, ident in kernels
        ],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            (at, at + long, 0, THREAD + thread, ident, 1, 0) for ident, (at, long, thread) in enumerate(calls)
        ],
        "NVTX_EVENTS": [
            (at, None if long is None else at + long, 59, f"r{i}", THREAD + thread, None, None, 0)
            for i, (at, long, thread) in enumerate(ranges)
        ],
    }
    with tempfile.TemporaryDirectory() as folder:
        (rank,) = open_trace(write_tables(Path(folder) / "a.sqlite", tables))
    return rank


@settings(max_examples=150, deadline=None)
@given(calls=CALLS, ranges=RANGES, kernels=KERNELS)
def test_a_range_owns_the_rows_of_the_calls_inside_it(calls: list[Any], ranges: list[Any], kernels: list[Any]) -> None:
    # GIVEN any calls, ranges (some never closed) and kernels, with equal times among them
    rank = opened(calls, ranges, kernels)
    # WHEN the ranges are projected
    found = project(rank)
    assert schema.conforms(found, PROJECTED)
    # THEN each spans the kernels whose calls lie in it, on its thread
    expected = {}
    for number, (at, long, thread) in enumerate(ranges):
        inside = {
            ident
            for ident, (start, lasts, on) in enumerate(calls)
            if on == thread and at <= start and (long is None or start + lasts <= at + long)
        }
        own = [(start, start + lasts, ident) for start, lasts, ident in kernels if ident in inside]
        if own:
            span = (min(start for start, _, _ in own), max(end for _, end, _ in own))
            expected[f"r{number}"] = (*span, len({ident for _, _, ident in own}), len(own))
    columns = ("start_ns", "end_ns", "operations", "kernels")
    assert {row["name"]: tuple(row[name] for name in columns) for row in found.to_dicts()} == expected
