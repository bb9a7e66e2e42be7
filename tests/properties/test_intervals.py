"""Properties of unions: they agree with counting single ns, and do not depend on the order of rows."""

from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from moeprof.analyzers.tables import ATTRIBUTED
from moeprof.analyzers.times import time_totals
from moeprof.traces.intervals import difference_length, merge, union_length

Row = tuple[int, int, int]

_ROW = st.tuples(st.integers(0, 2), st.integers(-30, 30), st.integers(0, 12)).map(lambda r: (r[0], r[1], r[1] + r[2]))
_ROWS = st.lists(_ROW, max_size=25)


def _frame(rows: list[Row]) -> pl.DataFrame:
    schema = {"device": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _covered(rows: list[Row]) -> dict[int, set[int]]:
    covered: dict[int, set[int]] = {device: set() for device, _, _ in rows}
    for device, start, end in rows:
        covered[device].update(range(start, end))
    return covered


@settings(deadline=None)
@given(_ROWS)
def test_union_length_counts_each_covered_ns_once(rows: list[Row]) -> None:
    # GIVEN any intervals
    # WHEN their union is measured
    measured = dict(union_length(_frame(rows), ["device"]).iter_rows())
    # THEN it is the number of ns that at least one of them covers
    assert measured == {device: len(points) for device, points in _covered(rows).items()}


@settings(deadline=None)
@given(_ROWS)
def test_merge_is_disjoint_and_covers_the_same(rows: list[Row]) -> None:
    # GIVEN any intervals
    # WHEN they are merged
    merged = merge(_frame(rows), ["device"])
    # THEN the same ns are covered, and a gap lies between neighbours
    assert {device: points for device, points in _covered(rows).items() if points} == _covered(merged.rows())
    gaps = merged.select((pl.col("start_ns") - pl.col("end_ns").shift(1)).over("device")).to_series().drop_nulls()
    assert (gaps > 0).all()


@settings(deadline=None)
@given(_ROWS, _ROWS)
def test_difference_length_counts_what_only_the_first_covers(first: list[Row], second: list[Row]) -> None:
    # GIVEN any two sets of intervals
    # WHEN the second is taken away from the first
    measured = dict(difference_length(_frame(first), _frame(second), ["device"]).iter_rows())
    # THEN it is the number of ns that the first covers and the second does not
    away = _covered(second)
    assert measured == {device: len(points - away.get(device, set())) for device, points in _covered(first).items()}


@settings(deadline=None)
@given(_ROWS.flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))))
def test_order_of_rows_is_irrelevant(pair: tuple[list[Row], list[Row]]) -> None:
    # GIVEN the same intervals in two orders
    rows, shuffled = pair
    # WHEN both are merged
    # THEN the results are equal
    assert merge(_frame(rows), ["device"]).equals(merge(_frame(shuffled), ["device"]))


_KINDS = st.sampled_from([("kernel", "moe_gemm"), ("kernel", "all_gather"), ("memcpy", "memcpy")])


@settings(deadline=None)
@given(st.lists(st.tuples(_ROW, _KINDS), min_size=1, max_size=25))
def test_times_of_any_rows_keep_their_order(rows: list[tuple[Row, tuple[str, str]]]) -> None:
    # GIVEN any kernels and copies on some devices
    launches = pl.DataFrame(
        [
            {
                **dict.fromkeys(ATTRIBUTED),
                "event": number,
                "name": "k",
                "class": name,
                "gemms": 0,
                "activity": activity,
                "device": device,
                "start_ns": start,
                "end_ns": end,
                "duration_ns": end - start,
            }
            for number, ((device, start, end), (activity, name)) in enumerate(rows)
        ],
        schema=ATTRIBUTED,
    )
    # WHEN totals are taken
    totals = time_totals(launches)
    # THEN sum >= busy, a union is no longer than the wall of its devices, and exposed is what computation leaves
    assert totals.kernel_sum is not None
    assert totals.kernel_busy is not None
    assert totals.gpu_busy is not None
    assert totals.wall is not None
    assert totals.compute_busy is not None
    assert totals.comm_exposed is not None
    assert totals.kernel_sum >= totals.kernel_busy
    assert totals.kernel_busy <= totals.gpu_busy <= totals.wall * launches["device"].n_unique()
    assert totals.comm_exposed == totals.kernel_busy - totals.compute_busy
