"""Environments of two arms, key by key."""

from __future__ import annotations

import pytest

from moeprof.analyzers.environment.compare import compare_environment
from moeprof.analyzers.environment.results import EnvironmentRow, RunRecord
from moeprof.findings import JsonValue

_FACTS: dict[str, JsonValue] = {
    "versions.vllm": "0.26.0",
    "git.revision": "abc",
    "hardware.gpus": "8 x NVIDIA H200",
    "hardware.host": "one",
    "workload.seed": 0,
    "flags.seed": "0",
    "flags.port": "8000",
    "clocks.sm_mhz": 1980.0,
}


def record(
    block: int = 0,
    changes: dict[str, JsonValue] | None = None,
    *,
    own: frozenset[str] | None = None,
    fingerprint: str | None = None,
) -> RunRecord:
    """Return a run with some keys changed; None removes one."""
    facts = {key: value for key, value in {**_FACTS, **(changes or {})}.items() if value is not None}
    return RunRecord(f"arm/{block}", block, facts, commanded=True, own=own, fingerprint=fingerprint)


def keys(rows: tuple[EnvironmentRow, ...]) -> list[tuple[str, bool]]:
    """Return what differs and whether it matters."""
    return [(row.key, row.matters) for row in rows]


def test_equal_environments_have_no_rows() -> None:
    # GIVEN two equal runs WHEN compared THEN nothing differs and nothing is said
    found = compare_environment([record()], [record(1)])
    assert (found.rows, found.findings, found.obstacle) == ((), (), None)


def test_what_differs_and_matters_is_an_obstacle() -> None:
    # GIVEN arms of another version, host and port WHEN compared
    found = compare_environment(
        [record()], [record(1, {"versions.vllm": "0.27.0", "hardware.host": "two", "flags.port": "9000"})]
    )
    # THEN the version matters, the host is listed, and the port is no difference at all
    assert keys(found.rows) == [("hardware.host", False), ("versions.vllm", True)]
    assert found.obstacle == "the arms differ in versions.vllm (0.26.0 against 0.27.0)"
    assert [(one.slug, one.severity) for one in found.findings] == [("environment-differs", "error")]


@pytest.mark.parametrize("allowed", ["versions.vllm", "versions"])
def test_an_allowed_key_is_no_obstacle_and_is_named(allowed: str) -> None:
    # GIVEN a version that may differ WHEN compared THEN it is shown as allowed, with a warning
    found = compare_environment([record()], [record(1, {"versions.vllm": "0.27.0"})], allowed=[allowed])
    assert found.obstacle is None
    assert [(row.matters, row.allowed) for row in found.rows] == [(True, True)]
    assert [one.slug for one in found.findings] == ["environment-allowed"]


def test_a_key_is_not_allowed_by_the_beginning_of_its_name() -> None:
    # GIVEN an allowed key that is a part of another's name WHEN compared THEN it allows nothing
    assert compare_environment([record()], [record(1, {"versions.vllm": "0.27.0"})], allowed=["versions.vl"]).obstacle


def test_the_arms_own_flags_do_not_matter() -> None:
    # GIVEN arms that declare a back end each, and differ in a flag that is nobody's own
    own = frozenset({"flags.moe-backend"})
    base = record(0, {"flags.moe-backend": "humming"}, own=own)
    candidate = record(1, {"flags.moe-backend": "mega", "flags.max-num-seqs": "64"}, own=own)
    # WHEN compared THEN only the latter matters, though base does not set it at all
    found = compare_environment([base], [candidate])
    assert keys(found.rows) == [("flags.max-num-seqs", True), ("flags.moe-backend", False)]
    assert [row.base for row in found.rows] == [None, "humming"]
    assert found.rows[1].own


@pytest.mark.parametrize(("fingerprint", "matters"), [("same", False), (None, True)])
def test_without_a_record_equal_fingerprints_tell_whose_a_flag_is(fingerprint: str | None, matters: bool) -> None:
    # GIVEN runs that do not record what is their own WHEN a flag differs
    base = record(0, {"flags.moe-backend": "humming"}, fingerprint=fingerprint)
    candidate = record(1, {"flags.moe-backend": "mega"}, fingerprint=fingerprint)
    # THEN equal fingerprints, which cover the shared flags, say that it is an arm's own
    assert keys(compare_environment([base], [candidate]).rows) == [("flags.moe-backend", matters)]


def test_a_return_block_must_differ_in_nothing() -> None:
    # GIVEN a base whose second block runs with another value of its own flag
    own = frozenset({"flags.moe-backend"})
    first, second = (record(block, {"flags.moe-backend": name}, own=own) for block, name in ((0, "a"), (2, "b")))
    # WHEN compared THEN that matters, own or not, and the blocks are named
    found = compare_environment([first, second], [record(1, {"flags.moe-backend": "c"}, own=own)])
    (row,) = [row for row in found.rows if row.between == "base blocks"]
    assert (row.key, row.base, row.candidate, row.matters, row.blocks) == ("flags.moe-backend", "a", "b", True, (0, 2))
    assert found.obstacle == "the blocks of base differ in flags.moe-backend (a against b)"


def test_clocks_may_differ_a_little() -> None:
    # GIVEN clocks 1 % apart, and 10 % WHEN compared THEN only the latter differ
    assert compare_environment([record()], [record(1, {"clocks.sm_mhz": 1965.0})]).rows == ()
    assert keys(compare_environment([record()], [record(1, {"clocks.sm_mhz": 1755.0})]).rows) == [
        ("clocks.sm_mhz", True)
    ]


def test_what_a_side_does_not_tell_is_no_difference() -> None:
    # GIVEN a candidate that does not know its revision, and one that was ingested and knows nothing
    silent = RunRecord("arm/1", 1)
    # WHEN compared THEN nothing differs, and that nothing is known is said
    assert compare_environment([record()], [record(1, {"git.revision": None})]).rows == ()
    found = compare_environment([record()], [silent])
    assert found.rows == ()
    assert [(one.slug, one.evidence["sides"]) for one in found.findings] == [("environment-unknown", ["candidate"])]


def test_long_and_hostile_values_are_shown_short_and_harmless() -> None:
    # GIVEN a value with an escape sequence and a long one WHEN told THEN both are cut and escaped
    found = compare_environment([record(0, {"env.A": "\x1b[2J" + "x" * 200})], [record(1, {"env.A": "y"})])
    assert found.obstacle is not None and "\x1b" not in found.obstacle and len(found.obstacle) < 120
