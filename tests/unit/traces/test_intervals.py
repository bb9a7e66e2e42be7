"""Unions and differences of intervals."""

from __future__ import annotations

import polars as pl
import pytest

from moeprof.traces.intervals import difference_length, merge, union_length


def _frame(*rows: tuple[int | None, int, int]) -> pl.DataFrame:
    schema = {"device": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


@pytest.mark.parametrize(
    ("intervals", "length"),
    [
        pytest.param([(0, 10), (20, 25)], 15, id="disjoint"),
        pytest.param([(0, 10), (4, 12)], 12, id="overlapping"),
        pytest.param([(0, 10), (10, 15)], 15, id="touching"),
        pytest.param([(0, 100), (10, 20), (30, 40)], 100, id="nested in an earlier one"),
        pytest.param([(5, 5)], 0, id="of no length alone"),
        pytest.param([(0, 10), (10, 10), (12, 12)], 10, id="of no length beside another"),
        pytest.param([(30, 40), (0, 10), (5, 7)], 20, id="unsorted"),
        pytest.param([(0, 10), (0, 10)], 10, id="equal"),
        pytest.param([(-20, -5), (-10, 3)], 23, id="before zero"),
        pytest.param([(0, 10), (8, 3)], 10, id="of negative length"),
    ],
)
def test_union_length_measures_what_is_covered(intervals: list[tuple[int, int]], length: int) -> None:
    # GIVEN intervals of one device
    frame = _frame(*((0, start, end) for start, end in intervals))
    # WHEN their union is measured
    measured = union_length(frame, ["device"])
    # THEN each covered ns counts once
    assert measured.rows() == [(0, length)]


def test_union_length_keeps_groups_apart() -> None:
    # GIVEN the same interval on two devices, and one whose device is unknown
    frame = _frame((1, 0, 10), (0, 0, 10), (0, 5, 12), (None, 3, 4))
    # WHEN the union is measured per device
    measured = union_length(frame, ["device"])
    # THEN the devices do not hide each other, and the unknown one is a group of its own
    assert measured.rows() == [(None, 1), (0, 12), (1, 10)]


def test_union_length_without_groups_takes_all_rows_together() -> None:
    # GIVEN overlapping intervals on two devices
    frame = _frame((0, 0, 10), (1, 5, 12))
    # WHEN no group is named
    measured = union_length(frame)
    # THEN there is one row for all of them
    assert measured.rows() == [(12,)]
    assert measured.columns == ["length_ns"]


def test_merge_joins_overlapping_and_touching_intervals() -> None:
    # GIVEN intervals that overlap, touch, and lie apart, on two devices
    frame = _frame((0, 20, 30), (0, 0, 5), (0, 5, 9), (0, 22, 24), (1, 7, 9), (0, 9, 9), (0, 15, 15))
    # WHEN they are merged
    merged = merge(frame, ["device"])
    # THEN disjoint intervals of positive length remain, sorted
    assert merged.rows() == [(0, 0, 9), (0, 20, 30), (1, 7, 9)]


def test_difference_length_takes_away_the_other_union() -> None:
    # GIVEN communication with computation inside it, at its border, and on another device
    communication = _frame((0, 0, 100), (0, 90, 120), (1, 0, 50))
    computation = _frame((0, 10, 20), (0, 15, 30), (0, 110, 500), (2, 0, 1000))
    # WHEN what is not covered is measured
    exposed = difference_length(communication, computation, ["device"])
    # THEN 120 - 20 - 10 remain on device 0, all on device 1, and device 2 has no row
    assert exposed.rows() == [(0, 90), (1, 50)]


def test_difference_length_of_a_group_that_is_wholly_covered_is_zero() -> None:
    # GIVEN an interval inside another, in a group without a name
    inside, outside = _frame((None, 5, 6)), _frame((None, 0, 10))
    # WHEN the difference is measured per device
    rest = difference_length(inside, outside, ["device"])
    # THEN nothing remains, and the group keeps its row
    assert rest.rows() == [(None, 0)]


def test_empty_frames_give_no_rows() -> None:
    # GIVEN no interval
    frame = _frame()
    # WHEN anything is computed, with and without groups
    results = [merge(frame, ["device"]), union_length(frame, ["device"]), difference_length(frame, frame, ["device"])]
    results += [merge(frame), union_length(frame), difference_length(frame, frame)]
    # THEN there are columns and no rows
    assert [result.height for result in results] == [0] * 6
    assert [result.columns for result in results[:2]] == [["device", "start_ns", "end_ns"], ["device", "length_ns"]]


def test_difference_length_from_nothing_is_the_union() -> None:
    # GIVEN intervals, and nothing to take away
    frame = _frame((0, 0, 10), (0, 5, 15))
    # WHEN the difference is measured without groups
    rest = difference_length(frame, _frame())
    # THEN it is the union
    assert rest.rows() == [(15,)]
