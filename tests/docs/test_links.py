"""Every link between the project's pages leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.blocks import FENCE, ROOT

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PAGES = sorted(
    [*ROOT.glob("*.md"), *(p for d in ("docs", "samples", "benchmarks", "news") for p in (ROOT / d).rglob("*.md"))]
)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere; addresses outside the project are not looked at."""
    found = []
    for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            found.append(target)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    # GIVEN a page
    # WHEN its links are followed
    # THEN all of them lead somewhere
    assert broken(page) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    # GIVEN a page with links to a file, to a heading, to neither, and to the outside
    page = tmp_path / "a.md"
    page.write_text(
        "# One two\n[a](a.md) [b](#one-two) [c](b.md) [d](#three) [e](https://example.org)\n", encoding="utf-8"
    )
    # WHEN they are followed
    # THEN the two that lead nowhere are named
    assert broken(page) == ["b.md", "#three"]
