"""Timelines of simulated ranks, whose truth is known by construction."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
import polars as pl
from hypothesis import HealthCheck, Phase, assume, given, settings

from moeprof.analyzers.classify import load_classifier
from moeprof.analyzers.collectives.compare import compare_ranks
from moeprof.analyzers.iterations import attribute
from moeprof.analyzers.timeline.summary import rank_timeline
from moeprof.analyzers.timeline.tables import BOUNDS, STATES
from moeprof.traces.trace import Trace
from tests.simulator.kineto import simulated
from tests.simulator.program import (
    COPY,
    DENSE,
    EXPERT,
    GATHER,
    MAIN,
    SCATTER,
    SIDE,
    SMALL,
    Collective,
    Depend,
    Host,
    Launch,
    Replay,
    Step,
    Sync,
    Talk,
)
from tests.simulator.run import DISPATCH_NS, RankRun, run
from tests.simulator.truth import states, windows

_LENGTH = st.integers(11, 400).map(lambda tens: tens * 100 + 7)
_STREAM = st.sampled_from([MAIN, SIDE])
_LOCAL: st.SearchStrategy[Step] = st.one_of(
    st.builds(Host, _LENGTH),
    st.builds(Talk, _LENGTH),
    st.builds(Launch, st.sampled_from([DENSE, EXPERT, SMALL, COPY]), _LENGTH, _STREAM),
    st.builds(Launch, st.just(SMALL), _LENGTH, st.just(MAIN), st.sampled_from([0, 300, 900])),
    st.builds(
        Replay,
        st.lists(
            st.lists(st.tuples(st.sampled_from([DENSE, EXPERT, SMALL]), _LENGTH), min_size=1, max_size=2).map(tuple),
            min_size=1,
            max_size=4,
        ).map(tuple),
    ),
    st.just(Depend(MAIN, SIDE)),
    st.just(Depend(SIDE, MAIN)),
    st.builds(Sync, _STREAM),
)
_SHARED: st.SearchStrategy[Step] = st.builds(Collective, st.sampled_from([GATHER, SCATTER]), _LENGTH, _STREAM)


@st.composite
def programs(draw: st.DrawFn) -> dict[str, list[list[Step]]]:
    """Draw programs of two ranks that hold the same collectives, with other work between them."""
    made: dict[str, list[list[Step]]] = {"rank0": [], "rank1": []}
    for _ in range(draw(st.integers(2, 4))):
        shared = draw(st.lists(_SHARED, max_size=3))
        for steps in made.values():
            own: list[Step] = [*draw(st.lists(_LOCAL, max_size=4)), Host(10_000)]
            for step in shared:
                own += [step, *draw(st.lists(_LOCAL, max_size=3))]
            steps.append([*own, Launch(SMALL, 1500)])
    return made


def close_calls(one: RankRun) -> bool:
    """Tell whether two ends lie so close to a start that what it waited for is a matter of taste."""
    rows = sorted(one.rows, key=lambda row: row.start_ns)
    for index, row in enumerate(rows):
        near = [other for other in rows[:index] if row.start_ns - 2 * DISPATCH_NS <= other.end_ns <= row.start_ns]
        if len(near) > 1 or (len({other.start_ns for other in rows}) < len(rows) and not row.is_graph):
            return True
    return False


def timelines(trace: Trace) -> dict[str | None, pl.DataFrame]:
    """Return the table of iterations of each rank."""
    ranks = {rank.key or "": (rank, attribute(rank, classifier=load_classifier(None))) for rank in trace}
    _, waits = compare_ranks(ranks)
    found: dict[str | None, pl.DataFrame] = {}
    for key, (rank, attribution) in ranks.items():
        tables = rank_timeline(rank, attribution, waits.get(key)).tables
        assert tables is not None
        found[key] = tables.per_iteration
    return found


def communication(one: RankRun, begin: int, end: int) -> int:
    """Return how long communication runs within a window."""
    spans = sorted((row.start_ns, row.end_ns) for row in one.rows if row.name.startswith("nccl"))
    total, reached = 0, begin
    for start, stop in spans:
        left, right = max(start, reached), min(stop, end)
        total += max(0, right - left)
        reached = max(reached, right)
    return total


@settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(programs())
def test_every_instant_has_its_true_state(made: dict[str, list[list[Step]]]) -> None:
    # GIVEN two simulated ranks
    runs = run(made)
    assume(not any(close_calls(one) for one in runs.values()))
    # WHEN their traces are analyzed
    found = timelines(simulated(runs))
    # THEN each state has the time that the simulator knows it to have
    for rank, one in runs.items():
        truth = states(one)
        for index, row in enumerate(found[rank].iter_rows(named=True)):
            told = Counter({state: row[f"{state}_ns"] for state in STATES if row[f"{state}_ns"]})
            expected = Counter({state: truth[index][state] for state in STATES if truth[index][state]})
            assert told == expected, (rank, index)
            assert row["overlapped_ns"] == truth[index]["overlapped"]


@settings(
    max_examples=20,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(programs(), st.integers(-900_000, 5_000_000))
def test_parts_add_up(made: dict[str, list[list[Step]]], clock: int) -> None:
    # GIVEN any simulated ranks, with clocks that differ
    runs = run(made)
    trace = simulated(runs, clocks={"rank1": clock})
    # WHEN they are analyzed
    found = timelines(trace)
    for rank, one in runs.items():
        table = found[rank]
        # THEN states and bounds are partitions of the wall time, to the ns
        walls = [end - begin for begin, end in windows(one)]
        assert table["wall_ns"].to_list() == walls
        for names in ([f"{state}_ns" for state in STATES], [f"bound_{bound}_ns" for bound in BOUNDS]):
            assert table.select(pl.sum_horizontal(names)).to_series().to_list() == walls
        # AND waits are part of the exposed communication
        assert (table["wait_ns"] <= table["communication_ns"]).all()
        # AND exposed and overlapped communication are all communication of the windows
        told = states(one)
        exposed, covered = table["communication_ns"].to_list(), table["overlapped_ns"].to_list()
        assert [sum(pair) for pair in zip(exposed, covered, strict=True)] == [
            communication(one, *w) for w in windows(one)
        ]
        assert exposed == [each["communication"] for each in told]
