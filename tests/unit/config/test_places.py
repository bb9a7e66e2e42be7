"""The line of a key, in every way that TOML lets it be written."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from moeprof.config.places import lines_of

ROOT = Path(__file__).parents[3]
FILES = sorted(
    [ROOT / "pyproject.toml", *ROOT.glob("crates/*/Cargo.toml"), *(ROOT / "src").rglob("*.toml"), ROOT / "Cargo.lock"]
)

TEXT = """\
# comment [not.a.table]
top = 1

[arms.base]          # comment
flags = [
  "--a", "x = 1",    # ] not the end
  "[no.table]",
  ["nested"],
]
env.A = "1"
"quoted key" = 'it''s'
text = \"\"\"
[no.header]
no = "key"
\"\"\"
after = '''
also = 1'''
[ arms . "we.st" ]
table = { inner = 1, other = [1, 2] }
date = 2026-11-30T20:00:00Z
[[many]]
one = 1
[[many]]
one = 2
"""


def test_keys_and_headers_are_found_past_strings_lists_and_comments() -> None:
    # GIVEN a text with what looks like keys and headers inside comments, lists and strings
    text = TEXT.replace("'it''s'", "'its'")
    # WHEN its lines are listed
    found = lines_of(text)
    # THEN only what is a key or header is there; of repeated ones the first
    assert found == {
        ("top",): 2,
        ("arms", "base"): 4,
        ("arms", "base", "flags"): 5,
        ("arms", "base", "env", "A"): 10,
        ("arms", "base", "quoted key"): 11,
        ("arms", "base", "text"): 12,
        ("arms", "base", "after"): 16,
        ("arms", "we.st"): 18,
        ("arms", "we.st", "table"): 19,
        ("arms", "we.st", "date"): 20,
        ("many",): 21,
        ("many", "one"): 22,
    }


def test_windows_line_ends_and_a_missing_last_one() -> None:
    # GIVEN a text with CR LF and none at the end
    # WHEN its lines are listed
    # THEN they are counted as usual
    assert lines_of("a = 1\r\n[b]\r\nc = 'x' # d") == {("a",): 1, ("b",): 2, ("b", "c"): 3}


def test_an_empty_text_has_no_keys() -> None:
    # WHEN there is nothing but comments THEN nothing is found, and the search ends
    assert lines_of("") == {}
    assert lines_of("# only a comment") == {}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_real_files_have_each_key_where_it_is_said_to_be(file: Path) -> None:
    # GIVEN a file that the standard library reads
    text = file.read_text(encoding="utf-8")
    data = tomllib.loads(text)
    # WHEN its lines are listed
    found = lines_of(text)
    # THEN each path is in the data, its last key is on the line, and every top table is there
    assert {path[0] for path in found} == set(data)
    for path, line in found.items():
        values: list[object] = [data]
        for key in path:
            values = [item[key] for item in values if isinstance(item, dict) and key in item]
            values = [part for item in values for part in (item if isinstance(item, list) and item else [item])]
        assert values, path
        assert path[-1] in text.splitlines()[line - 1]
