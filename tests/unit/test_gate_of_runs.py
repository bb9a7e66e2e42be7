"""Gates of captured arms: which ground they stand on, and what a baseline from a store may prove."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moeprof.store.folder import Store
from tests.unit.test_environment_of_runs import aba, block, run

CI = ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "GITHUB_STEP_SUMMARY")


@pytest.fixture
def baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a baseline of a captured arm."""
    for name in CI:
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "b.json"
    store = str(aba(tmp_path / "old"))
    assert run("baseline", "accept", "base", "--store", store, "--baseline", str(path), "--reason", "x")[0] == 0
    return path


def test_the_date_is_the_runs(baseline: Path) -> None:
    # GIVEN a captured arm WHEN it is accepted without a date THEN the day is that of its passes, and no host is in the file
    text = baseline.read_text(encoding="utf-8")
    assert json.loads(text)["arms"]["base"]["accepted"]["date"] == "1970-01-01"  # the passes of the sample run then
    assert "host0" not in text


def test_only_times_prove_that_a_baseline_lies_around_a_run(baseline: Path, tmp_path: Path) -> None:
    # GIVEN a baseline of both base blocks of an A/B/A WHEN the candidate of the same session is gated
    code, out, _ = run(
        "gate", "mega", "--store", str(tmp_path / "old"), "--baseline", str(baseline), "--format", "json"
    )
    # THEN the times of the passes prove that it lay between them
    value = json.loads(out)
    assert code == 1
    assert {row["label"] for row in value["rules"] if row["kind"] == "metric"} == {"A/B/A complete", "A/B/A, drifted"}
    # WHEN another day's run is gated THEN they prove that it did not
    store = tmp_path / "new"
    passes = tuple({"file": f"bench/pass{i}.txt", "at": [9000.0 + 10 * i, 9009.0 + 10 * i]} for i in range(3))
    block(Store(store), "base", 1, "base2", passes=passes)
    code, out, _ = run("gate", "base", "--store", str(store), "--baseline", str(baseline), "--format", "json")
    assert {row["label"] for row in json.loads(out)["rules"] if row["kind"] == "metric"} == {"A/B only"}


def test_other_ground_is_refused_with_the_way_out(baseline: Path, tmp_path: Path) -> None:
    # GIVEN the arm on another server version WHEN it is gated THEN 2, and the keys to allow
    store = tmp_path / "new"
    changed: dict[str, object] = {"versions": {"vllm": "0.27.0", "torch": "2.11"}}
    aba(store, a0=changed, b1=changed, a2=changed)
    line = ("gate", "base", "--store", str(store), "--baseline", str(baseline))
    code, _, err = run(*line)
    assert code == 2
    assert "versions.vllm (0.26.0 against 0.27.0)" in err
    assert "--allow-environment versions.vllm" in err
    # WHEN they are allowed THEN it is compared
    assert run(*line, "--allow-environment", "versions.vllm")[0] in (0, 1)
