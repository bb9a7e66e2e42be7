"""Captures with the real vLLM on the CPU: what the arms hold, what is stored, and what is left when a process is killed.

``make live`` runs these, with the environment of ``scripts/cpu_environment.py``.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.live import config, environment, gone, running, server_python, until

ITERATIONS = 8
RANKS = ["dp0_pp0_tp0_dcp0_ep0_rank0", "dp1_pp0_tp0_dcp0_ep1_rank0"]
REQUIRED = {
    "no-failed-requests",
    "token-counts",
    "expected-backend",
    "markers-present",
    "traces-complete",
    "profile-apart",
}

pytestmark = [
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.timeout(2700),
    pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="needs /proc to see processes"),
]


@dataclass(frozen=True)
class Captured:
    """Both arms, captured: where, how, and their manifests by arm."""

    folder: Path
    env: dict[str, str]
    left: dict[int, str]
    runs: dict[str, Path]
    manifests: dict[str, Any]

    def json(self, *words: str) -> Any:
        """Return the JSON of a command that runs beside the configuration."""
        done = subprocess.run(
            [sys.executable, "-m", "moeprof", *words, "--format", "json"],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def env() -> dict[str, str]:
    return environment(server_python())


@pytest.fixture(scope="module")
def captured(env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Captured:
    """Capture both arms as the README says."""
    folder = tmp_path_factory.mktemp("live")
    config(folder)
    with running(["run", "--plan", "ab", "base", "mega"], folder, env) as run:
        assert run.wait() == 0, run.text
        left = gone(folder, limit_s=5)
    runs = {arm: path for arm in ("base", "mega") for path in (folder / "store" / "runs" / arm).iterdir()}
    manifests = {arm: json.loads((path / "manifest.json").read_text("utf-8")) for arm, path in runs.items()}
    return Captured(folder, env, left, runs, manifests)


def pairs(report: Any) -> list[dict[str, int]]:
    return [
        {key: rank["pairs"]["ag_rs"][key] for key in ("per_iteration", "target", "draft")} for rank in report["ranks"]
    ]


def per_iteration(diff: Any, kernel: str) -> dict[str, tuple[int, int]]:
    rows = [row for row in diff["kernels"] if kernel in row["name"]]
    return {row["phase"]: (row["base"], row["candidate"]) for row in rows}


def test_nothing_runs_after_a_capture(captured: Captured) -> None:
    # GIVEN a run of two blocks that has ended WHEN processes are looked for THEN there is none
    assert captured.left == {}


@pytest.mark.parametrize(("arm", "block"), [("base", 0), ("mega", 1)])
def test_a_run_is_stored_whole(captured: Captured, arm: str, block: int) -> None:
    # GIVEN the manifest of an arm's run
    told, path = captured.manifests[arm], captured.runs[arm]
    assert (told["schema"], told["arm"], told["block"], told["plan"]) == ("moeprof.run/1", arm, block, "ab")
    assert told["outcome"] == "complete"
    assert told["fingerprint"] == captured.manifests["base"]["fingerprint"]
    # THEN its required gates passed
    gates = {gate["name"]: gate["outcome"] for gate in told["gates"] if gate["required"]}
    assert gates == dict.fromkeys(REQUIRED, "pass")
    # AND its files are those that it lists, byte for byte
    there = {file.relative_to(path).as_posix(): file.read_bytes() for file in path.rglob("*") if file.is_file()}
    there.pop("manifest.json")
    digests = {name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in there.items()}
    assert digests == told["files"]
    assert {name.split("/")[0] for name in there} == {"bench", "events", "server.log", "traces"}
    assert sorted(folder.name for folder in (path / "events").iterdir()) == [f"rank={rank}" for rank in RANKS]
    # AND nothing half-made lies beside it
    assert [folder.name for folder in path.parent.iterdir()] == [path.name]
    assert not (captured.folder / "store" / "failed").exists()


@pytest.mark.parametrize("arm", ["base", "mega"])
def test_iterations_are_those_of_the_servers_log(captured: Captured, arm: str) -> None:
    # GIVEN the steps that vLLM logged while its profiler ran, by engine
    windows = captured.manifests[arm]["log_facts"]["windows"]
    assert len(windows) == 1
    logged = {steps["engine"]: steps for steps in windows[0]}
    # WHEN the traces are counted
    report = captured.json("report", arm)
    assert [rank["rank"] for rank in report["ranks"]] == RANKS
    for engine, rank in enumerate(report["ranks"]):
        counts = rank["iterations"]
        # THEN each rank holds the window, as the log tells it: the log may have a step more or less at the edges
        assert (counts["total"], counts["decode"], counts["partial"]) == (ITERATIONS, ITERATIONS, 0)
        assert abs(logged[engine]["iterations"] - counts["total"]) <= 1
        assert (logged[engine]["contexts"], logged[engine]["dummy"]) == (0, 0)  # decodes only, as the traces say
    gate = next(gate for gate in captured.manifests[arm]["gates"] if gate["name"] == "traces-complete")
    assert gate["evidence"]["iterations"] == dict.fromkeys(RANKS, ITERATIONS)


@pytest.mark.parametrize("arm", ["base", "mega"])
def test_our_markers_are_used_and_vllms_own_give_the_same(captured: Captured, arm: str) -> None:
    # GIVEN a report by the best markers there are, and one by vLLM's
    ours, theirs = captured.json("report", arm), captured.json("report", arm, "--marker-family", "vllm")
    # THEN the best are moeprof's, as the server's log says, too
    assert [rank["iterations"]["marker"] for rank in ours["ranks"]] == ["moeprof"] * 2
    assert [rank["iterations"]["marker"] for rank in theirs["ranks"]] == ["vllm"] * 2
    assert captured.manifests[arm]["log_facts"]["markers"] == ["V1 runner", "target", "sample", "drafts"]
    # AND the counts are equal
    assert pairs(ours) == pairs(theirs)
    for a, b in zip(ours["ranks"], theirs["ranks"], strict=True):
        steady = {(row["class"], row["phase"]): row["per_iteration"] for row in a["counts"] if row["constant"]}
        assert ("moe_gemm", "draft") in steady
        others = {(row["class"], row["phase"]): row["per_iteration"] for row in b["counts"]}
        assert {key: others.get(key) for key in steady} == steady


def test_the_arms_differ_where_they_should(captured: Captured) -> None:
    # GIVEN reports of both arms, named as arms
    base, mega = captured.json("report", "base"), captured.json("report", "mega")
    assert [(side["subject"]["arm"], side["subject"]["source"]) for side in (base, mega)] == [
        (arm, f"{arm}/{captured.runs[arm].name}") for arm in ("base", "mega")
    ]
    # THEN the target's pairs are gone, on both ranks, and the drafts' are not
    assert pairs(base) == [{"per_iteration": 6, "target": 3, "draft": 3}] * 2
    assert pairs(mega) == [{"per_iteration": 3, "target": 0, "draft": 3}] * 2
    # AND the diff by arm says so
    diff = captured.json("diff", "base", "mega")
    assert [diff[side]["arm"] for side in ("base", "candidate")] == ["base", "mega"]
    assert diff["pairs"]["ag_rs"] == {"base": 6, "candidate": 3}
    # AND one fused operator stands for each expert operator of the target
    assert per_iteration(diff, "cpu_fused_moe") == {"target": (3, 0), "draft": (3, 3)}
    assert per_iteration(diff, "mega_moe") == {"target": (0, 3)}
    # AND nothing else of the drafts has changed
    drafts = {row["class"]: row["change"] for row in diff["structure"] if row["phase"] == "draft"}
    assert drafts["moe_gemm"] == drafts["all_gather"] == drafts["reduce_scatter"] == "same"
    assert set(drafts.values()) == {"same"}


def test_a_second_run_captures_nothing_again(captured: Captured) -> None:
    # GIVEN both blocks WHEN the same command runs again THEN it finds them, and starts nothing
    with running(["run", "--plan", "ab", "base", "mega"], captured.folder, captured.env) as run:
        assert run.wait(120) == 0
    assert run.text.count("is stored already") == 2
    assert "starting" not in run.text


def only_failed(folder: Path) -> list[Path]:
    """Return what was set aside in a store that must hold no run."""
    assert half_written(folder) == []
    return sorted((folder / "store" / "failed").glob("*"))


def half_written(folder: Path) -> list[Path]:
    """Return the files below the store's runs, of which there must be none after a failure."""
    return [path for path in (folder / "store" / "runs").rglob("*") if path.is_file()]


def one(found: dict[int, str], *words: str) -> int | None:
    """Return the process whose command line holds the words; the lowest where several do."""
    return min((pid for pid, line in found.items() if all(word in line for word in words)), default=None)


def test_a_server_that_is_killed(env: dict[str, str], tmp_path: Path) -> None:
    # GIVEN a capture whose server is ready
    config(tmp_path)
    with running(["capture", "--arm", "base"], tmp_path, env) as run:
        run.until(lambda: "warm-up 1 of 1" in run.text, "the warm-up")
        # WHEN the server is killed
        server = one(run.others(), " serve ")
        assert server is not None, run.others()
        os.kill(server, signal.SIGKILL)
        # THEN the capture fails, says so, and leaves neither a run nor a process
        assert run.wait(180) == 3, run.text
        assert "error[server-died]" in run.text
        assert gone(tmp_path) == {}
    (failed,) = only_failed(tmp_path)
    assert (failed / "server.log").stat().st_size > 0


def test_a_client_that_is_killed(env: dict[str, str], tmp_path: Path) -> None:
    # GIVEN a capture with vLLM's own client, which is a process
    config(tmp_path, **{'client = "builtin"': 'client = "vllm"'})
    with running(["capture", "--arm", "base"], tmp_path, env) as run:
        run.until(lambda: one(run.others(), " bench ", " serve "), "the client")
        # WHEN it is killed
        client = one(run.others(), " bench ", " serve ")
        assert client is not None
        os.kill(client, signal.SIGKILL)
        # THEN the capture fails for that reason, and leaves neither a run nor a process
        assert run.wait(180) == 3, run.text
        assert "error[pass-failed]" in run.text
        assert gone(tmp_path) == {}
    assert len(only_failed(tmp_path)) == 1


def test_a_moeprof_that_is_killed(env: dict[str, str], tmp_path: Path) -> None:
    # GIVEN a capture whose server is ready
    config(tmp_path)
    with running(["capture", "--arm", "base"], tmp_path, env) as run:
        run.until(lambda: "warm-up 1 of 1" in run.text, "the warm-up")
        assert len(run.others()) >= 3  # the API server and an engine core for each rank
        # WHEN moeprof itself is killed, which nothing can catch
        os.kill(run.process.pid, signal.SIGKILL)
        assert run.process.wait(60) == -signal.SIGKILL
        # THEN its guard ends the server, and then removes what was half-written
        assert gone(tmp_path) == {}
        assert until(lambda: half_written(tmp_path) == [])
        assert only_failed(tmp_path) == []
        # AND the store can be used at once
        again = subprocess.run(
            [sys.executable, "-m", "moeprof", "report", "base"],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (again.returncode, again.stdout) == (2, "")
        assert "error[input-not-found]" in again.stderr
