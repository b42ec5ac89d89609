"""The modules of the repository as syntax trees: what each one imports, and which names it uses of a package."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGES = ("app", "embryo_core", "pretrain")
MODULES = sorted(str(p.relative_to(REPOSITORY)) for package in PACKAGES for p in (REPOSITORY / package).rglob("*.py"))


@cache
def tree(module: str) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse((REPOSITORY / module).read_text(encoding="utf-8"))


@cache
def imports(module: str) -> frozenset[str]:
    """Return the dotted names that a module imports anywhere except in `if TYPE_CHECKING:` blocks, which never run."""
    return frozenset(name for node in running(tree(module)) for name in imported_names(node, module))


def public_names(package: str) -> set[str]:
    """Return the names in the __all__ of a package, or else those that it imports from its modules."""
    nodes, package_name = tree(package).body, package.removesuffix("/__init__.py").replace("/", ".")
    assigned = [node for node in nodes if isinstance(node, ast.Assign)]
    lists = [ast.literal_eval(node.value) for node in assigned if ast.unparse(node.targets[0]) == "__all__"]
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom) and is_within(str(node.module), package_name)]
    return {name for names in lists for name in names} or {alias.name for node in froms for alias in node.names}


def used_names(module: str, package: str) -> set[str]:
    """Return the names that a module imports from a package, or reads as its attributes."""
    above, _, last = package.rpartition(".")
    froms, attributes = froms_and_attributes(module)
    called = {package} | {alias or last for name, taken, alias in froms if (name, taken) == (above, last)}
    read = {name for value, name in attributes if value in called}
    return read | {taken for name, taken, _ in froms if name == package}


@cache
def froms_and_attributes(module: str) -> tuple[set[tuple[str | None, str, str | None]], set[tuple[str, str]]]:
    """Return the parts of each "from package import name as alias" and each "package.name" in a module."""
    nodes = list(ast.walk(tree(module)))
    statements = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    dotted = [node for node in nodes if isinstance(node, ast.Attribute) and is_dotted(node.value)]
    return (
        {(node.module, alias.name, alias.asname) for node in statements for alias in node.names},
        {(ast.unparse(node.value), node.attr) for node in dotted},
    )


def is_dotted(node: ast.AST) -> bool:
    """Return whether an expression is a name, or names with dots between them."""
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and is_dotted(node.value))


def running(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes of a syntax tree outside TYPE_CHECKING blocks."""
    nodes = [node]
    while nodes:
        node = nodes.pop()
        yield node
        if not (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            nodes += ast.iter_child_nodes(node)


def imported_names(node: ast.AST, module: str) -> list[str]:
    """Return the dotted names that one statement or importlib call imports: "from a import b" is a.b."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"{module} imports relatively: write the whole name"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    called = ast.unparse(node.func) if isinstance(node, ast.Call) and is_dotted(node.func) else ""
    if called in ("importlib.import_module", "import_module"):
        return [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
    if called == "distribution":
        return [node.args[0].value]  # the package's files are read
    return []


def package_of(name: str) -> str:
    """Return the first two parts of a dotted name: embryo_core.runs of embryo_core.runs.log."""
    return ".".join(name.split(".")[:2])


def is_within(name: str, package: str) -> bool:
    """Return whether a dotted name is the package or inside it."""
    return name == package or name.startswith(package + ".")
