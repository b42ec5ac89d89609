"""The list of files in docs/architecture.md is current; `make tree` writes it anew."""

from tools import tree


def test_the_file_tree_is_current():
    """What `make tree` would write is what the document has."""
    document = tree.DOCUMENT.read_text(encoding="utf-8")
    assert tree.replaced(document) == document, "run: make tree"


def test_every_python_file_says_what_it_is_for():
    """A file without a first sentence would be a name without a role."""
    files = [path for root in tree.ROOTS for path in (tree.REPOSITORY / root).rglob("*.py") if path.stat().st_size]
    assert files and not [str(path) for path in files if not tree.role(path)]
