"""Write the file tree of docs/architecture.md (`make tree`): each file with its role.

The role of a Python file is the first sentence of its docstring, and the role of a folder is the role of its
`__init__.py`. Scripts and styles have their role in an opening comment.
"""

import ast
import re
import textwrap
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
DOCUMENT = REPOSITORY / "docs" / "architecture.md"
ROOTS = ("app", "embryo_core", "pretrain", "benchmarks", "tools")  # folders of the tree
BEGIN, END = "<!-- begin: written by `make tree` -->", "<!-- end -->"
WIDTH, COLUMN = 120, 32  # characters of a line, and the column at which roles begin
FIRST_SENTENCE = re.compile(r".+?[.?](?=\s|$)", re.DOTALL)
OPENING_COMMENT = re.compile(r"(?://[^\n]*\n)+|/\*.*?\*/|<!--.*?-->", re.DOTALL)
COMMENT_SIGNS = re.compile(r"^(?://|/\*|<!--)|(?:\*/|-->)$", re.MULTILINE)
# roles of files without an opening comment, by suffix
WITHOUT_COMMENT = {".html": "Markup of {}.js", ".css": "Styles of {}.js", ".js": "", ".svg": "Icon of the browser tab"}


def main() -> None:
    """Replace the tree in docs/architecture.md."""
    DOCUMENT.write_text(updated(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")


def updated(document: str) -> str:
    """Return the document with the current tree between its two markers."""
    before, _, rest = document.partition(BEGIN)
    after = rest.partition(END)[2]
    tree = "\n".join(line for root in ROOTS for line in folder_lines(REPOSITORY / root, depth=0))
    return f"{before}{BEGIN}\n```\n{tree}\n```\n{END}{after}"


def folder_lines(folder: Path, depth: int) -> list[str]:
    """Return the lines of a folder: first its name, then its files, then its subfolders."""
    children = [path for path in sorted(folder.iterdir()) if not path.name.startswith((".", "__pycache__"))]
    lines = entry(f"{folder.name}/", role(folder / "__init__.py"), depth)
    for path in children:
        if path.is_file() and path.suffix in (".py", *WITHOUT_COMMENT) and path.name != "__init__.py":
            lines += entry(path.name, role(path), depth + 1)
    for path in children:
        if path.is_dir() and any(path.rglob("*.py")):
            lines += folder_lines(path, depth + 1)
    return lines


def entry(name: str, role: str, depth: int) -> list[str]:
    """Return the lines of a name and its role, wrapped and indented by `depth`."""
    head = f"{'  ' * depth}{name} ".ljust(COLUMN)
    return textwrap.wrap(role, WIDTH, initial_indent=head, subsequent_indent=" " * COLUMN) or [head.rstrip()]


def role(path: Path) -> str:
    """Return the first sentence that describes a file, without its full stop; "" if the file has no description."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if path.suffix == ".py":
        description = ast.get_docstring(ast.parse(text)) or ""
    elif comment := OPENING_COMMENT.match(text):
        description = COMMENT_SIGNS.sub("", comment[0].strip())
    else:
        description = WITHOUT_COMMENT[path.suffix].format(path.stem)
    description = " ".join(description.split())
    sentence = FIRST_SENTENCE.match(description)
    return (sentence[0] if sentence else description).rstrip(".")


if __name__ == "__main__":
    main()
