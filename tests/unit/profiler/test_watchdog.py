"""The decision of the watchdog, with a clock of the test's own."""

from __future__ import annotations

from moeprof.profiler.metrics import Progress
from moeprof.profiler.watchdog import Look, Verdict, Watch, judge


def verdicts(*looks: tuple[float, Progress | None], stall_s: float = 10.0, gap_s: float = 5.0) -> list[Verdict]:
    """Return the verdict of each look at a living server."""
    watch = Watch(stall_s, gap_s)
    result = []
    for at_s, progress in looks:
        watch, verdict = judge(watch, Look(at_s, True, progress))
        result.append(verdict)
    return result


def at(tokens: int | None, *, running: int | None = 1, waiting: int = 0, steps: int | None = None) -> Progress:
    """Return the progress of a server with some requests."""
    return Progress(running, waiting, tokens, steps)


def test_no_token_for_the_limit_is_a_stall() -> None:
    # GIVEN the same count at 0, 5, 9 and 10 s with a limit of 10 s THEN the last look is a stall, and none before
    assert verdicts((0, at(7)), (5, at(7)), (9, at(7)), (10, at(7))) == ["fine", "fine", "fine", "stalled"]


def test_one_token_resets() -> None:
    # GIVEN one new token at 9 s THEN the stall comes 10 s after it
    looks = [(0.0, at(7)), (5.0, at(7)), (9.0, at(8)), (14.0, at(8)), (18.0, at(8)), (19.0, at(8))]
    assert verdicts(*looks) == ["fine"] * 5 + ["stalled"]


def test_a_long_prefill_is_progress() -> None:
    # GIVEN no token but one more engine step at each look THEN it is slow, not stalled
    assert verdicts(*((5.0 * n, at(7, steps=n)) for n in range(9))) == ["fine"] * 9


def test_an_idle_server_does_not_stall() -> None:
    # GIVEN no requests for a long time, then one THEN the limit runs from its arrival
    looks = [(5.0 * n, at(7, running=0)) for n in range(5)] + [(25.0, at(7)), (29.0, at(7)), (30.0, at(7))]
    assert verdicts(*looks) == ["fine"] * 7 + ["stalled"]


def test_requests_that_only_wait_count() -> None:
    # GIVEN a queue that nobody works on THEN that is a stall
    assert (
        verdicts((0, at(7, running=0, waiting=3)), (5, at(7, running=0, waiting=3)), (10, at(7, running=0, waiting=3)))[
            -1
        ]
        == "stalled"
    )


def test_a_server_that_does_not_answer_makes_no_progress() -> None:
    # GIVEN a living server that stops answering after its first token, with an answer of the same count in between
    # THEN the time without an answer counts as without progress
    assert verdicts((0, at(7)), (4, None), (8, at(7)), (10, None)) == ["fine", "fine", "fine", "stalled"]


def test_an_answer_with_a_new_token_ends_the_silence() -> None:
    # GIVEN silence for 9 s and then one more token THEN nothing is wrong
    assert verdicts((0, at(7)), (5, None), (9, None), (12, at(8)), (16, at(8))) == ["fine"] * 5


def test_metrics_that_do_not_say_prove_nothing() -> None:
    # GIVEN requests and no counter at all THEN there is no verdict of a stall
    assert verdicts(*((5.0 * n, at(None)) for n in range(9))) == ["fine"] * 9


def test_a_machine_that_slept_proves_nothing() -> None:
    # GIVEN an hour between two looks THEN it counts as no more than the gap
    assert verdicts((0, at(7)), (3600, at(7)), (3604, at(7)), (3605, at(7))) == ["fine", "fine", "fine", "stalled"]


def test_a_counter_that_falls_is_a_change() -> None:
    # GIVEN an engine that was counted anew THEN that is no stall
    assert verdicts((0, at(7)), (5, at(7)), (10, at(2)), (15, at(2))) == ["fine"] * 4


def test_a_dead_process_is_told_from_a_stall() -> None:
    # GIVEN a server that is quiet past the limit and no longer alive WHEN it is looked at THEN it died
    watch, _ = judge(Watch(10.0, 5.0, quiet_s=100.0), Look(0.0, True, None))
    assert judge(watch, Look(1.0, False, None))[1] == "died"
