"""One rule for the commonest value, wherever a report or a diff speaks of it."""

from __future__ import annotations

import re

import polars as pl
import pytest

from moeprof.analyzers.classify import load_classifier
from moeprof.analyzers.commonest import commonest, commonest_of
from moeprof.analyzers.comparison.compare import compare
from moeprof.analyzers.completeness import counts_over
from moeprof.analyzers.counts import counts_findings
from moeprof.analyzers.iterations import attribute
from moeprof.analyzers.quality import quality_findings
from moeprof.analyzers.tables import KIND
from tests.builders import Event, graph_launch, kernel, launch, marker, rank
from tests.unit.analyzers import reports

NORM = "rms_norm_kernel"
DECODE = "execute_context_0(0)_generation_8(32)"


def eager(iteration: int, launches: int) -> list[Event]:
    """One decode iteration of 1000 us with so many launches of one kernel."""
    begin, first = 1000 * iteration, 100 * iteration
    calls = [launch(begin + n, 0.5, correlation=first + n) for n in range(launches)]
    rows = [kernel(NORM, begin + 100 + 2 * n, 1, correlation=first + n) for n in range(launches)]
    return [marker(DECODE, begin, 500), *calls, *rows]


def replay(iteration: int, kernels: int) -> list[Event]:
    """One decode iteration that replays one graph of so many kernels."""
    begin = 1000 * iteration
    rows = [kernel(NORM, begin + 100 + 2 * n, 1, correlation=iteration + 1) for n in range(kernels)]
    return [marker(DECODE, begin, 500), graph_launch(begin + 1, correlation=iteration + 1), *rows]


@pytest.mark.parametrize("order", [(12, 12, 10, 10), (10, 10, 12, 12), (12, 10, 12, 10)])
def test_counts_and_deviating_iterations_speak_of_the_same_commonest_value(order: tuple[int, ...]) -> None:
    # GIVEN iterations of which as many launch 10 kernels as 12
    events = [event for n, launches in enumerate(order) for event in eager(n, launches)]
    trace = rank(events)
    attribution = attribute(trace, classifier=load_classifier())
    # WHEN both rules speak
    (constant,) = counts_findings(attribution)
    (deviates,) = [found for found in quality_findings(trace, attribution) if found.slug == "iteration-deviates"]
    # THEN they name the same value, and the iterations of the other
    assert constant.evidence["commonest"] == deviates.evidence["usual_kernels"] == 10
    named = [int(number) for number in re.findall(r"iteration (\d+) has 12", deviates.message)]
    assert named == [number for number, launches in enumerate(order) if launches == 12]


def test_graph_replays_are_held_against_the_same_commonest_value() -> None:
    # GIVEN four replays at one place, two of 12 kernels first and two of 10 kernels
    trace = rank([event for n, kernels in enumerate((12, 12, 10, 10)) for event in replay(n, kernels)])
    # WHEN they are held against each other
    found = quality_findings(trace, attribute(trace, classifier=load_classifier()))
    (differs,) = [one for one in found if one.slug == "graph-replay-differs"]
    # THEN those of 12 differ
    assert isinstance(cases := differs.evidence["cases"], list)
    assert [(case["iteration"], case["usual"]) for case in cases if isinstance(case, dict)] == [(0, 10), (1, 10)]


@pytest.mark.parametrize("values", [[12, 12, 10, 10], [1, 2, 2, 3, 3, 9], [5], [0, 0, 4, 4, 9], [7, 3]])
def test_the_table_and_the_list_give_the_same(values: list[int]) -> None:
    # GIVEN values, as rows of a table and as a list WHEN both are asked THEN they agree
    table = pl.DataFrame({"group": ["a"] * len(values), "value": values})
    assert commonest(table, ["group"], len(values))["commonest"].to_list() == [commonest_of(values)]
    assert commonest(table, ["group"], None)["commonest"].to_list() == [commonest_of(values)]


def test_a_tie_of_kinds_has_one_order() -> None:
    # GIVEN as many mixed iterations as prefill ones, and as many ranks that count over either
    kinds = pl.DataFrame({"kind": ["mixed", "prefill"], "partial": [False, False]}).with_columns(
        pl.col("kind").cast(KIND)
    )
    norm = reports.Kernel(NORM, "norm", 3)
    ranks = [reports.rank([norm], key=f"rank{n}", counts_over=kind) for n, kind in enumerate(("mixed", "prefill"))]
    # WHEN a rank and a side choose THEN both take the first in the order of the tables
    assert counts_over(kinds) == "prefill"
    result = compare(reports.report(*ranks), reports.report(ranks[1]))
    assert [one.evidence["ranks"] for one in result.findings if one.slug == "ranks-left-out"] == [["rank0"]]
