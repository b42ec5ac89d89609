"""Tests of the list of files in docs/architecture.md, which `make tree` writes."""

from tools import tree


def test_file_tree_is_current():
    """Running `make tree` would not change the document."""
    document = tree.DOCUMENT.read_text(encoding="utf-8")
    assert tree.updated(document) == document, "run: make tree"


def test_every_python_file_begins_with_its_role():
    """The list shows the first sentence of each file."""
    files = [path for root in tree.ROOTS for path in (tree.REPOSITORY / root).rglob("*.py") if path.stat().st_size]
    assert files and not [str(path) for path in files if not tree.role(path)]
