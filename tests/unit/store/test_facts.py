"""What a block ran on is asked of the real machine, git and interpreter; what is unknown is None."""

from __future__ import annotations

import hashlib
import platform
import subprocess
import sys
from pathlib import Path

from moeprof import __version__
from moeprof.store import facts


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_revision_of_a_working_tree(tmp_path: Path) -> None:
    # GIVEN a repository with a commit
    git(tmp_path, "init", "-q")
    (tmp_path / "f").write_text("1")
    git(tmp_path, "add", "f")
    git(tmp_path, "commit", "-qm", "x")
    revision = git(tmp_path, "rev-parse", "HEAD").strip()
    # THEN it is clean, also with a new file that nobody added, and dirty once a file is changed
    (tmp_path / "new").write_text("")
    assert facts.git(tmp_path) == {"revision": revision, "dirty": False}
    (tmp_path / "f").write_text("2")
    assert facts.git(tmp_path) == {"revision": revision, "dirty": True}


def test_no_working_tree(tmp_path: Path) -> None:
    # GIVEN a folder that is in no repository, and one that does not exist THEN nothing is known
    unknown = {"revision": None, "dirty": None}
    assert facts.git(tmp_path) == unknown
    assert facts.git(tmp_path / "absent") == unknown


def test_a_model(tmp_path: Path) -> None:
    # GIVEN a model folder with a configuration THEN its digest identifies it
    (tmp_path / "config.json").write_text("{}")
    assert facts.model(str(tmp_path)) == {"path": str(tmp_path), "config_sha256": hashlib.sha256(b"{}").hexdigest()}
    # WHEN it is the name of a model elsewhere, or none THEN the digest is not known
    assert facts.model("org/model") == {"path": "org/model", "config_sha256": None}
    assert facts.model(None) == {"path": None, "config_sha256": None}


def test_versions_of_the_server(tmp_path: Path) -> None:
    # WHEN no interpreter is named THEN the server's versions are left out
    own = facts.versions()
    assert (own["moeprof"], own["python"], own["platform"]) == (
        __version__,
        platform.python_version(),
        platform.platform(),
    )
    assert "server_python" not in own
    # WHEN one is named THEN it is asked; one that does not answer is None
    assert facts.versions(sys.executable)["server_python"] == platform.python_version()
    assert facts.versions(str(tmp_path / "python"))["server_python"] is None


def test_hardware() -> None:
    # WHEN the machine is described THEN every member is there
    machine = facts.hardware()
    assert sorted(machine) == ["cpu", "cpus", "gpus", "host", "machine", "memory_bytes"]
    assert isinstance(machine["memory_bytes"], int) and machine["memory_bytes"] > 0
