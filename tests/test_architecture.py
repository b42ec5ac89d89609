"""The house keeps its walls: imports that must never exist, light modules and docstrings."""

import ast
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.source_tree import MODULES, PACKAGES, REPOSITORY, imports, offered, room_of, taken, tree, within

RUNS = tuple(module for module in MODULES if module.startswith("embryo_core/runs/"))
COMMANDS = tuple(module for module in MODULES if module.startswith("embryo_core/commands/"))
GROUND_FLOOR = "__init__ __main__ types errors words metric cli study plots".split()
CORPORA = tuple(
    module
    for module in MODULES
    if module.startswith("embryo_core/corpora/") and not module.endswith(("baselines.py", "fetch.py"))
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
    """Modules under `room` never import anything of `never`; files and folders in `doors` may."""

    room: str
    never: tuple[str, ...]
    doors: tuple[str, ...] = ()


TORCH_ROOM = "embryo_core/engine/"
CONVERTED = "embryo_core/tokenizers/conversion.py"
TRAINED_ON_TOP = ("embryo_core/metrics/probing/", "embryo_core/finetune/")
WALLS = (
    Wall("app/", ("tensorflow", "keras", "pretrain", "pyarrow", "torch", "transformers")),
    Wall("embryo_core/figures/", ("streamlit",)),
    Wall("app/views/", ("embryo_core.results",)),
    Wall("embryo_core/", ("streamlit", "app", "pretrain", "tensorflow", "keras")),
    Wall("embryo_core/", ("torch", "transformers"), doors=(TORCH_ROOM, CONVERTED, *TRAINED_ON_TOP)),
    Wall("embryo_core/", ("pyarrow",), doors=("embryo_core/results/",)),
    Wall("pretrain/", ("app", "streamlit")),
)


@pytest.mark.parametrize("wall", WALLS, ids=lambda wall: f"{wall.room} without {', '.join(wall.never)}")
def test_no_import_goes_through_a_wall(wall: Wall):
    """A room imports nothing that its wall keeps out, not even inside a function."""
    rooms = [module for module in MODULES if module.startswith(wall.room) and not module.startswith(wall.doors)]
    through = [(m, name) for m in rooms for name in imports(m) for never in wall.never if within(name, never)]
    assert rooms and not through


def test_arrows_between_rooms_go_in_one_direction():
    """No room, nor a module beside the rooms, imports what imports it, over however many others."""
    arrows: dict[str, set[str]] = {}
    for module in MODULES:
        room = room_of(module.removesuffix(".py").replace("/", "."))
        arrows.setdefault(room, set()).update({room_of(name) for name in imports(module)} - {room})
    TopologicalSorter(arrows).prepare()


def test_a_module_stands_in_a_room():
    """Beside the rooms of embryo_core are only what all of them use and the ways in."""
    beside = {Path(module).stem for module in MODULES if re.fullmatch(r"embryo_core/\w+\.py", module)}
    assert beside == set(GROUND_FLOOR)


def test_parquet_is_read_and_written_in_one_room():
    """Only embryo_core/results calls read_parquet or to_parquet."""
    users = {
        module
        for module in MODULES
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Attribute) and node.attr in ("read_parquet", "to_parquet")
    }
    assert all(user.startswith("embryo_core/results/") for user in users)


def test_pretraining_knows_only_the_layout_of_runs():
    """Pretrain imports nothing of embryo_core but runs, types, errors and the check of tokenizer files."""
    allowed = ("embryo_core.runs", "embryo_core.types", "embryo_core.errors", "embryo_core.tokenizers.checks")
    used = {
        (module, name)
        for module in MODULES
        if module.startswith("pretrain/")
        for name in imports(module)
        if within(name, "embryo_core") and name != "embryo_core"
    }
    assert used and not {use for use in used if not any(within(use[1], name) for name in allowed)}


@pytest.mark.parametrize("module", LIGHT)
def test_light_modules_import_next_to_nothing(module: str):
    """The ground floor that every command imports needs the standard library and each other; runs/ needs msgspec too.

    Every reader of runs needs msgspec at once, and its import takes about ten milliseconds.
    """
    names = {name.split(".")[0] for name in imports(module)}
    allowed = {"msgspec"} if module in RUNS or module == CHECKS else set()
    allowed |= {"filelock"} if module == LOCKS else set()  # imported when a lock is taken
    assert names <= sys.stdlib_module_names | {"embryo_core"} | allowed


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
def test_importing_pulls_in_nothing_heavy(modules: str, heavy: str):
    """What a fresh Python has loaded after the import holds none of the heavy packages."""
    loaded = run_python(f"import sys, {modules}; print(*sys.modules)")
    assert not set(heavy.split()) & set(loaded.split())


def test_opening_the_dashboard_imports_no_torch(tiny_results):
    """The first page, shown on a run with results, has loaded neither torch nor transformers nor TensorFlow."""
    loaded = run_python(
        "import sys; from streamlit.testing.v1 import AppTest;"
        "page = AppTest.from_file('app/main.py', default_timeout=60).run();"
        "assert not page.exception and not page.error, (page.exception, page.error);"
        "print(*sys.modules)",
        EMBRYO_DATA=str(tiny_results.path.parents[1]),
    )
    assert not {"torch", "transformers", "tensorflow", "keras", "pretrain"} & set(loaded.split())


# === Requirements ===


def test_requirements_are_what_is_imported():
    """requirements.txt names all that app and embryo_core import, and what plotly uses; pretrain's file completes it.

    What one command alone needs has a file of its own, or is in pretrain's.
    """
    assert requirements("requirements-cluster.txt") == {"ray"}  # `evaluate --ray`
    apart = {"datasets", "ray", "tensorboard"}  # asked for by `fetch glue`, `evaluate --ray`, `export --to tensorboard`
    needed = third_party("app/", "embryo_core/") - apart
    assert needed | {"orjson", "kaleido", "nbformat"} == requirements("requirements.txt")  # plotly uses them
    backends = {"jax", "torch"}  # an accelerator's own Keras backend, installed by its user
    missing = third_party("pretrain/") - backends - needed - requirements("requirements-pretrain.txt")
    assert not missing


def test_versions_are_exact():
    """Every requirement names one version, so that an installation is the one that was tested."""
    for path in REPOSITORY.glob("requirements*.txt"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert re.match(r"#|-e \.$|-r \S+\.txt$|[\w-]+==[\w.]+(; .+)?$", line), f"{path.name}: {line}"


# === Names and docstrings ===


@pytest.mark.parametrize("module", MODULES)
def test_every_module_opens_with_a_sentence(module: str):
    """A module's docstring begins with a paragraph that is a whole sentence; only an empty __init__.py has none."""
    if not tree(module).body:
        assert module.endswith("__init__.py")
        return
    opening = (ast.get_docstring(tree(module)) or "").split("\n\n")[0]
    assert re.fullmatch(r"[\w`].*[.:?)]", opening, re.DOTALL)


@pytest.mark.parametrize("package", [module for module in MODULES if module.endswith("__init__.py")])
def test_a_package_lists_what_it_offers(package: str):
    """A package that is more than a folder offers names, and nothing else of it is imported but its modules."""
    listed = offered(package)
    assert bool(listed) == any(not isinstance(node, ast.Expr) for node in tree(package).body)
    modules = {path.stem for path in (REPOSITORY / package.removesuffix("__init__.py")).iterdir()}
    room = package.removesuffix("/__init__.py").replace("/", ".")
    inside = {name.removeprefix(f"{room}.") for m in MODULES for name in imports(m) if within(name, room)} - {room}
    assert {name.split(".")[0] for name in inside} <= listed | modules


@pytest.mark.parametrize("package", [m for m in MODULES if m.endswith("__init__.py") and m.count("/") > 1])
def test_what_a_room_offers_is_used(package: str):
    """Every name that a room offers is imported, or taken off the room, by a file outside it."""
    room = package.removesuffix("/__init__.py")
    outside = [path for folder in (*PACKAGES, "tests", "benchmarks") for path in (REPOSITORY / folder).rglob("*.py")]
    users = [str(path.relative_to(REPOSITORY)) for path in outside if not path.is_relative_to(REPOSITORY / room)]
    unused = offered(package) - {name for user in users for name in taken(user, room.replace("/", "."))}
    assert not unused


def test_a_family_is_named_in_its_own_files_alone():
    """Elsewhere a layout or a capability says what a family is like."""
    named = [
        (module, node.value)
        for module in MODULES
        if "families/" not in module
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Constant) and node.value in ("albert", "bert", "electra")
    ]
    assert not named


def test_no_module_is_named_for_leftovers():
    """No utils, common or helpers: a module is named for its job."""
    assert not [m for m in MODULES if re.search(r"(^|/)_?(utils?|common|helpers?|misc)(/|\.py)", m)]


# === What is compared with the modules ===


def third_party(*rooms: str) -> set[str]:
    """Distributions that the modules of these rooms import."""
    names = {name.split(".")[0] for module in MODULES if module.startswith(rooms) for name in imports(module)}
    return names - set(sys.stdlib_module_names) - set(PACKAGES)


def requirements(file: str) -> set[str]:
    """Import names in one requirements file, without the files that it includes."""
    lines = (REPOSITORY / file).read_text(encoding="utf-8").splitlines()
    imported_as = {"tensorflow-cpu": "tensorflow", "pillow": "PIL", "scikit-learn": "sklearn"}
    names = {line.split("==")[0] for line in lines if "==" in line}
    return {imported_as.get(name, name) for name in names}


def run_python(code: str, **environment: str) -> str:
    """Run this code in a fresh Python in the repository, and return what it prints."""
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
