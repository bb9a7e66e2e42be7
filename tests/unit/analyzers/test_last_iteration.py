"""The last iteration of a window: cut, or whole with fewer launches."""

from __future__ import annotations

import pytest

from moeprof.analyzers.classify import load_classifier
from moeprof.analyzers.iterations import attribute
from tests.builders import Event, cpu_op, marker, rank

MATMUL = "aten::mm"


def step(number: int, start: int, *, operators: int, sample_end: int = 90, idle: bool = False) -> list[Event]:
    """Return one engine step of 100 us with our markers; its operators lie in its phase."""
    label, phase = (
        (f"moeprof.iter#{number}[idle]", "moeprof.target") if idle else (f"moeprof.iter#{number}", "moeprof.sample")
    )
    return [
        marker(label, start, 100),
        marker(phase, start + 10, sample_end - 10),
        *(cpu_op(MATMUL, start + 20 + 2 * n, 1) for n in range(operators)),
    ]


def partial(events: list[Event]) -> list[bool]:
    """Return which iterations are partial."""
    found: list[bool] = attribute(rank(events), classifier=load_classifier()).iterations["partial"].to_list()
    return found


@pytest.mark.parametrize("idle", [False, True], ids=["sampled", "idle"])
def test_a_step_that_ended_is_whole_with_fewer_launches(idle: bool) -> None:
    # GIVEN steps whose number of operators varies, the last with the fewest, each closed after its last phase
    events = [
        event
        for number, operators in enumerate((5, 6, 4))
        for event in step(number, 1000 + 200 * number, operators=operators, idle=idle)
    ]
    # WHEN iterations are cut out THEN none is partial
    assert partial(events) == [False, False, False]


def test_a_step_in_which_the_profiler_stopped_is_partial() -> None:
    # GIVEN a last step whose ranges all end at one instant: the profiler closed them
    events = [
        event
        for number, (operators, end) in enumerate(((5, 90), (6, 90), (4, 100)))
        for event in step(number, 1000 + 200 * number, operators=operators, sample_end=end)
    ]
    # WHEN iterations are cut out THEN the last is partial
    assert partial(events) == [False, False, True]


def test_a_step_without_its_last_phase_is_partial() -> None:
    # GIVEN a last step that was closed before sampling
    events = [event for number in range(2) for event in step(number, 1000 + 200 * number, operators=5)]
    events += [marker("moeprof.iter#2", 1400, 100), marker("moeprof.target", 1410, 20), cpu_op(MATMUL, 1412, 1)]
    events += [marker("execute_context_0(0)_generation_4(16)", 1001 + 200 * number, 5) for number in range(3)]
    # WHEN iterations are cut out THEN the last is partial
    assert partial(events) == [False, False, True]


def test_vllms_markers_still_tell_a_cut_by_fewer_launches() -> None:
    # GIVEN vLLM's markers, which end before sampling
    events = []
    for number, operators in enumerate((5, 6, 4)):
        start = 1000 + 200 * number
        events += [marker("execute_context_0(0)_generation_4(16)", start, 50)]
        events += [cpu_op(MATMUL, start + 60 + 2 * n, 1) for n in range(operators)]
    # WHEN iterations are cut out THEN the last, with the fewest launches, is partial
    assert partial(events) == [False, False, True]
