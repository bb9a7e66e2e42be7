"""`moeprof runs` lists, shows and removes what is stored, and nothing else."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from moeprof.cli import main
from moeprof.commands.runs import choose
from moeprof.store.folder import Store
from moeprof.store.lock import exclusive
from tests.unit.store.runs import START, clock, dead_pid, stored


def call(*argv: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return main(["runs", *argv], out, err), out.getvalue(), err.getvalue()


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("MOEPROF_STORE", str(tmp_path / "store"))
    return Store(tmp_path / "store", clock=clock(step_s=1))


def listed(*argv: str) -> list[str]:
    return [item["name"] for item in json.loads(call("list", "--format", "json", *argv)[1])["runs"]]


def test_an_empty_store(store: Store) -> None:
    # GIVEN no store THEN the list is empty, and none is made
    assert call("list") == (0, f"0 runs in {store.root}\n", "")
    assert not store.root.exists()


def test_the_list(store: Store) -> None:
    # GIVEN runs of two arms, one of them failed, one damaged
    stored(store, size=2 << 20)
    stored(store, "base", outcome="failed", reason="stalled")
    damaged = stored(store, block=2)
    (damaged.path / "manifest.json").write_text("{")
    # THEN text has a line for each, and JSON their sizes in bytes
    code, out, _ = call("list")
    lines = [line.split() for line in out.splitlines()]
    assert code == 0
    assert [line[0] for line in lines[:4]] == [
        "RUN",
        "mega/20261130T203730Z-1",
        "base/20261130T203731Z-1",
        "mega/20261130T203732Z-2",
    ]
    assert lines[1][1:4] == ["complete", "2.0", "MiB"]
    assert out.splitlines()[-1] == f"3 runs in {store.root}"
    rows = json.loads(call("list", "mega", "--format", "json")[1])["runs"]
    assert [(row["outcome"], row["started"]) for row in rows] == [
        ("complete", "2026-11-30T20:37:30Z"),
        ("damaged", "2026-11-30T20:37:32Z"),
    ]
    assert rows[0]["bytes"] == sum(path.stat().st_size for path in store.runs()[0].path.rglob("*") if path.is_file())


def test_failed_blocks(store: Store) -> None:
    # GIVEN a block that was set aside THEN only --failed lists it, with its reason, and it can be removed by name
    with store.begin("mega", 1) as writer:
        folder = writer.fail("the server died")
    assert listed() == []
    assert call("list", "--failed")[1].splitlines()[1].startswith("failed/mega-20261130T203730Z  the server died  ")
    assert call("remove", "failed/mega-20261130T203730Z")[0] == 0
    assert not folder.exists()


def test_show(store: Store) -> None:
    # GIVEN a run WHEN it is shown by arm or by name THEN its manifest is told
    gate = {"name": "token-counts", "outcome": "pass", "required": True, "message": "exact"}
    run = stored(store, gates=(gate,), workload={"name": "decode"})
    assert json.loads(call("show", "mega", "--format", "json")[1]) == run.manifest.to_dict()
    out = call("show", run.name)[1]
    assert out.splitlines()[0] == f"run         {run.name}"
    assert "gate        pass (required) token-counts: exact\n" in out
    assert call("show", "base")[0] == 2


def test_remove(store: Store) -> None:
    # GIVEN two runs WHEN one and one that is not there are named THEN nothing goes
    first, second = stored(store), stored(store)
    assert call("remove", first.name, "mega/20200101T000000Z-1")[0] == 2
    assert listed() == [first.name, second.name]
    # WHEN one is named THEN it goes; an arm's name is never taken for its runs
    assert call("remove", "mega")[0] == 2
    assert call("remove", first.name)[0] == 0
    assert listed() == [second.name]


def test_prune_needs_a_condition_and_a_yes(store: Store) -> None:
    # GIVEN three runs WHEN prune is not told what, or not told yes THEN nothing goes
    names = [stored(store).name for _ in range(3)]
    assert call("prune", "--yes")[0] == 2
    code, _, err = call("prune", "--keep", "1")
    assert (code, "--dry-run first" in err) == (2, True)
    code, out, _ = call("prune", "--keep", "1", "--dry-run")
    assert (code, [line.split()[2] for line in out.splitlines()[:2]]) == (0, names[:2])
    assert listed() == names
    # WHEN it is told yes THEN the older ones go, and so does what a dead writer left
    left = store.root / "runs" / "mega" / f".tmp-20261130T203730Z-1-{dead_pid()}"
    left.mkdir()
    code, out, _ = call("prune", "--keep", "1", "--yes", "--format", "json")
    told = json.loads(out)
    assert (code, [item["name"] for item in told["removed"]], told["leftovers"]) == (0, names[:2], 1)
    assert (listed(), left.exists()) == (names[2:], False)


def test_every_condition_must_hold(store: Store) -> None:
    # GIVEN five runs, a second apart, of two arms
    runs = [stored(store, arm) for arm in ("a", "a", "b", "a", "b")]
    now = START + timedelta(seconds=4)
    # THEN keep counts per arm, age from the run's name, and both together take the fewest
    assert choose(runs, keep=1, age=None, now=now) == [runs[0], runs[1], runs[2]]
    assert choose(runs, keep=None, age=timedelta(seconds=2), now=now) == [runs[0], runs[1]]
    assert choose(runs, keep=2, age=timedelta(seconds=2), now=now) == [runs[0]]
    assert choose(runs, keep=0, age=None, now=now) == runs


@pytest.mark.parametrize("age", ["30", "d", "-1d", "1w", "9999999d"])
def test_an_age_that_is_none(store: Store, age: str) -> None:
    # WHEN the age cannot be read THEN a sentence says so
    code, _, err = call("prune", f"--older-than={age}", "--dry-run")
    assert (code, "is no age" in err) == (2, True)


def test_old_runs(store: Store) -> None:
    # GIVEN a run of now and one of long ago WHEN runs older than 30 days are pruned THEN only that one goes
    old = Store(store.root, clock=lambda: datetime(2020, 1, 1, tzinfo=UTC))
    new = Store(store.root, clock=lambda: datetime.now(UTC))
    gone, stays = stored(old), stored(new)
    assert call("prune", "--older-than", "30d", "--yes")[0] == 0
    assert (gone.path.exists(), stays.path.exists()) == (False, True)


def test_nothing_is_removed_while_a_capture_runs(store: Store) -> None:
    # GIVEN a store that is being written WHEN runs are to be removed THEN that is refused
    run = stored(store)
    with exclusive(store.root, command=["moeprof", "run"]):
        code, _, err = call("remove", run.name)
    assert (code, "moeprof: error[store-locked]" in err, run.path.exists()) == (2, True, True)


def test_a_link_is_never_followed(store: Store, tmp_path: Path) -> None:
    # GIVEN an arm that is a link to another store's runs THEN it is neither listed nor removed
    other = Store(tmp_path / "other", clock=clock())
    run = stored(other)
    (store.root / "runs").mkdir(parents=True)
    (store.root / "runs" / "mega").symlink_to(run.path.parent)
    assert listed() == []
    assert call("prune", "--keep", "0", "--yes")[0] == 0
    assert call("remove", run.name)[0] == 2
    assert run.path.exists()
