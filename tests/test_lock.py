"""The lock files name all that is installed, in the versions that the requirements ask for, each with its hashes."""

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
INSTALLED = {  # requirements, and the locks that are installed for them
    "requirements.txt": ("requirements.lock", "requirements-torch-cpu.lock"),
    "requirements-dev.txt": ("requirements-dev.lock", "requirements-torch-cpu.lock"),
}
ENTRY = re.compile(r"([\w.-]+)==(\S+)((?: ; [^\\\n]+)?)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")


@cache
def pins(name: str) -> dict[str, set[str]]:
    """Versions of each package in a lock file, which has nothing but packages with hashes below its first line."""
    head, _, text = (REPOSITORY / name).read_text(encoding="utf-8").partition("\n")
    assert head.startswith("# ")
    entries = list(ENTRY.finditer(text))
    assert "".join(entry[0] for entry in entries) == text, f"{name} has a line that is no package with its hashes"
    found: dict[str, set[str]] = {}
    for entry in entries:
        found.setdefault(entry[1], set()).add(entry[2])
    return found


def required(name: str) -> list[Requirement]:
    """Return what a requirements file asks for, including the files that it includes."""
    found = []
    for line in (REPOSITORY / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            found += required(line.removeprefix("-r "))
        elif not line.startswith(("#", "-e")):
            found.append(Requirement(line))
    return found


@pytest.mark.parametrize("name", LOCKS)
def test_every_line_is_a_package_with_hashes(name: str):
    """Nothing else: no address of an index, no option, no package without a hash."""
    assert pins(name) and "://" not in (REPOSITORY / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("requirements", INSTALLED)
def test_every_requirement_is_locked_as_it_is_asked_for(requirements: str):
    """A requirement that was changed alone is a red test: run `make lock`."""
    locked = {package: versions for name in INSTALLED[requirements] for package, versions in pins(name).items()}
    for requirement in required(requirements):
        versions = locked.get(canonicalize_name(requirement.name), set())
        assert versions and all(requirement.specifier.contains(version) for version in versions), requirement


@pytest.mark.parametrize("requirements", INSTALLED)
def test_all_that_a_requirement_needs_is_locked(requirements: str):
    """Package by package, as the installed ones say; nothing is left for an index to choose.

    Requirements that pyproject.toml overrides for uv are as it has them.
    """
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    overridden = {own["name"]: own["requires-dist"] for own in project["tool"]["uv"]["dependency-metadata"]}
    locked = {package for name in INSTALLED[requirements] for package in pins(name)}
    waiting, seen = required(requirements), set()
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


def test_the_locks_agree():
    """What is in two of them has one version, torch's build aside."""
    everything = pins("requirements-dev.lock")
    assert all(everything[package] == versions for package, versions in pins("requirements.lock").items())
    builds = [pins(name)["torch"] for name in ("requirements-torch.lock", "requirements-torch-cpu.lock")]
    assert len({Version(version).public for versions in builds for version in versions}) == 1


def test_what_builds_this_project_is_locked():
    """It is installed without a build of its own surroundings, for which no hash would be asked."""
    assert "setuptools" in pins("requirements.lock")
    assert f'requires = ["{lock.BUILD}"]' in (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")


def test_make_installs_from_the_locks_alone():
    """With hashes required and wheels only; the project itself brings nothing along."""
    text = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert text.count("python -m pip install") == 2
    assert "pip install --quiet --require-hashes --no-deps --only-binary :all: -r" in text
    assert "pip install --quiet --no-deps --no-build-isolation -e ." in text


@pytest.mark.skipif(sys.platform != "linux", reason="PyPI's torch has no CUDA elsewhere")
def test_make_takes_torch_without_cuda_unless_it_is_asked_for(tmp_path: Path):
    """From PyTorch's own index, with PyPI's as the fallback; TORCH=cuda takes PyPI's alone."""

    def commands(*options: str) -> list[str]:
        target = tmp_path / "venv"
        command = ["make", "--dry-run", f"VENV={target}", *options, f"{target}/app.installed"]
        done = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
        return re.findall(r"requirements-torch\S*\.lock|https://\S+", done.stdout)

    first, index, *_, last = commands()
    assert (first, index, last) == ("requirements-torch-cpu.lock", lock.CPU_INDEX, "requirements-torch.lock")
    assert commands("TORCH=cuda") == ["requirements-torch.lock"]


def test_a_lock_of_another_torch_is_never_kept(monkeypatch: pytest.MonkeyPatch):
    """An index that is not reached leaves a lock of the same version as it is, and is an error for a new one."""
    monkeypatch.setattr(lock, "CPU_INDEX", "http://127.0.0.1:1")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    path = REPOSITORY / "requirements-torch-cpu.lock"
    before = path.read_bytes()
    (version,) = pins("requirements-torch.lock")["torch"]
    lock.write_cpu_torch(f"torch=={version}")
    with pytest.raises(SystemExit, match="requirements-torch-cpu"):
        lock.write_cpu_torch("torch==99.0")
    assert path.read_bytes() == before


def test_pip_takes_the_lock():
    """Its own parser finds every package pinned, with a hash."""
    options = "--dry-run --quiet --no-index --require-hashes --no-deps -r requirements.lock".split()
    command = [sys.executable, "-m", "pip", "install", *options]
    done = subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
