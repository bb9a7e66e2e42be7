"""Properties of unions: they agree with counting single ns, and do not depend on the order of rows."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

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


@given(_ROWS)
def test_union_length_counts_each_covered_ns_once(rows: list[Row]) -> None:
    # GIVEN any intervals
    # WHEN their union is measured
    measured = dict(union_length(_frame(rows), ["device"]).iter_rows())
    # THEN it is the number of ns that at least one of them covers
    assert measured == {device: len(points) for device, points in _covered(rows).items()}


@given(_ROWS)
def test_merge_is_disjoint_and_covers_the_same(rows: list[Row]) -> None:
    # GIVEN any intervals
    # WHEN they are merged
    merged = merge(_frame(rows), ["device"])
    # THEN the same ns are covered, and a gap lies between neighbours
    assert {device: points for device, points in _covered(rows).items() if points} == _covered(merged.rows())
    gaps = merged.select((pl.col("start_ns") - pl.col("end_ns").shift(1)).over("device")).to_series().drop_nulls()
    assert (gaps > 0).all()


@given(_ROWS, _ROWS)
def test_difference_length_counts_what_only_the_first_covers(first: list[Row], second: list[Row]) -> None:
    # GIVEN any two sets of intervals
    # WHEN the second is taken away from the first
    measured = dict(difference_length(_frame(first), _frame(second), ["device"]).iter_rows())
    # THEN it is the number of ns that the first covers and the second does not
    away = _covered(second)
    assert measured == {device: len(points - away.get(device, set())) for device, points in _covered(first).items()}


@given(_ROWS.flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))))
def test_order_of_rows_is_irrelevant(pair: tuple[list[Row], list[Row]]) -> None:
    # GIVEN the same intervals in two orders
    rows, shuffled = pair
    # WHEN both are merged
    # THEN the results are equal
    assert merge(_frame(rows), ["device"]).equals(merge(_frame(shuffled), ["device"]))
