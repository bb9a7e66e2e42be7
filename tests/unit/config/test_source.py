"""Where the configuration is found, and what is said where it is not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from moeprof.config.load import load_config
from moeprof.errors import ConfigError, InputNotFoundError

from .files import LEAST

ROOT = Path(__file__).parents[3]
PYPROJECT = "[project]\nname = 'x'\n\n" + LEAST.replace("[", "[tool.moeprof.").replace("= [tool.moeprof.", "= [")


def folders(root: Path) -> Path:
    deep = root / "repo" / "a" / "b"
    deep.mkdir(parents=True)
    (root / "repo" / ".git").mkdir()
    return deep


def test_the_nearest_file_upwards_is_used(tmp_path: Path) -> None:
    # GIVEN a file in the root of a repository and one nearer
    deep = folders(tmp_path)
    for folder in (tmp_path / "repo", tmp_path / "repo" / "a"):
        (folder / "moeprof.toml").write_text(LEAST)
    # WHEN it is looked for from below
    config = load_config(None, start=deep)
    # THEN the nearer one is read
    assert config.source == str(tmp_path / "repo" / "a" / "moeprof.toml")
    assert config.folder == tmp_path / "repo" / "a"


def test_the_search_stops_at_the_root_of_the_repository(tmp_path: Path) -> None:
    # GIVEN a file above the repository only
    deep = folders(tmp_path)
    (tmp_path / "moeprof.toml").write_text(LEAST)
    # WHEN it is looked for from inside
    # THEN it is not taken, and the error says what to do
    with pytest.raises(ConfigError) as caught:
        load_config(None, start=deep)
    assert caught.value.message == "no moeprof.toml and no [tool.moeprof] in a pyproject.toml, here or above"
    assert (caught.value.path, caught.value.hint) == (str(deep), "moeprof init writes one")


def test_a_pyproject_is_read_and_gives_way_to_a_file_beside_it(tmp_path: Path) -> None:
    # GIVEN a pyproject.toml with our table, above one without
    deep = folders(tmp_path)
    (deep / "pyproject.toml").write_text("[project]\nname = 'y'\n")
    (tmp_path / "repo" / "pyproject.toml").write_text(PYPROJECT)
    # WHEN it is looked for
    # THEN the one with our table is read
    assert load_config(None, start=deep).source == str(tmp_path / "repo" / "pyproject.toml")
    # WHEN a file of our own is beside it THEN that one is read
    (tmp_path / "repo" / "moeprof.toml").write_text(LEAST)
    assert load_config(None, start=deep).source == str(tmp_path / "repo" / "moeprof.toml")


def test_errors_in_a_pyproject_name_its_tables_and_lines(tmp_path: Path) -> None:
    # GIVEN a pyproject.toml with a wrong key
    file = tmp_path / "pyproject.toml"
    file.write_text(PYPROJECT.replace("input_len", "input_length"))
    # WHEN it is read THEN table and line are those of the file
    with pytest.raises(ConfigError) as caught:
        load_config(file, start=tmp_path)
    assert caught.value.message == "unknown key 'input_length' in [tool.moeprof.workloads.decode]"
    assert (caught.value.line, caught.value.hint) == (10, "did you mean 'input_len'?")


def test_somebody_elses_broken_pyproject_is_passed_over(tmp_path: Path) -> None:
    # GIVEN a pyproject.toml that is no TOML and has nothing of ours, below our file
    deep = folders(tmp_path)
    (deep / "pyproject.toml").write_text("[project\n")
    (tmp_path / "repo" / "moeprof.toml").write_text(LEAST)
    # WHEN ours is looked for THEN it is found
    assert load_config(None, start=deep).source == str(tmp_path / "repo" / "moeprof.toml")


def test_a_folder_stands_for_the_file_in_it(tmp_path: Path) -> None:
    # GIVEN a folder with a file WHEN the folder is named THEN the file is read
    (tmp_path / "moeprof.toml").write_text(LEAST)
    assert load_config(tmp_path, start=Path("/")).source == str(tmp_path / "moeprof.toml")


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    # WHEN a file is named that does not exist THEN that is the error
    with pytest.raises(InputNotFoundError, match="cannot read the configuration: No such file or directory"):
        load_config(tmp_path / "other.toml", start=tmp_path)


def test_a_named_pyproject_must_have_our_table(tmp_path: Path) -> None:
    # GIVEN a pyproject.toml without our table WHEN it is named THEN that is the error
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'moeprof'\n")
    with pytest.raises(ConfigError, match=r"the file has no table \[tool.moeprof\]"):
        load_config(tmp_path / "pyproject.toml", start=tmp_path)


@pytest.mark.parametrize(
    ("data", "message", "line", "byte"),
    [
        (b"[server]\nmodel = \n", "the configuration is not valid TOML: Invalid value", 2, None),
        (b"[server]\nmodel = '\xff'\n", "the configuration is not UTF-8 text", None, 18),
        (b"[server]\n[server]\n", "the configuration is not valid TOML: Cannot declare ('server',) twice", 2, None),
    ],
)
def test_what_is_no_toml_is_told_with_its_place(
    tmp_path: Path, data: bytes, message: str, line: int | None, byte: int | None
) -> None:
    # GIVEN a broken file WHEN it is read THEN the error says what and where
    (tmp_path / "moeprof.toml").write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        load_config(None, start=tmp_path)
    assert (caught.value.message, caught.value.line, caught.value.byte) == (message, line, byte)


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    # GIVEN a file as some editors write it WHEN it is read THEN it loads
    (tmp_path / "moeprof.toml").write_text(LEAST, encoding="utf-8-sig")
    assert list(load_config(None, start=tmp_path).arms) == ["base"]


def test_reading_needs_the_standard_library_only() -> None:
    # GIVEN a fresh interpreter WHEN the configuration's modules are imported THEN nothing else comes along
    names = ("checks", "describe", "init", "load")
    code = f"import json, sys\nbefore = set(sys.modules)\nfrom moeprof.config import {', '.join(names)}\n"
    code += "print(json.dumps(sorted({name.partition('.')[0] for name in set(sys.modules) - before})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert set(json.loads(done.stdout)) - set(sys.stdlib_module_names) == {"moeprof"}
