"""Tests of the lock files: they pin everything that is installed, at the required versions, with hashes."""

import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tools import lock

REPOSITORY = Path(__file__).resolve().parents[1]
LOCKS = sorted(path.name for path in REPOSITORY.glob("requirements*.lock"))
INSTALLED = {  # requirements, and the locks installed for them
    "requirements.txt": ("requirements.lock", "requirements-torch-cpu.lock"),
    "requirements-dev.txt": ("requirements-dev.lock", "requirements-torch-cpu.lock"),
}
ENTRY = re.compile(r"([\w.-]+)==(\S+)((?: ; [^\\\n]+)?)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")


@cache
def pinned_versions(name: str) -> dict[str, set[str]]:
    """Return the versions of each package in a lock file; check that it has only packages with hashes after line 1."""
    head, _, text = (REPOSITORY / name).read_text(encoding="utf-8").partition("\n")
    assert head.startswith("# ")
    entries = list(ENTRY.finditer(text))
    assert "".join(entry[0] for entry in entries) == text, f"{name} has a line that is no package with its hashes"
    versions: dict[str, set[str]] = {}
    for entry in entries:
        versions.setdefault(entry[1], set()).add(entry[2])
    return versions


def required_packages(name: str) -> list[Requirement]:
    """Return the requirements of a file, including those of the files that it includes."""
    requirements = []
    for line in (REPOSITORY / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            requirements += required_packages(line.removeprefix("-r "))
        elif not line.startswith(("#", "-e")):
            requirements.append(Requirement(line))
    return requirements


@pytest.mark.parametrize("name", LOCKS)
def test_every_line_is_a_package_with_hashes(name: str):
    """A lock file has no address of an index, no option, and no package without a hash."""
    assert pinned_versions(name) and "://" not in (REPOSITORY / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("requirements", INSTALLED)
def test_locked_versions_satisfy_the_requirements(requirements: str):
    """After a change of requirements alone this test fails until `make lock` is run."""
    locked = {
        package: versions for name in INSTALLED[requirements] for package, versions in pinned_versions(name).items()
    }
    for requirement in required_packages(requirements):
        versions = locked.get(canonicalize_name(requirement.name), set())
        assert versions and all(requirement.specifier.contains(version) for version in versions), requirement


@pytest.mark.parametrize("requirements", INSTALLED)
def test_dependencies_of_every_requirement_are_locked(requirements: str):
    """The installed packages list them, so that no version is left for an index to choose.

    Requirements that pyproject.toml overrides for uv are taken from there.
    """
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    overridden = {own["name"]: own["requires-dist"] for own in project["tool"]["uv"]["dependency-metadata"]}
    locked = {package for name in INSTALLED[requirements] for package in pinned_versions(name)}
    waiting, seen = required_packages(requirements), set()
    while waiting:
        requirement = waiting.pop()
        extras = requirement.extras or {""}
        needed = requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras)
        if not needed or (name := canonicalize_name(requirement.name)) in seen:
            continue
        seen.add(name)
        assert name in locked, f"{name} is not in {' or '.join(INSTALLED[requirements])}; run: make lock"
        for line in overridden.get(name, metadata.requires(name)) or ():
            inner = Requirement(line)
            if inner.marker is None or any(inner.marker.evaluate({"extra": extra}) for extra in extras):
                inner.marker = None
                waiting.append(inner)


def test_lock_files_agree():
    """A package in two of them has one version, apart from the build of torch."""
    everything = pinned_versions("requirements-dev.lock")
    assert all(everything[package] == versions for package, versions in pinned_versions("requirements.lock").items())
    builds = [pinned_versions(name)["torch"] for name in ("requirements-torch.lock", "requirements-torch-cpu.lock")]
    assert len({Version(version).public for versions in builds for version in versions}) == 1


def test_build_backend_is_locked():
    """The project is installed without build isolation, which would fetch the backend without a hash."""
    assert "setuptools" in pinned_versions("requirements.lock")
    assert f'requires = ["{lock.BUILD}"]' in (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")


def test_make_installs_only_from_lock_files():
    """Hashes and wheels are required, and the project itself is installed without dependencies."""
    text = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert text.count("python -m pip install") == 2
    assert "pip install --quiet --require-hashes --no-deps --only-binary :all: -r" in text
    assert "pip install --quiet --no-deps --no-build-isolation -e ." in text


@pytest.mark.skipif(sys.platform != "linux", reason="PyPI's torch has no CUDA elsewhere")
def test_make_installs_torch_without_cuda_by_default(tmp_path: Path):
    """Torch comes from PyTorch's index, with PyPI's lock as fallback; TORCH=cuda uses only PyPI's."""

    def commands(*options: str) -> list[str]:
        target = tmp_path / "venv"
        command = ["make", "--dry-run", f"VENV={target}", *options, f"{target}/app.installed"]
        done = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
        return re.findall(r"requirements-torch\S*\.lock|https://\S+", done.stdout)

    first, index, *_, last = commands()
    assert (first, index, last) == ("requirements-torch-cpu.lock", lock.CPU_INDEX, "requirements-torch.lock")
    assert commands("TORCH=cuda") == ["requirements-torch.lock"]


def test_unreachable_index_keeps_only_a_lock_of_the_same_torch(monkeypatch: pytest.MonkeyPatch):
    """Without the index a lock of the same version stays as it is, and a new version is an error."""
    monkeypatch.setattr(lock, "CPU_INDEX", "http://127.0.0.1:1")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    path = REPOSITORY / "requirements-torch-cpu.lock"
    before = path.read_bytes()
    (version,) = pinned_versions("requirements-torch.lock")["torch"]
    lock.write_cpu_torch(f"torch=={version}")
    with pytest.raises(SystemExit, match="requirements-torch-cpu"):
        lock.write_cpu_torch("torch==99.0")
    assert path.read_bytes() == before


def test_pip_accepts_the_lock_file():
    """The parser of pip finds every package pinned and with a hash."""
    options = "--dry-run --quiet --no-index --require-hashes --no-deps -r requirements.lock".split()
    command = [sys.executable, "-m", "pip", "install", *options]
    done = subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
