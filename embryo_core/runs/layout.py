"""Layout of runs on disk: find a run, list its checkpoints, read and write manifests; imports nothing heavy.

    <root>/runs/<run>/run.json, log.jsonl, tokenizer/, checkpoints/step{N}/manifest.json, state/
    <root>/results/<run>/

A root is `data/` of the repository or its `data/demo/`, or the folders named in the environment variable EMBRYO_DATA.
"""

import json
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from embryo_core.errors import BrokenCheckpoint, BrokenRun, UnknownRun, UnknownStep, unknown
from embryo_core.runs.files import read_json_lines, sha256, write_json
from embryo_core.types import Checkpoint, Run

REPOSITORY = Path(__file__).resolve().parents[2]
RUN_FIELDS = ("name", "family", "objective", "config", "tokenizer_sha256", "corpus", "planned_steps", "code_version")


def roots() -> list[Path]:
    """Folders that hold `runs/` and `results/`: those in EMBRYO_DATA (separated like PATH), else data/ and data/demo/."""
    named = os.environ.get("EMBRYO_DATA")
    if named:
        return [Path(part).expanduser().resolve() for part in named.split(os.pathsep) if part]
    return [REPOSITORY / "data", REPOSITORY / "data" / "demo"]


# === Runs ===


def list_runs() -> list[Run]:
    """Every readable run under the roots, by name; a folder without a readable run.json is left out."""
    found = []
    for root in roots():
        for path in sorted((root / "runs").glob("*/run.json")):
            try:
                found.append(read_run(path.parent))
            except BrokenRun:
                continue
    return found


def open_run(name: str | Path) -> Run:
    """The run of that name under the roots, or in the folder of that path. Raises UnknownRun, BrokenRun."""
    if (Path(name) / "run.json").is_file():
        return read_run(Path(name))
    for root in roots():
        if (root / "runs" / str(name) / "run.json").is_file():
            return read_run(root / "runs" / str(name))
    known = [run.name for run in list_runs()]
    raise UnknownRun(unknown("run", str(name), known, "List them with: python -m embryo_core runs"))


def read_run(path: Path) -> Run:
    """The run in this folder. Raises BrokenRun where run.json is absent or lacks a field."""
    path = path.resolve()
    card = _read_json(path / "run.json", BrokenRun)
    missing = [name for name in RUN_FIELDS if name not in card]
    if missing:
        raise BrokenRun(f"{path / 'run.json'} lacks {', '.join(missing)}; write it again with python -m pretrain.")
    facts = {name: card[name] for name in RUN_FIELDS} | {"name": path.name}
    return Run(path=path, **facts | {"planned_steps": tuple(card["planned_steps"])})


def write_run(run: Run) -> None:
    """Write run.json (the folder is made)."""
    write_json(run.path / "run.json", {name: getattr(run, name) for name in RUN_FIELDS})


def read_log(run: Run) -> list[dict[str, Any]]:
    """Rows of log.jsonl in the order of steps; `split` is "train" or "heldout". A line cut short by a crash is dropped.

    Rows of a step that was trained again after a crash replace the earlier ones.
    """
    rows = {(row["split"], row["step"]): row for row in read_json_lines(run.path / "log.jsonl")}
    return sorted(rows.values(), key=lambda row: (row["step"], row["split"]))


def step_grid(total: int, every: int) -> tuple[int, ...]:
    """Steps at which to save: 0, powers of two, then every `every` updates, and the last one."""
    powers = {2**k for k in range(total.bit_length()) if 2**k < min(every, total)}
    return tuple(sorted({0, total} | powers | set(range(every, total, every))))


# === Checkpoints ===


def checkpoints(run: Run) -> list[Checkpoint]:
    """Checkpoints of a run in the order of steps; those without a readable manifest are left out (see `broken`)."""
    return sorted((c for _, c in _scan(run) if isinstance(c, Checkpoint)), key=lambda c: c.step)


def broken(run: Run) -> list[tuple[Path, str]]:
    """Checkpoint folders whose manifest cannot be read, each with the reason."""
    return [(path, str(c)) for path, c in _scan(run) if isinstance(c, BrokenCheckpoint)]


def checkpoint(run: Run, step: int) -> Checkpoint:
    """The run's checkpoint at exactly this step. Raises UnknownStep, naming the nearest."""
    found = checkpoints(run)
    for candidate in found:
        if candidate.step == step:
            return candidate
    if not found:
        raise UnknownStep(f"Run '{run.name}' has no checkpoint yet; continue it with python -m pretrain.")
    nearest = min(found, key=lambda c: abs(c.step - step)).step
    known = ", ".join(str(c.step) for c in found)
    raise UnknownStep(f"Run '{run.name}' has no checkpoint at step {step}; the nearest is {nearest}. Known: {known}.")


def verify(checkpoint: Checkpoint) -> None:
    """Raise BrokenCheckpoint unless every file named in the manifest is there with its sha256."""
    for name, expected in _read_json(checkpoint.path / "manifest.json", BrokenCheckpoint)["sha256"].items():
        path = checkpoint.path / name
        if not path.is_file():
            raise BrokenCheckpoint(f"{path} is missing; train this step again or delete {checkpoint.path}.")
        if sha256(path) != expected:
            raise BrokenCheckpoint(
                f"{path} is not the file in the manifest (truncated or changed); "
                f"train this step again or delete {checkpoint.path}."
            )


def write_manifest(path: Path, step: int, sequences: int, tokens: int, **more: Any) -> None:
    """Write manifest.json beside the files of a checkpoint folder, with the sha256 of each."""
    files = sorted(p for p in path.iterdir() if p.is_file() and p.name != "manifest.json")
    hashes = {p.name: sha256(p) for p in files}
    write_json(
        path / "manifest.json", {"step": step, "sequences": sequences, "tokens": tokens, "sha256": hashes, **more}
    )


def _scan(run: Run) -> Iterator[tuple[Path, Checkpoint | BrokenCheckpoint]]:
    for path in (run.path / "checkpoints").glob("step*"):
        if path.name.endswith(".tmp"):
            continue
        try:
            facts, written = _read_manifest(path)
            counts = (int(facts[name]) for name in ("sequences", "tokens"))
            yield path, Checkpoint(run, int(facts["step"]), path, *counts, written)
        except BrokenCheckpoint as error:
            yield path, error
        except (KeyError, TypeError, ValueError) as error:
            yield path, BrokenCheckpoint(f"{path / 'manifest.json'} is not a manifest: {error!r}.")


# === Files ===


def _read_json(path: Path, error: type[Exception]) -> dict[str, Any]:
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        raise error(f"{path} does not exist.") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as reason:
        raise error(f"{path} is not JSON: {reason}.") from None


def _read_manifest(folder: Path) -> tuple[dict[str, Any], int]:
    """A checkpoint's manifest and its time; it is read again only when its file is another: every query lists all."""
    path = f"{folder}/manifest.json"
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise BrokenCheckpoint(f"{path} does not exist.") from None
    return _parse_manifest(path, found.st_ino, found.st_mtime_ns, found.st_size), found.st_mtime_ns


@lru_cache(maxsize=4096)
def _parse_manifest(path: str, *_state: int) -> dict[str, Any]:
    return _read_json(Path(path), BrokenCheckpoint)
