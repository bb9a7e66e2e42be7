from __future__ import annotations

import pytest

from moeprof.traces.trace import RankTrace
from tests.builders import Event, cpu_op, event, marker, rank


def spans(found: RankTrace) -> list[tuple[object, ...]]:
    return found.markers.select("name", "start_ns", "end_ns").rows()


def mark(ph: str, name: str | None, ts: int, tid: int = 1) -> Event:
    made = event("user_annotation", name or "", ts, None, pid=1, tid=tid, ph=ph)
    return made if name else {key: value for key, value in made.items() if key != "name"}


def test_annotations_by_start_then_event() -> None:
    found = rank([marker("b", 5, 1), marker("c", 5, 2), marker("a", 1, 10)])
    assert spans(found) == [("a", 1_000, 11_000), ("b", 5_000, 6_000), ("c", 5_000, 7_000)]
    assert found.markers["marker"].to_list() == [0, 1, 2]


def test_annotations_of_the_gpu_are_no_markers() -> None:
    gpu = event("gpu_user_annotation", "ProfilerStep#3", 1, 5, pid=0, tid=7)
    assert spans(rank([gpu])) == []


@pytest.mark.parametrize("category", ["cpu_op", "Operator", "python_op", "user_annotation"])
def test_profiler_steps_count_in_any_host_category(category: str) -> None:
    step = event(category, "ProfilerStep#3", 1, 5, pid=1, tid=1)
    assert spans(rank([step, cpu_op("ProfilerStep", 1, 5), cpu_op("aten::mm", 1, 2)])) == [
        ("ProfilerStep#3", 1_000, 6_000)
    ]


def test_begin_and_end_events_match_as_a_stack() -> None:
    # GIVEN a nested pair; the E events carry no name
    found = rank([mark("B", "outer", 1), mark("B", "inner", 2), mark("E", None, 4), mark("E", None, 9)])
    assert spans(found) == [("outer", 1_000, 9_000), ("inner", 2_000, 4_000)]


def test_pairs_match_per_track_and_by_time_not_by_file_order() -> None:
    # GIVEN two threads, interleaved and written backwards
    found = rank([mark("E", None, 9, tid=2), mark("E", None, 5), mark("B", "two", 3, tid=2), mark("B", "one", 1)])
    assert spans(found) == [("one", 1_000, 5_000), ("two", 3_000, 9_000)]


def test_a_begin_without_end_stays_open() -> None:
    found = rank([mark("B", "open", 1), mark("B", "closed", 2), mark("E", None, 4)])
    assert spans(found) == [("open", 1_000, None), ("closed", 2_000, 4_000)]


def test_an_end_without_begin_closes_nothing() -> None:
    # GIVEN stray E events before and between whole pairs
    found = rank(
        [
            mark("E", None, 1),
            mark("B", "a", 2),
            mark("E", None, 3),
            mark("E", None, 4),
            mark("B", "b", 5),
            mark("E", None, 6),
        ]
    )
    assert spans(found) == [("a", 2_000, 3_000), ("b", 5_000, 6_000)]


def test_identical_duplicates_count_once() -> None:
    # GIVEN the same span twice, and spans that differ in one thing
    found = rank([marker("m", 1, 5), marker("m", 1, 5), marker("m", 1, 6), marker("m", 1, 5, tid=2), marker("n", 1, 5)])
    assert found.markers.height == 4


def test_annotations_with_impossible_durations_have_no_end() -> None:
    assert spans(rank([marker("m", 5, -2), marker("n", 6, None)])) == [("m", 5_000, None), ("n", 6_000, None)]
