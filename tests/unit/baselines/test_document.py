"""Baseline files: what is written is read back, and what is not a baseline is refused in one sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from moeprof.analyzers.environment.results import RunRecord
from moeprof.analyzers.gates.evaluate import evaluate
from moeprof.analyzers.gates.rules import GateRules
from moeprof.baselines.accept import accept_everything, accept_parts
from moeprof.baselines.arms import object_of, observation_of
from moeprof.baselines.document import Object, line_of, read, text_of
from moeprof.errors import BaselineError, ConflictError, UsageError
from moeprof.findings import JsonValue
from tests.unit.analyzers.gates.observations import LAUNCHES, count, passes, run, structure

WHY: Object = {"reason": "first", "date": "2026-11-30", "source": "base"}
LATER: Object = {"reason": "known", "date": "2026-12-01", "source": "base"}


def stored(tmp_path: Path, *, change: str = "", to: str = "") -> Path:
    """Write a good baseline, with one text in it replaced."""
    text = text_of({"base": object_of(run(), WHY)})
    assert change in text
    path = tmp_path / "b.json"
    path.write_text(text.replace(change, to, 1) if change else text, encoding="utf-8")
    return path


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    # GIVEN a run, with a count that varies WHEN it is stored and read THEN the gate finds nothing, and the text is the same again
    good = run(structure=structure({**LAUNCHES, "copy/sample": count(5, 6)}))
    text = text_of({"base": object_of(good, WHY)})
    (tmp_path / "b.json").write_text(text, encoding="utf-8")
    document = read(tmp_path / "b.json")
    back = observation_of("base", document.arms["base"], "b.json")
    assert back.structure == good.structure
    assert evaluate(back, good, GateRules()).happened() == ()
    assert text_of(document.arms) == text
    assert text_of({"base": object_of(back, WHY)}) == text


def test_the_file_obeys_its_schema_and_is_small() -> None:
    # GIVEN the shipped schema WHEN a baseline is written THEN it is valid
    text = text_of({"base": accept_everything(object_of(run(), WHY), object_of(run(samples=passes(1.1)), LATER))})
    schema = json.loads(files("moeprof.reports").joinpath("schemas/baseline-1.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(json.loads(text))
    assert len(text) < 10_000


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the baseline is empty"),
        (b"  \n", "the baseline is empty"),
        (b"{", "the baseline is not JSON"),
        (b"\xff\xfe", "the baseline is not UTF-8"),
        (b"[]", "the file is no baseline"),
        (b'{"schema": "moeprof.report/1"}', "the file is no baseline"),
        (b'{"schema": "moeprof.baseline/2", "arms": {}}', "has schema moeprof.baseline/2"),
        (b'{"schema": "moeprof.baseline/1", "arms": {}}', "holds no arm"),
        (b'{"schema": "moeprof.baseline/1", "arms": {"a": 1}}', "holds no arm"),
        (b'{"schema": "moeprof.baseline/1", "arms": {"a": {}, "a": {}}}', "'a' is there twice"),
        (b'{"schema": "moeprof.baseline/1", "arms": {"a": {"x": NaN}}}', "NaN is no number"),
        (b'{"schema": "moeprof.baseline/1", "armz": {}}', "unknown key 'armz'"),
    ],
)
def test_what_is_no_baseline_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    # GIVEN a file that is none WHEN it is read THEN one sentence says why
    (tmp_path / "b.json").write_bytes(content)
    with pytest.raises(BaselineError, match=said):
        read(tmp_path / "b.json")


@pytest.mark.parametrize(
    ("change", "to", "said"),
    [
        ('"moe_fused/target": 42', '"moe_fused/target": -1', "arms.base.structure.launches.moe_fused/target"),
        ('"moe_fused/target": 42', '"moe_fused/target": true', "is no whole number"),
        ('"moe_fused/target": 42', '"moe_fused/target": {"commonest": 1, "seen": []}', "holds nothing"),
        ('"ranks": ["rank0", "rank1"]', '"ranks": ["rank0", "rank0"]', "names a rank twice"),
        ('"reason": "first"', '"reason": 3', "arms.base.accepted.reason of the baseline is no text"),
        ('"correct": [1209]', '"correct": [9999]', "no counts of right answers among 1319"),
        ('["0.0", "0.1"', '["0.0", "0.0"', "not one value for each of its passes"),
        ('["0.0", "0.1"', '["9.9", "0.1"', "pass 9.9, which is not among its passes"),
        ('"number": 1', '"number": 0', "is pass 0.0 a second time"),
        ('"history"', '"histori"', "unknown key 'histori'"),
    ],
)
def test_contradictions_name_the_key(tmp_path: Path, change: str, to: str, said: str) -> None:
    # GIVEN one value that cannot be WHEN the arm is read THEN the error names where it stands
    path = stored(tmp_path, change=change, to=to)
    with pytest.raises(BaselineError) as caught:
        observation_of("base", read(path).arms["base"], str(path))
    assert said in caught.value.message


def test_accepting_everything_keeps_what_was_before() -> None:
    # GIVEN a baseline WHEN another run is accepted THEN its history says what moved, and why
    new = object_of(run(structure=structure({**LAUNCHES, "moe_fused/target": 43})), LATER)
    result: Any = accept_everything(object_of(run(), WHY), new)
    (entry,) = result["history"]
    assert (entry["what"], entry["reason"], entry["date"]) == ("everything", "known", "2026-12-01")
    assert entry["before"] == {"moe_fused/target": 42}
    assert entry["after"] == {"moe_fused/target": 43}


def test_slow_creep_is_told() -> None:
    # GIVEN three acceptances, each 4 % slower, less than the threshold WHEN the newest run is gated THEN it passes, with a warning
    arm = object_of(run(), WHY)
    for factor in (1.04, 1.08):
        arm = accept_everything(arm, object_of(run(samples=passes(factor)), LATER))
    base = observation_of("base", arm, "b")
    result = evaluate(base, run(samples=passes(1.08)), GateRules())
    assert result.happened() == ()
    crept = [finding.evidence["metric"] for finding in result.findings if finding.slug == "creep"]
    assert crept == ["median_tpot_ms", "median_ttft_ms", "output_throughput"]
    # AND a run that is as fast as the first one has not crept; where it is forbidden the gate fails
    assert "creep" not in {f.slug for f in evaluate(base, run(), GateRules()).findings}
    assert evaluate(base, run(samples=passes(1.08)), GateRules(forbid=("creep",))).happened() == ("gate",)


def test_what_names_a_machine_stays_out() -> None:
    # GIVEN a run that tells its host and where its model lies WHEN it is stored THEN only what matters is kept
    facts: dict[str, JsonValue] = {
        "versions.vllm": "0.26.0",
        "hardware.host": "node3",
        "model.path": "/data/m",
        "flags.port": "1",
    }
    arm: Any = object_of(run(runs=(RunRecord("base/x", 0, facts),)), WHY)
    assert arm["runs"][0]["facts"] == {"versions.vllm": "0.26.0"}


def test_one_metric_alone_is_accepted() -> None:
    # GIVEN a slower run with another structure WHEN one metric of it is accepted
    slow = run(samples=passes(1.5), structure=structure({**LAUNCHES, "moe_fused/target": 43}))
    result = accept_parts(object_of(run(), WHY), object_of(slow, LATER), ["median_ttft_ms"], [], path="b")
    # THEN the gate lets this metric pass, and nothing else
    back = observation_of("base", result, "b")
    failed = {row.rule for row in evaluate(back, slow, GateRules()).rules if row.verdict == "fail"}
    assert failed == {"structure/moe_fused/target", "metric/c8/median_tpot_ms", "metric/c8/output_throughput"}
    assert result["history"][0]["what"] == "metric median_ttft_ms"  # type: ignore[index,call-overload]  # it is JSON


@pytest.mark.parametrize("key", ["moe_fused/target", "pairs/ag_rs/draft", "backend/moe_fused/target"])
def test_one_count_alone_is_accepted(key: str) -> None:
    # GIVEN a run that differs in count, pairs and backend WHEN one is accepted THEN only that one passes
    moved = structure({**LAUNCHES, "moe_fused/target": 43})
    moved = replace(moved, backends={"moe_fused/target": ("x",)}, pairs={**moved.pairs, "ag_rs/draft": count(4)})
    after = run(structure=moved)
    result = accept_parts(object_of(run(), WHY), object_of(after, LATER), [], [key], path="b")
    failed = {
        row.rule
        for row in evaluate(observation_of("base", result, "b"), after, GateRules()).rules
        if row.verdict == "fail"
    }
    rules = {"structure/moe_fused/target", "pairs/ag_rs/draft", "backend/moe_fused/target"}
    accepted = f"structure/{key}" if key.startswith("moe_fused") else key
    assert failed == rules - {accepted}


def test_parts_that_do_not_fit_are_refused() -> None:
    # GIVEN a name that neither side has, and passes of another size WHEN accepted THEN each is refused
    good = object_of(run(), WHY)
    with pytest.raises(UsageError, match="no metric 'speed'"):
        accept_parts(good, good, ["speed"], [], path="b")
    with pytest.raises(UsageError, match="has the structure 'x/y'"):
        accept_parts(good, good, [], ["x/y"], path="b")
    other: Any = json.loads(json.dumps(good))
    other["serving"]["c8"]["passes"][0]["output_tokens"] = 1
    with pytest.raises(ConflictError, match="other totals"):
        accept_parts(good, other, ["median_ttft_ms"], [], path="b")


def test_lines_point_to_the_key(tmp_path: Path) -> None:
    # GIVEN a baseline WHEN the line of a metric is sought THEN the file has it there
    text = stored(tmp_path).read_text(encoding="utf-8")
    line = line_of(text, "arms", "base", "serving", "c8", "metrics", "median_ttft_ms")
    assert text.splitlines()[line - 1].strip().startswith('"median_ttft_ms"')
