"""What a name stands for, and that report and diff take arms of the store from Python and from the command line."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest

import moeprof
from moeprof.cli import main
from moeprof.errors import ConfigError, InputNotFoundError
from moeprof.store.folder import Store
from moeprof.store.run import Run
from moeprof.store.subject import find_run, store_root

from .runs import clock, manifest, stored

SAMPLES = Path(__file__).parents[3] / "samples" / "h200"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder whose search for a configuration ends there."""
    monkeypatch.delenv("MOEPROF_STORE", raising=False)
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def captured(store: Store, arm: str, sample: str) -> Run:
    """Store a run with the traces of a sample."""
    with store.begin(arm, 0) as writer:
        shutil.copytree(SAMPLES / sample, writer.path / "traces", dirs_exist_ok=True)
        return writer.commit(manifest(arm, 0))


def call(*argv: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return main(argv, out, err), out.getvalue(), err.getvalue()


def test_an_arm_is_its_newest_complete_run(here: Path) -> None:
    # GIVEN two complete runs of an arm and a failed one after them
    store = Store(here / ".moeprof", clock=clock(step_s=60))
    old, new = stored(store), stored(store)
    stored(store, outcome="failed", reason="it was stopped")
    # WHEN the arm and the older run are named
    runs = [find_run(name) for name in ("mega", old.name)]
    # THEN each is found
    assert [None if run is None else run.name for run in runs] == [new.name, old.name]


def test_what_exists_as_a_path_is_a_path(here: Path) -> None:
    # GIVEN an arm, and a folder of its name
    stored(Store(here / ".moeprof"))
    (here / "mega").mkdir()
    # WHEN both are named THEN the path comes first, and what can only be a path is never looked up
    assert [find_run(name) for name in ("mega", "./mega", "mega/", "/mega", "a,b", "t.json", "x/y", "")] == [None] * 8


def test_a_name_that_is_neither_is_an_error_with_both(here: Path) -> None:
    # GIVEN a store with an arm that has only a failed run
    stored(Store(here / ".moeprof"), outcome="failed", reason="it was stopped")
    # WHEN another arm, that one and a run that is not there are named THEN each says what is missing
    for name, message in (
        ("base", "no such file or folder, and no such arm in the store .moeprof"),
        ("mega", "no complete run of arm mega is stored"),
        ("mega/20261130T203730Z-7", "no run mega/20261130T203730Z-7 is stored"),
    ):
        with pytest.raises(InputNotFoundError) as caught:
            find_run(name)
        assert caught.value.message == message


def test_where_the_store_is(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN no configuration THEN it is the default
    assert store_root() == Path(".moeprof")
    # GIVEN one above that names none, and then one that does, whatever else is wrong with it
    config = here / "moeprof.toml"
    config.write_text("[arms.base.env]\nA = '${NOT_SET}'\n")
    (here / "below").mkdir()
    monkeypatch.chdir(here / "below")
    assert store_root() == here / ".moeprof"
    config.write_text("[store]\npath = 'runs-here'\n")
    assert store_root() == here / "runs-here"
    # WHEN the environment names one THEN it comes before, and what is given before both
    monkeypatch.setenv("MOEPROF_STORE", "elsewhere")
    assert (store_root(), store_root("given")) == (Path("elsewhere"), Path("given"))
    # GIVEN an empty variable and a file that is not TOML THEN that is said
    monkeypatch.setenv("MOEPROF_STORE", "")
    config.write_text("[store\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        store_root()


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no samples")
def test_report_and_diff_take_arms(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN two captured arms
    store = Store(here / "kept", clock=clock())
    base, mega = captured(store, "base", "base"), captured(store, "mega", "mega_derived")
    # WHEN they are named on the command line
    code, out, err = call("diff", "base", "mega", "--store", "kept", "--format", "json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    # THEN the result names arm and run, and the counts are those of their traces
    assert [(told[side]["arm"], told[side]["source"]) for side in ("base", "candidate")] == [
        ("base", base.name),
        ("mega", mega.name),
    ]
    assert told["pairs"]["ag_rs"] == {"base": 45, "candidate": 3}
    # AND Python takes arms, run names and run folders alike; only a folder's path is no arm
    monkeypatch.setenv("MOEPROF_STORE", "kept")
    assert moeprof.diff("base", "mega").to_dict() == {key: told[key] for key in told if key != "exit_code"}
    assert moeprof.report(mega.name).subject.arm == "mega"
    by_path = moeprof.report(mega.path)
    assert (by_path.subject.arm, by_path.subject.source) == (None, str(mega.path))
    assert by_path.ranks == moeprof.report("mega").ranks
    assert moeprof.open_trace("base", store="kept").findings == moeprof.open_trace(SAMPLES / "base").findings
    # AND so does the report's command
    code, out, _ = call("report", "base")
    assert code == 0
    assert base.name in out


def test_a_folder_with_a_manifest_and_no_traces_is_a_folder_like_any_other(here: Path) -> None:
    # GIVEN a folder of traces beside some manifest
    shutil.copytree(SAMPLES / "base", here / "rank-traces")
    (here / "rank-traces" / "manifest.json").write_text("{}")
    # WHEN it is opened THEN its own traces are read
    assert len(moeprof.open_trace(here / "rank-traces")) == 2
