"""What is looked at to choose an example, and how the file is written."""

from __future__ import annotations

import importlib.util
import io
import os
import stat
from pathlib import Path

import pytest

from moeprof.cli import main
from moeprof.config.init import TEMPLATES, Found, look_around, template, write_new
from moeprof.config.load import load_config
from moeprof.errors import UsageError


def call(*argv: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return main(argv, out, err), out.getvalue(), err.getvalue()


@pytest.mark.parametrize(
    ("vllm", "devices", "name", "text"),
    [
        (None, (), "vllm", "no vLLM, no NVIDIA GPU"),
        ("0.32.0", (), "cpu", "vLLM 0.32.0, no NVIDIA GPU"),
        ("", (), "cpu", "vLLM, no NVIDIA GPU"),
        ("0.26.0", ("NVIDIA H200",) * 8, "h200", "vLLM 0.26.0, 8 x NVIDIA H200"),
        (None, ("NVIDIA H200",) * 9, "h200", "no vLLM, 9 x NVIDIA H200"),
        ("0.26.0", ("NVIDIA H200",) * 7, "vllm", "vLLM 0.26.0, 7 x NVIDIA H200"),
        ("0.26.0", (*("NVIDIA H200",) * 7, "NVIDIA L4"), "vllm", "vLLM 0.26.0, 7 x NVIDIA H200, 1 x NVIDIA L4"),
    ],
)
def test_the_example_follows_from_what_is_there(
    vllm: str | None, devices: tuple[str, ...], name: str, text: str
) -> None:
    # GIVEN what was found WHEN an example is chosen THEN it is the one that suits, and it can be told
    found = Found(vllm, devices)
    assert (found.template, str(found)) == (name, text)


def device(proc: Path, number: int, text: str) -> None:
    folder = proc / f"0000:{number:02x}:00.0"
    folder.mkdir(parents=True)
    (folder / "information").write_text(text)


def test_devices_are_those_that_the_driver_lists(tmp_path: Path) -> None:
    # GIVEN the driver's files, one of them without a model
    device(tmp_path, 2, "IRQ: 1\n")
    device(tmp_path, 1, "Model: \t\t NVIDIA H200\nIRQ: 1\n")
    # WHEN they are read THEN each device is there, and no program is asked
    found = look_around(proc=tmp_path, which=lambda name: "/no/such/program" if name == "nvidia-smi" else None)
    assert found.devices == ("NVIDIA H200", "NVIDIA GPU")


def program(folder: Path, text: str) -> str:
    file = folder / "program"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


@pytest.mark.parametrize(
    ("script", "devices"),
    [
        ("printf 'NVIDIA H200\\nNVIDIA L4\\n'", ("NVIDIA H200", "NVIDIA L4")),
        ("echo 'No devices were found'; exit 6", ()),
        ("printf '\\377'", ()),
    ],
)
def test_without_the_drivers_files_its_program_is_asked(tmp_path: Path, script: str, devices: tuple[str, ...]) -> None:
    # GIVEN no files, and a program that answers or fails WHEN it is asked THEN its lines are the devices
    smi = program(tmp_path, script)
    found = look_around(proc=tmp_path / "none", which=lambda name: smi if name == "nvidia-smi" else None)
    assert found.devices == devices


def test_a_vllm_on_the_path_counts(tmp_path: Path) -> None:
    # GIVEN a Python without vLLM
    if importlib.util.find_spec("vllm") is not None:
        pytest.skip("vLLM is installed beside moeprof")
    # WHEN the program is there, or not THEN vLLM is there, or not
    nothing = tmp_path / "none"
    assert look_around(proc=nothing, which=lambda name: "/bin/vllm" if name == "vllm" else None) == Found("", ())
    assert look_around(proc=nothing, which=lambda name: None) == Found(None, ())


def test_the_general_example_is_spread_over_the_devices(tmp_path: Path) -> None:
    # GIVEN a number of devices WHEN the example is made THEN data parallelism has that size, and nothing else differs
    file = tmp_path / "moeprof.toml"
    file.write_text(template("vllm", devices=4))
    flags = load_config(file, start=tmp_path, environ={}).arms["mega"].flags
    assert flags[flags.index("--data-parallel-size") + 1] == "4"
    assert template("vllm", devices=4) == template("vllm").replace('size", "2"', 'size", "4"')
    assert template("h200", devices=4) == template("h200")


@pytest.mark.parametrize("name", TEMPLATES)
def test_init_writes_the_example_asked_for(tmp_path: Path, name: str) -> None:
    # GIVEN a folder WHEN an example is asked for THEN it is there, whole, and nothing else is
    code, out, err = call("init", "--backend", name, str(tmp_path))
    assert (code, err) == (0, "")
    assert out.startswith(f"wrote {tmp_path}/moeprof.toml from the example {name} (as asked for)\n")
    assert [file.name for file in tmp_path.iterdir()] == ["moeprof.toml"]
    assert (tmp_path / "moeprof.toml").read_text() == template(name)  # type: ignore[arg-type]


def test_init_without_a_name_looks_around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a machine with four GPUs
    monkeypatch.setattr("moeprof.commands.init.look_around", lambda: Found("0.33.0", ("NVIDIA B200",) * 4))
    # WHEN init runs THEN it says what it found, and the file suits
    code, out, _ = call("init", str(tmp_path / "x.toml"))
    assert code == 0
    assert out.splitlines()[0].endswith("from the example vllm (found: vLLM 0.33.0, 4 x NVIDIA B200)")
    assert out.splitlines()[-1] == f"  moeprof capture --arm base --dry-run --config {tmp_path}/x.toml"
    assert (tmp_path / "x.toml").read_text() == template("vllm", devices=4)


def test_a_file_that_is_there_is_kept_unless_forced(tmp_path: Path) -> None:
    # GIVEN a file of somebody's
    file = tmp_path / "moeprof.toml"
    file.write_text("mine")
    # WHEN init runs THEN it is kept, with code 2 and the cure
    code, out, err = call("init", "--backend", "cpu", str(tmp_path))
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "moeprof: error[usage]: the file is there already",
        f"  at: {file}",
        "  try: moeprof init --force replaces it",
    ]
    assert file.read_text() == "mine"
    # WHEN it is forced THEN it is replaced
    assert call("init", "--backend", "cpu", "--force", str(tmp_path))[0] == 0
    assert file.read_text() == template("cpu")
    assert [left.name for left in tmp_path.iterdir()] == ["moeprof.toml"]


def test_a_file_that_comes_up_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a file that somebody writes after we looked, which a sync shows as the last step before ours
    file = tmp_path / "moeprof.toml"
    sync = os.fsync

    def slow(descriptor: int) -> None:
        sync(descriptor)
        file.write_text("theirs")

    monkeypatch.setattr(os, "fsync", slow)
    # WHEN we write THEN theirs stays, and nothing of ours is left
    with pytest.raises(UsageError, match="the file is there already"):
        write_new(file, "ours", force=False)
    assert [(left.name, left.read_text()) for left in tmp_path.iterdir()] == [("moeprof.toml", "theirs")]


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a disk that is full
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    # WHEN init runs, forced over a file THEN the error is told and the old file is whole
    file = tmp_path / "moeprof.toml"
    file.write_text("old")
    code, out, err = call("init", "--backend", "cpu", "--force", str(file))
    assert (code, out, err) == (2, "", "moeprof: error[io]: No space left on device\n")
    assert [(left.name, left.read_text()) for left in tmp_path.iterdir()] == [("moeprof.toml", "old")]


def test_force_writes_through_a_link(tmp_path: Path) -> None:
    # GIVEN a link to a file elsewhere
    (tmp_path / "real.toml").write_text("old")
    (tmp_path / "moeprof.toml").symlink_to("real.toml")
    # WHEN it is forced THEN the link stays and the file is new
    write_new(tmp_path / "moeprof.toml", "new", force=True)
    assert (tmp_path / "moeprof.toml").is_symlink()
    assert (tmp_path / "real.toml").read_text() == "new"


def test_folders_are_made(tmp_path: Path) -> None:
    # GIVEN paths in folders that are not there WHEN init writes them THEN a slash at the end means a folder
    assert call("init", "--backend", "cpu", str(tmp_path / "a" / "x.toml"))[0] == 0
    assert call("init", "--backend", "cpu", f"{tmp_path}/b/")[0] == 0
    assert sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.toml")) == [
        "a/x.toml",
        "b/moeprof.toml",
    ]


def test_a_file_system_without_hard_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN such a file system, which no test can mount
    def refuse(self: Path, target: Path) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    file = tmp_path / "moeprof.toml"
    # WHEN a file is written twice THEN the first stays
    write_new(file, "first", force=False)
    with pytest.raises(UsageError):
        write_new(file, "second", force=False)
    assert [(left.name, left.read_text()) for left in tmp_path.iterdir()] == [("moeprof.toml", "first")]
