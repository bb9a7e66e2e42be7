"""The page on findings lists every slug, once, and none that the program does not know."""

from __future__ import annotations

import ast
import re
from collections import Counter

from tests.docs.blocks import ROOT

PAGE = ROOT / "docs" / "findings.md"
SOURCES = sorted((ROOT / "src" / "moeprof").rglob("*.py"))
NOTICES = ROOT / "docs" / "native.md"  # the reader's notices become findings of the same slug


def documented() -> list[str]:
    return re.findall(r"^\| `([a-z0-9-]+)` \| (?:note|warning|error)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def raised() -> set[str]:
    """Return the slugs that are written out where findings are made."""
    slugs = set()
    for file in SOURCES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
                given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "slug")]
                slugs |= {
                    item.value for item in given if isinstance(item, ast.Constant) and isinstance(item.value, str)
                }
    return slugs


def test_every_finding_is_explained_once() -> None:
    # GIVEN the slugs that the program writes out
    # WHEN the page is read
    counts = Counter(documented())
    # THEN each is there, once
    assert sorted(raised() - set(counts)) == []
    assert [slug for slug, times in counts.items() if times > 1] == []


def test_every_explained_finding_exists() -> None:
    # GIVEN the page
    # WHEN its slugs are looked up in the sources and among the reader's notices
    known = "\n".join(file.read_text(encoding="utf-8") for file in SOURCES) + NOTICES.read_text(encoding="utf-8")
    missing = [slug for slug in documented() if f'"{slug}"' not in known and f"`{slug}`" not in known]
    # THEN all are there
    assert documented()
    assert missing == []
