"""Tests of the installed package: its dependencies, its files and its command."""

import importlib
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGES = ("app", "embryo_core", "pretrain")


@pytest.mark.parametrize(
    ("listed", "file"),
    [
        (PROJECT["dependencies"], "requirements.txt"),
        (PROJECT["optional-dependencies"]["pretrain"], "requirements-pretrain.txt"),
    ],
    ids=("app", "pretrain"),
)
def test_dependencies_allow_the_required_versions_or_later(listed: list[str], file: str):
    """Packages and systems are those of the requirements, and the tested version is allowed."""
    lines = (REPOSITORY / file).read_text(encoding="utf-8").splitlines()
    tested = [Requirement(line) for line in lines if "==" in line and not line.startswith("#")]
    allowed = list(map(Requirement, listed))
    assert [(entry.name, str(entry.marker)) for entry in allowed] == [
        (entry.name, str(entry.marker)) for entry in tested
    ]
    assert all(one.specifier.contains(str(two.specifier)[2:]) for one, two in zip(allowed, tested, strict=True))
    assert all(str(Requirement(line).specifier).startswith(">=") for line in listed)


def test_wheel_has_every_file_of_the_packages(tmp_path: Path):
    """Besides modules it has scripts, styles, the server's settings and both licence files."""
    source = tmp_path / "source"
    shutil.copytree(REPOSITORY, source, ignore=_all_but_packages)
    command = [sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation", "-w", str(tmp_path)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    held = {name for name in names if name.startswith(PACKAGES)}
    assert held == {
        str(path.relative_to(source)) for name in PACKAGES for path in (source / name).rglob("*") if path.is_file()
    }
    licences = {Path(name).name for name in names if ".dist-info/licenses/" in name}
    assert licences == {"LICENSE", "THIRD_PARTY_NOTICES.md"}


def _all_but_packages(folder: str, names: list[str]) -> set[str]:
    kept = {*PACKAGES, "pyproject.toml", "README.md", *PROJECT["license-files"]}
    return {name for name in names if name == "__pycache__" or (Path(folder) == REPOSITORY and name not in kept)}


def test_command_of_the_package_exists():
    """The command `embryo` is the command line of embryo_core."""
    module, _, name = PROJECT["scripts"]["embryo"].partition(":")
    assert callable(getattr(importlib.import_module(module), name))
