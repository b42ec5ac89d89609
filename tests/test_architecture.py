"""Tests of the architecture: forbidden imports, light modules, requirements, names and docstrings."""

import ast
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.source_tree import (
    MODULES,
    PACKAGES,
    REPOSITORY,
    imports,
    is_within,
    package_of,
    public_names,
    tree,
    used_names,
)

RUNS = tuple(module for module in MODULES if module.startswith("embryo_core/runs/"))
COMMANDS = tuple(module for module in MODULES if module.startswith("embryo_core/commands/"))
GROUND_FLOOR = "__init__ __main__ types measurements errors words groups metric cli study plots".split()
CORPORA = tuple(
    module
    for module in MODULES
    if module.startswith("embryo_core/corpora/") and not module.endswith(("minimal_pairs.py", "fetch.py"))
)
LOCKS = "embryo_core/runs/atomic_files.py"
CHECKS = "embryo_core/tokenizers/checks.py"
LIGHT = (
    *(RUNS + COMMANDS + CORPORA),
    *(f"embryo_core/{name}.py" for name in GROUND_FLOOR if name not in ("study", "plots")),
    "embryo_core/engine/capabilities.py",
    CHECKS,
)


# === Imports that must never exist ===


@dataclass(frozen=True)
class Wall:
    """A rule that modules under `package` import nothing of `never`, except the files and folders in `doors`."""

    package: str
    never: tuple[str, ...]
    doors: tuple[str, ...] = ()


TORCH_PACKAGE = "embryo_core/engine/"
CONVERTED = "embryo_core/tokenizers/conversion.py"
TRAINED_ON_TOP = ("embryo_core/metrics/probing/", "embryo_core/finetune/")
WALLS = (
    Wall("app/", ("tensorflow", "keras", "pretrain", "pyarrow", "torch", "transformers")),
    Wall("embryo_core/figures/", ("streamlit",)),
    Wall("app/views/", ("embryo_core.results",)),
    Wall("embryo_core/", ("streamlit", "app", "pretrain", "tensorflow", "keras")),
    Wall("embryo_core/", ("torch", "transformers"), doors=(TORCH_PACKAGE, CONVERTED, *TRAINED_ON_TOP)),
    Wall("embryo_core/", ("pyarrow",), doors=("embryo_core/results/",)),
    Wall("pretrain/", ("app", "streamlit")),
)


@pytest.mark.parametrize("wall", WALLS, ids=lambda wall: f"{wall.package} without {', '.join(wall.never)}")
def test_forbidden_imports_do_not_exist(wall: Wall):
    """Imports inside functions count too."""
    packages = [module for module in MODULES if module.startswith(wall.package) and not module.startswith(wall.doors)]
    through = [(m, name) for m in packages for name in imports(m) for never in wall.never if is_within(name, never)]
    assert packages and not through


def test_imports_between_packages_have_no_cycle():
    """Rooms, and modules beside them, import each other in one direction only, also through others."""
    arrows: dict[str, set[str]] = {}
    for module in MODULES:
        package_name = package_of(module.removesuffix(".py").replace("/", "."))
        arrows.setdefault(package_name, set()).update({package_of(name) for name in imports(module)} - {package_name})
    TopologicalSorter(arrows).prepare()


def test_only_shared_modules_and_entry_points_are_outside_packages():
    """Every other module of embryo_core is in a package."""
    beside = {Path(module).stem for module in MODULES if re.fullmatch(r"embryo_core/\w+\.py", module)}
    assert beside == set(GROUND_FLOOR)


def test_only_results_read_and_write_parquet():
    """No module outside embryo_core/results calls read_parquet or to_parquet."""
    users = {
        module
        for module in MODULES
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Attribute) and node.attr in ("read_parquet", "to_parquet")
    }
    assert all(user.startswith("embryo_core/results/") for user in users)


def test_pretraining_imports_only_the_layout_of_runs():
    """Of embryo_core it imports only runs, types, errors, the check of tokenizer files, and how fast bfloat16 is."""
    modules = "runs types errors tokenizers.checks engine.device".split()
    allowed = [f"embryo_core.{module}" for module in modules]
    used = {
        (module, name)
        for module in MODULES
        if module.startswith("pretrain/")
        for name in imports(module)
        if is_within(name, "embryo_core") and name != "embryo_core"
    }
    assert used and not {use for use in used if not any(is_within(use[1], name) for name in allowed)}


def test_light_modules_import_only_the_standard_library():
    """Every command imports these modules. They need the standard library and each other; runs/ also needs msgspec.

    Every reader of runs needs msgspec at once, and its import takes about ten milliseconds.
    """
    light = sys.stdlib_module_names | {"embryo_core"}
    imported = {(module, name.split(".")[0]) for module in LIGHT for name in imports(module)}
    allowed = {(module, "msgspec") for module in (*RUNS, CHECKS)} | {(LOCKS, "filelock")}  # imported by a lock
    assert not {(module, name) for module, name in imported - allowed if name not in light}


@pytest.mark.parametrize(
    ("modules", "heavy"),
    [
        (
            "embryo_core.types, embryo_core.errors, embryo_core.runs, embryo_core.corpora, embryo_core.cli",
            "numpy pandas pyarrow torch transformers streamlit pydantic",
        ),
        ("embryo_core.curves", "torch transformers tokenizers tensorflow keras streamlit plotly"),
    ],
    ids=("vocabulary", "curves"),
)
def test_importing_light_packages_loads_no_heavy_package(modules: str, heavy: str):
    """A fresh Python lists the modules that are loaded after the import."""
    loaded = run_python(f"import sys, {modules}; print(*sys.modules)")
    assert not set(heavy.split()) & set(loaded.split())


def test_opening_the_dashboard_imports_no_torch(tiny_results):
    """The first page of a run with results loads neither torch nor transformers nor TensorFlow."""
    loaded = run_python(
        "import sys; from streamlit.testing.v1 import AppTest;"
        "page = AppTest.from_file('app/main.py', default_timeout=60).run();"
        "assert not page.exception and not page.error, (page.exception, page.error);"
        "print(*sys.modules)",
        EMBRYO_DATA=str(tiny_results.path.parents[1]),
    )
    assert not {"torch", "transformers", "tensorflow", "keras", "pretrain"} & set(loaded.split())


# === Requirements ===


def test_requirements_equal_the_imported_packages():
    """requirements.txt names what app and embryo_core import and what plotly uses; pretrain's file adds to it.

    What only one command needs is in a separate file, or in pretrain's.
    """
    assert requirements("requirements-cluster.txt") == {"ray"}  # `evaluate --ray`
    apart = {"datasets", "ray", "tensorboard"}  # needed by `fetch glue`, `evaluate --ray`, `export --to tensorboard`
    needed = third_party("app/", "embryo_core/") - apart
    assert needed | {"orjson", "kaleido", "nbformat"} == requirements("requirements.txt")  # plotly uses them
    backends = {"jax", "torch"}  # Keras backends for an accelerator, which its user installs
    missing = third_party("pretrain/") - backends - needed - requirements("requirements-pretrain.txt")
    assert not missing


def test_versions_in_requirements_are_exact():
    """An installation then has the versions that were tested."""
    for path in REPOSITORY.glob("requirements*.txt"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert re.match(r"#|-e \.$|-r \S+\.txt$|[\w-]+==[\w.]+(; .+)?$", line), f"{path.name}: {line}"


# === Names and docstrings ===


def test_every_module_begins_with_a_sentence():
    """The first paragraph of its docstring is a whole sentence; only an empty __init__.py has none."""
    empty = {module for module in MODULES if not tree(module).body}
    assert all(module.endswith("__init__.py") for module in empty)
    openings = {module: (ast.get_docstring(tree(module)) or "").split("\n\n")[0] for module in MODULES}
    unclear = {module for module, opening in openings.items() if not re.fullmatch(r"[\w`].*[.:?)]", opening, re.DOTALL)}
    assert not unclear - empty


@pytest.mark.parametrize("package", [module for module in MODULES if module.endswith("__init__.py")])
def test_packages_list_the_names_that_others_import(package: str):
    """Nothing else of a package is imported except its modules."""
    listed = public_names(package)
    assert bool(listed) == any(not isinstance(node, ast.Expr) for node in tree(package).body)
    modules = {path.stem for path in (REPOSITORY / package.removesuffix("__init__.py")).iterdir()}
    package_name = package.removesuffix("/__init__.py").replace("/", ".")
    inside = {
        name.removeprefix(f"{package_name}.") for m in MODULES for name in imports(m) if is_within(name, package_name)
    } - {package_name}
    assert {name.split(".")[0] for name in inside} <= listed | modules


@pytest.mark.parametrize("package", [m for m in MODULES if m.endswith("__init__.py") and m.count("/") > 1])
def test_every_offered_name_is_used_outside_its_package(package: str):
    """A use is an import of the name or an access to it as an attribute of the package."""
    package_name = package.removesuffix("/__init__.py")
    outside = [path for folder in (*PACKAGES, "tests", "benchmarks") for path in (REPOSITORY / folder).rglob("*.py")]
    users = [
        str(path.relative_to(REPOSITORY)) for path in outside if not path.is_relative_to(REPOSITORY / package_name)
    ]
    unused = public_names(package) - {
        name for user in users for name in used_names(user, package_name.replace("/", "."))
    }
    assert not unused


def test_model_families_are_named_only_in_their_own_files():
    """Other modules ask for a layout or a capability instead."""
    named = [
        (module, node.value)
        for module in MODULES
        if "families/" not in module
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Constant) and node.value in ("albert", "bert", "electra")
    ]
    assert not named


def test_no_module_is_called_utils_or_helpers():
    """A module is named for its job."""
    assert not [m for m in MODULES if re.search(r"(^|/)_?(utils?|common|helpers?|misc)(/|\.py)", m)]


# === References for the comparisons ===


def third_party(*packages: str) -> set[str]:
    """Return the distributions that the modules of these packages import."""
    names = {name.split(".")[0] for module in MODULES if module.startswith(packages) for name in imports(module)}
    return names - set(sys.stdlib_module_names) - set(PACKAGES)


def requirements(file: str) -> set[str]:
    """Return the import names of one requirements file, without the files that it includes."""
    lines = (REPOSITORY / file).read_text(encoding="utf-8").splitlines()
    imported_as = {"tensorflow-cpu": "tensorflow", "pillow": "PIL", "scikit-learn": "sklearn"}
    names = {line.split("==")[0] for line in lines if "==" in line}
    return {imported_as.get(name, name) for name in names}


def run_python(code: str, **environment: str) -> str:
    """Run code in a fresh Python in the repository and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
