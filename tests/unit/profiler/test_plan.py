"""Schedules: their blocks, what is missing of them, and what the other arm's newest run says."""

from __future__ import annotations

from pathlib import Path

import pytest

from moeprof.errors import UsageError
from moeprof.profiler.plan import PLANS, PlanName, blocks, missing, newest_kernels
from moeprof.store.run import Run
from tests.unit.store.runs import manifest

FINGERPRINTS = {"base": "f", "mega": "f"}


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ("ab", ["0-base", "1-mega"]),
        ("aba", ["0-base", "1-mega", "2-base"]),
        ("abba", ["0-base", "1-mega", "2-mega", "3-base"]),
    ],
)
def test_the_blocks_of_a_plan(plan: PlanName, expected: list[str]) -> None:
    # WHEN a plan is laid out THEN its blocks are numbered in order, and the letters stand for the arms
    assert [str(block) for block in blocks(plan, "base", "mega")] == expected


def test_every_plan_has_a_candidate_and_a_base() -> None:
    assert {plan: set(plan) for plan in PLANS} == {plan: {"a", "b"} for plan in ("aba", "abba", "ab")}


def test_an_arm_against_itself() -> None:
    # WHEN both arms are the same THEN nothing is planned
    with pytest.raises(UsageError, match=r"^a plan compares two arms, and both are base$"):
        blocks("aba", "base", "base")


def test_what_is_missing() -> None:
    # GIVEN the plan's first block stored
    planned = blocks("aba", "base", "mega")
    done = [manifest("base", 0, plan="aba", fingerprint="f")]
    # WHEN the plan goes on THEN the others are to be done, and none is when all are stored
    assert [str(block) for block in missing(planned, "aba", done, FINGERPRINTS)] == ["1-mega", "2-base"]
    done += [manifest("mega", 1, plan="aba", fingerprint="f"), manifest("base", 2, plan="aba", fingerprint="f")]
    assert missing(planned, "aba", done, FINGERPRINTS) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"plan": "ab"},
        {"plan": None},
        {"fingerprint": "another"},
        {"fingerprint": None},
        {"outcome": "failed", "reason": "r"},
        {"block": 2},
        {"arm": "mega"},
    ],
)
def test_a_run_that_stands_for_no_block(changes: dict[str, object]) -> None:
    # GIVEN a stored run that differs in one thing from the plan's first block
    stored = manifest(**{"arm": "base", "block": 0, "plan": "aba", "fingerprint": "f", **changes})  # type: ignore[arg-type]
    # WHEN the plan goes on THEN that block is not taken for done
    planned = blocks("aba", "base", "mega")
    assert planned[0] in missing(planned, "aba", [stored], FINGERPRINTS)


def run(block: int, kernels: object, **changes: object) -> Run:
    """Return a run of a plan that tells its kernels."""
    values: dict[str, object] = {"plan": "aba", "fingerprint": "f", "extra": {"per_iteration": kernels}}
    return Run(Path(f"runs/base/20261130T203730Z-{block}"), manifest("base", block, **{**values, **changes}))


def test_the_newest_kernels() -> None:
    # GIVEN two runs of a plan THEN the newer one's kernels count, and what is no number does not
    runs = [run(0, {"moe_gemm/target": 84}), run(2, {"moe_gemm/target": 42, "quant/target": None})]
    assert newest_kernels(runs, "aba", "f") == {"moe_gemm/target": 42}


@pytest.mark.parametrize(
    "changes",
    [{"plan": "ab"}, {"fingerprint": "g"}, {"outcome": "failed", "reason": "r"}, {"extra": {}}],
)
def test_kernels_of_a_run_that_does_not_count(changes: dict[str, object]) -> None:
    # GIVEN a newer run of another plan, another configuration, a failed one, or one without kernels
    runs = [run(0, {"moe_gemm/target": 84}), run(2, {"moe_gemm/target": 42}, **changes)]
    # THEN the older one is taken, and without any there is no data
    assert newest_kernels(runs, "aba", "f") == {"moe_gemm/target": 84}
    assert newest_kernels(runs[1:], "aba", "f") is None
