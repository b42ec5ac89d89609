"""Run `tools/gpu_reference.sh` on a machine without a network: pack its inputs here, collect its outputs there.

    python -m tools.gpu_kit pack data/cache/0123456789abcdef gpu-kit     prepared text and wheels, in parcels
    python -m tools.gpu_kit collect RUN OUT                              log, tokenizer, eight checkpoints

The machine has Python, torch, JAX, CUDA, numpy, tokenizers and safetensors. The repository's files are copied there
unchanged.
"""

import argparse
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from embryo_core import runs
from embryo_core.curves.step_scales import log_spaced

PARCEL = 60 * 2**20  # bytes: the largest parcel
LARGEST = 16 * 2**20  # bytes: the largest collected file
CHECKPOINTS = 8  # largest number of collected checkpoints
# Keras, and dependencies that the machine with the GPU may lack
WHEELS = "keras h5py optree namex rich markdown-it-py mdurl pygments absl-py packaging msgspec filelock tqdm".split()
LOCK_FILE = Path(__file__).resolve().parents[1] / "requirements-dev.lock"


def pack(corpus: Path, folder: Path, wheels: Sequence[Path] = ()) -> list[Path]:
    """Write a prepared corpus and wheels as parcels of at most 60 MiB; return their paths, part-00, part-01, ..."""
    folder.mkdir(parents=True)
    kit = folder / "kit.tar.xz"
    with tarfile.open(kit, "w:xz", preset=1) as archive:
        archive.add(corpus, "corpus")
        for wheel in wheels:
            archive.add(wheel, f"wheels/{wheel.name}")
    parcels: list[Path] = []
    with kit.open("rb") as source:
        while part := source.read(PARCEL):
            parcels.append(folder / f"part-{len(parcels):02}")
            parcels[-1].write_bytes(part)
    kit.unlink()
    return parcels


def download_wheels(folder: Path, python: str) -> list[Path]:
    """Download WHEELS in the locked versions, for Linux and a version of Python such as "3.12"; return their paths."""
    locked_versions = [line.split()[0] for line in LOCK_FILE.read_text(encoding="utf-8").splitlines() if "==" in line]
    requirements = [entry for entry in locked_versions if entry.split("==")[0] in WHEELS]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    platforms = [f"--platform=manylinux{name}_x86_64" for name in ("2014", "_2_17", "_2_27", "_2_28")]
    subprocess.run([*command, *platforms, f"--python-version={python}", f"--dest={folder}", *requirements], check=True)
    return sorted(folder.glob("*.whl"))


def collect(run_folder: Path, folder: Path) -> list[int]:
    """Copy a run with at most eight log-spaced checkpoints; return their steps. Raises ValueError for a large file."""
    run = runs.open_run(run_folder)
    checkpoints = [checkpoint for checkpoint in runs.checkpoints(run) if checkpoint.has_weights]
    selected_steps = set(log_spaced([checkpoint.step for checkpoint in checkpoints], CHECKPOINTS))
    selected = [checkpoint for checkpoint in checkpoints if checkpoint.step in selected_steps]
    files = [path for checkpoint in selected for path in checkpoint.path.rglob("*") if path.is_file()]
    files += [path for path in run.path.iterdir() if path.is_file()] + sorted(run.tokenizer.iterdir())
    if large := [path for path in files if path.stat().st_size > LARGEST]:
        raise ValueError(f"{large[0]} is larger than {LARGEST >> 20} MiB; train a smaller model.")
    for path in files:
        copy = folder / run.name / path.relative_to(run.path)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    return [checkpoint.step for checkpoint in selected]


def main() -> None:
    """Parse the command line, and pack or collect."""
    parse = argparse.ArgumentParser(prog="python -m tools.gpu_kit", description=__doc__)
    commands = parse.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack", help="write parcels")
    packing.add_argument("corpus", type=Path, help="a prepared corpus: a folder of the cache of pretraining")
    packing.add_argument("folder", type=Path, help="a new folder for the parcels")
    packing.add_argument("--python", default="3.12", help="of the machine with the GPU; default: 3.12")
    collecting = commands.add_parser("collect", help="copy a run without what is large")
    collecting.add_argument("run", type=Path)
    collecting.add_argument("folder", type=Path)
    options = parse.parse_args()
    if options.command == "pack":
        wheels = options.folder.with_name(f"{options.folder.name}-wheels")
        for path in pack(options.corpus, options.folder, download_wheels(wheels, options.python)):
            print(f"{path} ({path.stat().st_size / 2**20:.1f} MiB)")
        shutil.rmtree(wheels)
    else:
        print("collected steps", *collect(options.run, options.folder))


if __name__ == "__main__":
    main()
