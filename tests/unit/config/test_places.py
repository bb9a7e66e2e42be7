"""The line of a key, in every way that TOML lets it be written."""

from __future__ import annotations

from moeprof.config.places import lines_of

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
