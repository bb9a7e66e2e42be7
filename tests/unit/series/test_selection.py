"""Which runs belong together."""

from __future__ import annotations

from pathlib import Path

from moeprof.series.selection import series
from moeprof.store.manifest import Manifest
from moeprof.store.run import Run


def run(
    name: str, block: int, *, plan: str | None = "aba", fingerprint: str | None = "f", ingested: bool = False
) -> Run:
    extra = {"ingested": True} if ingested else {}
    return Run(Path(name), Manifest("a", block, "", "", plan=plan, fingerprint=fingerprint, extra=extra))


def chosen(runs: list[Run], others: list[Run] | None = None) -> list[str]:
    return [str(item.path) for item in series(runs, others or [])]


def test_runs_of_one_plan_and_fingerprint() -> None:
    # GIVEN a plan that was run twice, the second time half, and an older one of another fingerprint
    runs = [run("old", 0, fingerprint="g"), run("a0", 0), run("a2", 2), run("b0", 0)]
    # THEN the newest run of each block counts
    assert chosen(runs) == ["b0", "a2"]


def test_a_series_that_both_arms_have_comes_first() -> None:
    # GIVEN an arm that was captured alone since THEN the plan with the other arm is taken, else the newest
    runs = [run("a0", 0), run("a2", 2), run("alone", 0, plan=None)]
    assert chosen(runs, [run("b1", 1)]) == ["a0", "a2"]
    assert chosen(runs) == ["alone"]
    assert chosen(runs, [run("x", 0, plan="ab", fingerprint="z")]) == ["alone"]


def test_all_ingested_runs_are_one_series() -> None:
    # GIVEN parts of a block that came one by one THEN all of them count
    runs = [run(str(number), 0, plan=None, fingerprint=None, ingested=True) for number in range(3)]
    assert chosen(runs) == ["0", "1", "2"]
    assert chosen([]) == []
