"""The contract's page names every slug an error can have."""

from __future__ import annotations

import re
from pathlib import Path

from moeprof import errors

ROOT = Path(__file__).parents[2]


def test_every_error_slug_is_in_the_contract() -> None:
    # GIVEN the catalogue, and the two slugs of errors that no class of ours stands for
    page = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")
    slugs = {
        str(vars(item)["slug"]) for item in vars(errors).values() if isinstance(item, type) and "slug" in vars(item)
    }
    source = (ROOT / "src" / "moeprof" / "commands" / "crash.py").read_text(encoding="utf-8")
    slugs |= set(re.findall(r'_message\(\s*"([a-z-]+)"', source))
    # WHEN the page is searched THEN each is there
    assert {"io", "internal", "native-missing"} <= slugs
    assert sorted(slug for slug in slugs - {"error"} if f"`{slug}`" not in page) == []
