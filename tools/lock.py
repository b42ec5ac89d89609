"""`make lock`: writes the lock files, which name every package that is installed, with its version and hashes.

    requirements.lock       what `make app` installs
    requirements-dev.lock   what `make test` installs
    requirements-gpu.lock   what torch needs besides, unless it is the build without GPU

They hold for every platform and every Python that the project supports.
"""

import re
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
BUILD = "setuptools>=77"  # builds this project; as in pyproject.toml
OF_GPU = re.compile(r"(nvidia|cuda|triton)\b")
# PyTorch's own build of torch 2.13.0 without GPU, for Python 3.11 on Linux x86-64. pip takes it where it is set up to find
# it; public registries do not have it, so its hash is noted here.
TORCH_CPU = "6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b"


def main() -> None:
    """Resolve the requirements anew: what they leave open becomes the latest version that fits."""
    everything = resolve("requirements-dev.txt")
    write("requirements-dev.lock", [entry for entry in everything if not OF_GPU.match(entry)])
    write("requirements-gpu.lock", [entry for entry in everything if OF_GPU.match(entry)])
    app = resolve("requirements.txt", "-c", "requirements-dev.lock", "-c", "requirements-gpu.lock")
    write("requirements.lock", [entry for entry in app if not OF_GPU.match(entry)])


def resolve(requirements: str, *constraints: str) -> list[str]:
    """Entries of a lock file: a package with version and marker, and a line for each hash."""
    command = ["uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"]
    command += ["--no-header", "--no-annotate", "--no-emit-package", "embryo", *constraints, requirements, "-"]
    done = subprocess.run(command, cwd=REPOSITORY, input=BUILD, check=True, capture_output=True, text=True)
    entries = re.split(r"\n(?=\S)", done.stdout.strip())
    return [f"{entry} \\\n    --hash=sha256:{TORCH_CPU}" if entry.startswith("torch==") else entry for entry in entries]


def write(name: str, entries: list[str]) -> None:
    """Write a lock file."""
    (REPOSITORY / name).write_text("\n".join(["# Written by `make lock`; edit requirements*.txt instead.", *entries, ""]))


if __name__ == "__main__":
    main()
