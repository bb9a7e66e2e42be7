"""Runs are there as a whole or not at all, in a fixed order, and nothing leads out of the store."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from moeprof.errors import InputNotFoundError, StoreWriteError, UsageError
from moeprof.store import disk
from moeprof.store.folder import Store
from moeprof.store.manifest import Manifest, file_entry
from tests.unit.store.runs import age, clock, dead_pid, manifest, stored, tree

NAME = "20261130T203730Z-1"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", clock=clock())


def test_a_run_appears_when_it_is_committed(store: Store) -> None:
    # GIVEN a run that is being written
    with store.begin("mega", 1) as writer:
        (writer.path / "traces" / "rank0.json").write_text("{}")
        # THEN no run is there yet, and the folder is nobody's leftover
        assert writer.path.name == f".tmp-{NAME}-{os.getpid()}"
        assert (store.runs(), store.leftovers()) == ([], [])
        # WHEN it is committed
        run = writer.commit(manifest())
    # THEN it is there under its name, with the digests of its files
    assert run.name == f"mega/{NAME}"
    assert tree(store.root) == [
        "runs",
        "runs/mega",
        *(f"runs/mega/{NAME}{rest}" for rest in ("", "/bench", "/manifest.json", "/traces", "/traces/rank0.json")),
    ]
    assert store.runs() == [run]
    assert run.manifest.files == {"traces/rank0.json": file_entry(run.path / "traces" / "rank0.json")}


def test_what_is_not_committed_leaves_nothing(store: Store) -> None:
    # GIVEN a run during which something is raised
    def interrupted() -> None:
        with store.begin("mega", 1) as writer:
            (writer.path / "server.log").write_text("x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    # THEN nothing of it is left, not even the arm's folder
    assert tree(store.root) == ["runs"]


def test_a_failed_run_is_set_aside_with_its_reason(store: Store) -> None:
    # GIVEN a run that failed
    with store.begin("mega", 1) as writer:
        (writer.path / "server.log").write_text("boom")
        # WHEN it is set aside
        folder = writer.fail("the server died; HF_TOKEN=abcdefgh", manifest())
    # THEN it is no run, its log is kept, and the reason is there without the secret
    assert store.runs() == []
    assert folder == store.root / "failed" / "mega-20261130T203730Z"
    assert (folder / "server.log").read_text() == "boom"
    [failed] = store.failed()
    assert (failed.name, failed.arm, failed.block, failed.time, failed.reason) == (
        "failed/mega-20261130T203730Z",
        "mega",
        1,
        "20261130T203730Z",
        "the server died; HF_TOKEN=<redacted>",
    )
    assert Manifest.read(folder / "manifest.json").outcome == "failed"
    assert not (store.root / "runs" / "mega").exists()


def test_a_name_that_is_taken_gets_a_suffix(store: Store) -> None:
    # GIVEN a clock that stands still WHEN runs of one block are stored
    names = [stored(store).name for _ in range(11)]
    # THEN each has a name of its own, and they are listed in the order they came
    assert names[:3] == [f"mega/{NAME}", f"mega/{NAME}-2", f"mega/{NAME}-3"]
    assert [run.name for run in store.runs()] == names
    assert store.newest("mega") == store.runs()[-1]


def test_two_writers_of_one_block_at_once(store: Store) -> None:
    # GIVEN two runs of a block that are written at the same time
    with store.begin("mega", 1) as first, store.begin("mega", 1) as second:
        # THEN neither is in the other's folder
        assert first.path != second.path
        assert [first.commit(manifest()).name, second.commit(manifest()).name] == [f"mega/{NAME}", f"mega/{NAME}-2"]


def test_runs_are_listed_by_time_then_block_then_arm(tmp_path: Path) -> None:
    # GIVEN runs of two arms, blocks 10 and 9 begun in the same second
    store = Store(tmp_path, clock=clock())
    for arm, block in (("b", 10), ("a", 10), ("b", 9)):
        stored(store, arm, block)
    # THEN numbers are compared as numbers
    assert [run.name for run in store.runs()] == [
        "b/20261130T203730Z-9",
        "a/20261130T203730Z-10",
        "b/20261130T203730Z-10",
    ]
    assert [run.name for run in store.runs("a")] == ["a/20261130T203730Z-10"]


def test_the_newest_run_is_a_complete_one(tmp_path: Path) -> None:
    # GIVEN a complete run and a later one that failed and was kept
    store = Store(tmp_path, clock=clock(step_s=1))
    good = stored(store)
    bad = stored(store, outcome="failed", reason="stalled")
    # THEN both are listed, and the newest is the complete one
    assert store.runs() == [good, bad]
    assert store.newest("mega") == good == store.find("mega")
    assert store.newest("base") is None


@pytest.mark.parametrize("arm", ["", ".", "..", "../x", "a/b", "/a", "a b", ".tmp-1", "a\n", "ä", "a" * 101])
def test_an_arm_never_leads_out_of_the_store(store: Store, arm: str) -> None:
    # WHEN an arm's name is no folder's name THEN it is refused everywhere, and nothing is made
    for use in (lambda: store.begin(arm, 0), lambda: store.runs(arm), lambda: store.newest(arm)):
        with pytest.raises(UsageError):
            use()
    assert not store.root.exists()


@pytest.mark.parametrize("name", ["mega/nothing", "mega/../x", f"mega/{NAME}-9", "mega/20269999T000000Z-1", "base"])
def test_a_run_that_is_not_there(store: Store, name: str) -> None:
    # GIVEN a store with one run WHEN another is asked for THEN a sentence says so
    stored(store)
    with pytest.raises(InputNotFoundError, match="is stored"):
        store.find(name)


def test_a_folder_without_manifest_is_no_run(store: Store) -> None:
    # GIVEN folders that no manifest, or no run's name, makes a run
    (store.root / "runs" / "mega" / NAME).mkdir(parents=True)
    other = store.root / "runs" / "mega" / "notes"
    other.mkdir()
    (other / "manifest.json").write_text("{}")
    # THEN there is no run
    assert store.scan() == ([], [])


def test_a_damaged_manifest_hides_no_other_run(store: Store) -> None:
    # GIVEN two runs, one with a manifest cut short
    good, bad = stored(store), stored(store, block=2)
    (bad.path / "manifest.json").write_text('{"arm": "me')
    # THEN the other is listed, and the damage is told
    runs, [broken] = store.scan()
    assert runs == [good]
    assert (broken.path, broken.message[:27]) == (bad.path, "the manifest is not JSON: U")


def test_leftovers_of_dead_writers_are_swept(store: Store) -> None:
    # GIVEN what a dead writer left, what one alive writes, and what one alive has not touched for two days
    arm = store.root / "runs" / "mega"
    folders = {
        name: arm / f".tmp-20261130T203730Z-1-{pid}"
        for name, pid in (("dead", dead_pid()), ("alive", os.getppid()), ("old", 1))
    }
    for folder in folders.values():
        (folder / "traces").mkdir(parents=True)
    age(folders["old"], 2 * 86_400)
    stored(store)
    # WHEN the store is swept THEN the first and the last are gone
    assert store.sweep() == sorted([folders["dead"], folders["old"]])
    assert sorted(path.name for path in arm.iterdir()) == [folders["alive"].name, NAME]
    assert store.sweep() == []


WRITE = (
    "import sys\nfrom pathlib import Path\nfrom moeprof.store.folder import Store\n"
    "with Store(Path(sys.argv[1])).begin('mega', 1) as writer:\n"
    "    (writer.path / 'traces' / 'rank0.json').write_text('{')\n    print('begun', flush=True)\n    sys.stdin.read()\n"
)


def test_a_writer_that_is_killed(store: Store) -> None:
    # GIVEN another process that writes a run
    with subprocess.Popen(
        [sys.executable, "-c", WRITE, str(store.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == "begun\n"
        assert store.leftovers() == []
        # WHEN it is killed THEN there is no run, its folder is swept, and the next run is stored
        writer.kill()
        writer.wait()
    assert (store.runs(), len(store.sweep()), store.leftovers()) == ([], 1, [])
    assert [stored(store)] == store.runs()


def test_a_long_block_is_no_leftover(store: Store) -> None:
    # GIVEN a writer alive that began two days ago and still writes its log
    folder = store.root / "runs" / "mega" / f".tmp-20261130T203730Z-1-{os.getppid()}"
    folder.mkdir(parents=True)
    (folder / "bench").mkdir()
    age(folder, 2 * 86_400)
    (folder / "bench" / "pass0.json").write_text("{}")
    # THEN it is left alone
    assert store.sweep() == []


def test_removal(store: Store) -> None:
    # GIVEN two runs WHEN one is removed THEN the bytes of its files are told, and the other stays
    first, second = stored(store, size=1000), stored(store, block=2)
    expected = 1000 + (first.path / "manifest.json").stat().st_size
    assert store.remove(first) == expected
    assert store.runs() == [second]
    # WHEN the last run of an arm goes THEN so does the arm's folder
    store.remove(second)
    assert tree(store.root) == ["runs"]


def test_removal_stays_inside_the_store(store: Store, tmp_path: Path) -> None:
    # GIVEN a run of another store, and an arm's folder that is a link to it
    other = Store(tmp_path / "other", clock=clock())
    run = stored(other)
    (store.root / "runs").mkdir(parents=True)
    (store.root / "runs" / "mega").symlink_to(run.path.parent)
    # WHEN it is to be removed through this store, directly or through the link THEN nothing happens
    through = store.root / "runs" / "mega" / run.path.name
    for path in (run.path, through, store.root / "runs" / "mega" / ".." / "mega" / run.path.name, store.root / "runs"):
        with pytest.raises(UsageError, match="nothing was removed"):
            store.remove(type(run)(path, run.manifest))
    assert (other.runs(), store.runs(), store.arms()) == ([run], [], [])


def test_a_link_inside_a_run_is_not_followed(store: Store, tmp_path: Path) -> None:
    # GIVEN a run that holds a link to a folder outside
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("x")
    with store.begin("mega", 1) as writer:
        (writer.path / "traces" / "link").symlink_to(outside)
        run = writer.commit(manifest())
    # WHEN it is removed THEN the folder outside is untouched
    assert run.manifest.files == {}
    store.remove(run)
    assert (outside / "keep").read_text() == "x"


def test_the_manifest_is_the_last_file_and_forced_to_the_disk(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a record of what is forced to the disk
    synced: list[str] = []
    fsync = os.fsync

    def record(handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", record)
    # WHEN a run is committed
    stored(store)
    # THEN the trace is before the manifest, and the name of the folder comes last
    part = f".manifest.json.{os.getpid()}.part"
    assert synced.index("rank0.json") < synced.index(part)
    assert synced[-1] == "mega"


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_a_sentence_and_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a disk that is full when the run is committed
    monkeypatch.setattr(disk, "sync", full)
    # WHEN a run is stored
    with pytest.raises(StoreWriteError) as caught:
        stored(store)
    # THEN the error says so and what helps, and nothing is left
    assert caught.value.message == "cannot store the run: the disk is full"
    assert caught.value.exit_code == 3
    assert "moeprof runs prune" in str(caught.value.hint)
    assert tree(store.root) == ["runs"]


def test_a_file_in_the_place_of_the_store(tmp_path: Path) -> None:
    # GIVEN a file where the store's folder belongs
    (tmp_path / "store").write_text("x")
    # WHEN a run is begun THEN the error says so
    with pytest.raises(StoreWriteError, match="cannot make a folder for the run: a file stands where a folder belongs"):
        Store(tmp_path / "store").begin("mega", 0)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_store_that_may_not_be_written(tmp_path: Path) -> None:
    # GIVEN a folder without the right to write WHEN a run is begun THEN the error says so
    tmp_path.chmod(0o500)
    with pytest.raises(StoreWriteError, match="permission denied"):
        Store(tmp_path / "store").begin("mega", 0)
    tmp_path.chmod(0o700)


def test_a_writer_is_used_once(store: Store) -> None:
    # GIVEN a run that is stored WHEN it is stored again, or as another THEN it is refused
    with store.begin("mega", 1) as writer:
        with pytest.raises(UsageError, match="the manifest is of base block 1, the run of mega block 1"):
            writer.commit(manifest("base"))
        writer.commit(manifest())
        with pytest.raises(UsageError, match="already stored"):
            writer.commit(manifest())
    assert len(store.runs()) == 1


def test_secrets_do_not_reach_the_disk(store: Store) -> None:
    # GIVEN a manifest with secrets in several places
    secret = "hf_dummy_value_0123456789"
    given = manifest(
        argv=("vllm", "serve", "--hf-token", secret),
        env={"HF_TOKEN": secret, "NOTE": f"with {secret}"},
        reason=f"401 for Bearer {secret}",
        log_facts={"errors": [f"bad token {secret}"]},
        window={"token": secret},
    )
    # WHEN it is committed THEN no file of the store holds it
    with store.begin("mega", 1) as writer:
        run = writer.commit(given)
    assert secret not in (run.path / "manifest.json").read_text()
    assert json.loads((run.path / "manifest.json").read_text())["argv"] == ["vllm", "serve", "--hf-token", "<redacted>"]
