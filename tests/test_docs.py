"""Tests of the documents: their links work, and the README fits one screen and names every command."""

import re
from pathlib import Path

import pytest

from embryo_core.cli import COMMANDS

REPOSITORY = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "data/*.md", "data/demo/*.md")
    for path in REPOSITORY.glob(pattern)
    if path.name != "CHANGELOG.md"
)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def headings(path: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_relative_links_work(document: Path):
    """Every file that a link names exists, and every anchor is a heading of it."""
    broken = []
    for target, anchor in LINK.findall(document.read_text(encoding="utf-8")):
        path = document.parent / target if target else document
        if not path.exists() or (anchor and anchor not in headings(path)):
            broken.append(f"{target}#{anchor}")
    assert not broken


def test_index_links_every_page():
    """Readers cannot find a page that docs/index.md does not link."""
    linked = {target for target, _ in LINK.findall((REPOSITORY / "docs" / "index.md").read_text(encoding="utf-8"))}
    assert {path.name for path in (REPOSITORY / "docs").glob("*.md")} - {"index.md"} <= linked


def test_readme_is_short_and_lists_every_command():
    """The README has at most 150 lines, with a table row for each command."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 150
    listed = set(re.findall(r"^\| `(\w+)[^`]*` \|", text, re.MULTILINE))
    assert {command.name for command in COMMANDS} <= listed
