"""`make lock`: writes the lock files, which name every package that is installed, with its version and hashes.

    requirements.lock         what `make app` installs, but for torch
    requirements-dev.lock     what `make test` installs, but for torch
    requirements-torch.lock   torch, and the libraries for GPUs that it asks for on Linux

They hold for every platform and every Python that the project supports. `requirements-torch-cpu.lock` is kept by hand.
"""

import re
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
BUILD = "setuptools>=77"  # builds this project; as in pyproject.toml
TORCH = re.compile(r"(torch|triton|nvidia-[\w-]+|cuda-[\w-]+)==")


def main() -> None:
    """Resolve the requirements anew: what they leave open becomes the latest version that fits."""
    everything = resolve("requirements-dev.txt")
    write("requirements-dev.lock", [entry for entry in everything if not TORCH.match(entry)])
    write("requirements-torch.lock", [entry for entry in everything if TORCH.match(entry)])
    app = resolve("requirements.txt", "-c", "requirements-dev.lock", "-c", "requirements-torch.lock")
    write("requirements.lock", [entry for entry in app if not TORCH.match(entry)])


def resolve(requirements: str, *constraints: str) -> list[str]:
    """Entries of a lock file: a package with version and marker, and a line for each hash."""
    command = ["uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"]
    command += ["--no-header", "--no-annotate", "--no-emit-package", "embryo", *constraints, requirements, "-"]
    done = subprocess.run(command, cwd=REPOSITORY, input=BUILD, check=True, capture_output=True, text=True)
    return re.split(r"\n(?=\S)", done.stdout.strip())


def write(name: str, entries: list[str]) -> None:
    """Write a lock file."""
    head = "# Written by `make lock`; edit requirements*.txt instead."
    (REPOSITORY / name).write_text("\n".join([head, *entries, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
