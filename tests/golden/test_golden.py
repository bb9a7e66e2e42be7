"""The whole command line, in-process, against stored stdout, stderr and code.

A case is ``cases/NAME.args`` with one argument on a line; ``#`` starts a comment, and these lines direct the run:

- ``@cwd data`` runs in ``tests/data``, ``@cwd samples`` in ``samples``, ``@cwd shared`` in the folder of shared traces
  (skipped where there is none); otherwise in an empty folder.
- ``@env NAME=VALUE`` sets a variable.
- ``@file NAME`` also holds the file NAME, which the run writes, against ``cases/NAME_OF_CASE.file.NAME``.

The expectation is ``cases/NAME.stdout``, ``.stderr`` and ``.code``. ``make golden`` (``MOEPROF_GOLDEN=write``) rewrites them;
the difference is then reviewed. On a mismatch the text that came is kept beside them as ``.got``.
"""

from __future__ import annotations

import io
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from moeprof import __version__
from moeprof.cli import main
from tests.shared import shared_root

CASES = Path(__file__).parent / "cases"
ROOT = Path(__file__).parents[2]
FOLDERS = {
    "data": ROOT / "tests" / "data",
    "samples": ROOT / "samples",
    "shared": shared_root(),
}
WRITE = os.environ.get("MOEPROF_GOLDEN") == "write"
CLEARED = (
    "NO_COLOR",
    "FORCE_COLOR",
    "COLUMNS",
    "TERM",
    "CI",
    "GITHUB_ACTIONS",
    "GITHUB_STEP_SUMMARY",
    "MOEPROF_STORE",
    "_MOEPROF_COMPLETE",
)


@dataclass
class Case:
    """A command line and the circumstances it runs in."""

    argv: list[str] = field(default_factory=list)
    folder: str | None = None
    environ: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)


def read(path: Path) -> Case:
    """Return the case of an ``.args`` file."""
    case = Case()
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("@"):
            word, _, value = line.partition(" ")
            if word == "@cwd":
                case.folder = value
            elif word == "@env":
                name, _, text = value.partition("=")
                case.environ[name] = text
            elif word == "@file":
                case.files.append(value)
            else:
                raise ValueError(f"{path.name}: {word} is no direction")
        elif line and not line.startswith("#"):
            case.argv.append(line)
    return case


def neutral(text: str) -> str:
    """Return text without what differs between builds: the versions."""
    text = re.sub(r"\((native module not installed|native [^)]*)\)", "(NATIVE)", text)
    return text.replace(f"moeprof {__version__}", "moeprof VERSION")


def check(path: Path, text: str) -> str | None:
    """Hold text against a stored file, or store it; return what is wrong."""
    got = path.with_name(f"{path.name}.got")
    if WRITE:
        path.write_text(text, encoding="utf-8", newline="\n")
    if path.exists() and path.read_text(encoding="utf-8") == text:
        got.unlink(missing_ok=True)
        return None
    got.write_text(text, encoding="utf-8", newline="\n")
    return f"{got.name} differs from {path.name}" if path.exists() else f"{path.name} is not stored"


@pytest.mark.parametrize("name", sorted(path.stem for path in CASES.glob("*.args")))
def test_golden(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a stored command line in its folder and environment
    case = read(CASES / f"{name}.args")
    folder = FOLDERS[case.folder] if case.folder else tmp_path
    if not folder.is_dir():
        pytest.skip(f"no folder of {case.folder} traces on this machine")
    for variable in CLEARED:
        monkeypatch.delenv(variable, raising=False)
    for variable, value in case.environ.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(folder)
    out, err = io.StringIO(), io.StringIO()
    # WHEN it runs
    code = main([argument.replace("{tmp}", str(tmp_path)) for argument in case.argv], out, err)
    # THEN each stream, the code and each file are what is stored
    came = {"stdout": neutral(out.getvalue()), "stderr": neutral(err.getvalue()), "code": f"{code}\n"}
    for file in case.files:
        came[f"file.{file}"] = (tmp_path / file).read_text(encoding="utf-8")
    problems = [check(CASES / f"{name}.{part}", text.replace(str(tmp_path), "{tmp}")) for part, text in came.items()]
    assert [problem for problem in problems if problem] == []


def test_every_stored_file_belongs_to_a_case() -> None:
    # GIVEN the stored files THEN none is left over from a case that is gone
    names = {path.stem for path in CASES.glob("*.args")}
    left = [path.name for path in CASES.iterdir() if not any(path.name.startswith(f"{name}.") for name in names)]
    assert left == []
