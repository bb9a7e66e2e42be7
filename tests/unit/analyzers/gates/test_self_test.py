"""The self-test sees each fault, and says so when the data are too poor for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moeprof.analyzers.gates.observation import Observation
from moeprof.analyzers.gates.rules import GateRules
from moeprof.analyzers.gates.self_test import self_test

from .observations import passes, run

WORDS = ("regression", "structure", "missing", "gate")


def test_every_fault_of_a_good_run_is_seen() -> None:
    # GIVEN a run with structure, passes and an evaluation WHEN it is broken in every way THEN each is seen, and the whole copy passes
    result = self_test(run(), GateRules(), WORDS)
    assert [trial for trial in result.trials if trial.caught is not trial.must_fire] == []
    names = " | ".join(trial.fault for trial in result.trials)
    for wanted in (
        "per layer",
        "lost",
        "another backend",
        "twice as many drafts",
        "worse by 10 %",
        "vanished",
        "a rank is missing",
        "halved",
    ):
        assert wanted in names
    # AND the least worsening that fires is not below the threshold
    assert all(reach.least is not None and reach.least >= reach.threshold - 0.001 for reach in result.reach)


def test_a_fault_that_nobody_fails_on_is_missed() -> None:
    # GIVEN a gate that does not fail on structure WHEN it is tested THEN faults of structure are missed
    result = self_test(run(), GateRules(), ("regression", "missing", "gate"))
    assert any("per layer" in trial.fault for trial in result.missed)


@pytest.mark.parametrize("n", [1, 2])
def test_too_few_passes_are_told(n: int) -> None:
    # GIVEN a baseline of one or two passes WHEN it is tested THEN a slower metric cannot be seen
    result = self_test(Observation("a", "a", samples=passes(n=n)), GateRules(), WORDS)
    assert [reach.least for reach in result.reach] == [None, None, None]
    assert len(result.missed) == 3


def test_rules_that_allow_anything_miss_a_fault() -> None:
    # GIVEN rules that let every count pass WHEN they are tested THEN the self-test shows it
    rules = GateRules(structure={"*": None, "pairs/*": None, "backend/*": None})
    assert self_test(replace(run(), samples=None), rules, WORDS).missed
