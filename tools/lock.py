"""`make lock`: write the lock files, which list every installed package with its version and hashes.

    requirements.lock            what `make app` installs, except torch
    requirements-dev.lock        what `make test` installs, except torch
    requirements-torch.lock      torch from PyPI, with the CUDA libraries that it requires on Linux
    requirements-torch-cpu.lock  the same version of torch without CUDA, for Linux, from PyTorch's own index

They apply to every platform and every Python version that the project supports.
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
CPU_INDEX = "https://download.pytorch.org/whl/cpu"  # also in the Makefile
BUILD = "setuptools>=77"  # builds this project; also in pyproject.toml
TORCH_PATTERN = re.compile(r"(torch|triton|nvidia-[\w-]+|cuda-[\w-]+)==")  # packages of the locks of torch
HEADER = "# Written by `make lock`; edit requirements*.txt instead."
CPU_HEADER = "# torch without CUDA for Linux, from PyTorch's own index. Written by `make lock`."


def main() -> None:
    """Resolve the requirements to the latest versions that satisfy them, and write the lock files."""
    everything = resolve("requirements-dev.txt")
    torch = [entry for entry in everything if TORCH_PATTERN.match(entry)]
    write("requirements-dev.lock", HEADER, [entry for entry in everything if entry not in torch])
    write("requirements-torch.lock", HEADER, torch)
    app = resolve("requirements.txt", "-c", "requirements-dev.lock", "-c", "requirements-torch.lock")
    write("requirements.lock", HEADER, [entry for entry in app if not TORCH_PATTERN.match(entry)])
    write_cpu_torch(next(entry.split()[0] for entry in torch if entry.startswith("torch==")))


def write_cpu_torch(requirement: str) -> None:
    """Write the lock of torch without CUDA, with a hash for each wheel in the index.

    If the index cannot be read, keep the present lock if it has the same version of torch; otherwise exit with an
    error.
    """
    name, cpu_requirement = "requirements-torch-cpu.lock", f"{requirement}+cpu"
    try:
        entries = resolve(
            "-", "--no-deps", "--index-url", CPU_INDEX, requirement=f"{cpu_requirement} ; sys_platform == 'linux'"
        )
    except subprocess.CalledProcessError as error:
        if cpu_requirement not in (REPOSITORY / name).read_text(encoding="utf-8"):
            sys.exit(f"{name} needs {cpu_requirement} from {CPU_INDEX}, which cannot be read:\n{error.stderr}")
        print(f"{name} stays as it is, as {CPU_INDEX} cannot be read.", file=sys.stderr)
    else:
        write(name, CPU_HEADER, entries)


def resolve(requirements: str, *options: str, requirement: str = "") -> list[str]:
    """Return the entries of a lock file for a requirements file and BUILD, or for `requirement` alone.

    An entry is a package with version and marker, and a line for each hash. Raises CalledProcessError.
    """
    uv = str(Path(sys.executable).with_name("uv"))  # uv of the current environment
    command = [uv, "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"]
    command += ["--no-header", "--no-annotate", "--no-emit-package", "embryo", *options, requirements]
    command += [] if requirement else ["-"]
    process = subprocess.run(
        command, cwd=REPOSITORY, input=requirement or BUILD, check=True, capture_output=True, text=True
    )
    return re.split(r"\n(?=\S)", process.stdout.strip())


def write(name: str, head: str, entries: Iterable[str]) -> None:
    """Write a lock file into the repository."""
    (REPOSITORY / name).write_text("\n".join([head, *entries, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
