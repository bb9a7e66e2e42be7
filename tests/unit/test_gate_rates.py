"""The simulation of the default gate rules: small here, with the figures of docs/ci.md from the full one."""

from __future__ import annotations

from benchmarks.gate_rates import PLANS, WORLDS, alarms

REPETITIONS = 150
SIMPLE, ABA, _TWICE, FRESH, STORED = PLANS
CALM, STARTS, DRIFT, _NOISY = WORLDS


def test_equal_seeds_give_equal_rates() -> None:
    # GIVEN one seed WHEN the simulation runs twice THEN the rates are equal
    assert alarms(ABA, CALM, 0.1, 20, 7) == alarms(ABA, CALM, 0.1, 20, 7)


def test_the_return_block_cures_drift() -> None:
    # GIVEN drift and no effect WHEN the base is measured again after the candidate THEN false alarms nearly vanish
    assert alarms(ABA, DRIFT, 0.0, REPETITIONS, 1) <= 0.03
    assert alarms(SIMPLE, DRIFT, 0.0, REPETITIONS, 1) >= 0.08


def test_fresh_starts_cure_offsets() -> None:
    # GIVEN servers that differ from start to start WHEN every pass has its own start THEN false alarms nearly vanish
    assert alarms(FRESH, STARTS, 0.0, REPETITIONS, 1) <= 0.03
    assert alarms(STORED, STARTS, 0.0, REPETITIONS, 1) >= 0.05


def test_a_regression_of_twice_the_threshold_is_seen() -> None:
    # GIVEN calm measurements and a regression of 10 % WHEN gated at 5 % THEN most are seen, and no alarm is false
    for plan in (SIMPLE, ABA, FRESH, STORED):
        assert alarms(plan, CALM, 0.1, REPETITIONS, 1) >= 0.8
        assert alarms(plan, CALM, 0.0, REPETITIONS, 1) <= 0.03
