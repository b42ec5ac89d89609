"""Find the checkpoints of a run by their manifests, and write manifests."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from embryo_core.errors import BrokenCheckpoint, MissingWeights, UnknownStep
from embryo_core.runs.atomic_files import UNFINISHED, sha256, write_json
from embryo_core.runs.pointers import ADDED_FILE, follow, list_state
from embryo_core.runs.schema import Manifest, PointerCard
from embryo_core.runs.snapshot import read_once
from embryo_core.runs.trust import State, read_unchanged, refusal, state_of
from embryo_core.types import Checkpoint, Pointer, Run
from embryo_core.words import list_steps, quantity

GENERATOR = "generator"
MAX_LISTED = 10  # broken checkpoints that are listed with reasons; further ones are counted
MAX_CHECKPOINTS = 16_384  # folders that are read; one message reports further ones
MAX_SCANS = 64  # cached scans of runs

ScannedFolder = tuple[Path, Checkpoint | BrokenCheckpoint]
# scans by run, states of its manifests, and state of the list of allowed places
_scanned: dict[tuple[Run, tuple, State], list[ScannedFolder]] = {}


# === Finding ===


def checkpoints(run: Run) -> list[Checkpoint]:
    """Return the readable checkpoints of a run in the order of steps; `broken_checkpoints` returns the rest."""
    readable = (checkpoint for _, checkpoint in _scan(run) if isinstance(checkpoint, Checkpoint))
    return sorted(readable, key=lambda checkpoint: checkpoint.step)


@read_once
def checkpoints_digest(run: Run) -> str:
    """Return a hash that changes when a checkpoint is added, removed or rewritten."""
    mtimes = [(str(checkpoint.path), checkpoint.manifest_mtime) for checkpoint in checkpoints(run)]
    return blake2b(repr(mtimes).encode()).hexdigest()


def broken_checkpoints(run: Run) -> list[tuple[Path, str]]:
    """Return the checkpoint folders whose manifest cannot be read, with reasons; after `MAX_LISTED`, a count."""
    reasons = [(path, str(reason)) for path, reason in _scan(run) if isinstance(reason, BrokenCheckpoint)]
    if (more := len(reasons) - MAX_LISTED) > 0:
        rest = f"{more:,} more checkpoints of run '{run.name}' cannot be read."
        return [*reasons[:MAX_LISTED], (run.path / "checkpoints", rest)]
    return reasons


def checkpoint(run: Run, step: int) -> Checkpoint:
    """Return the run's checkpoint at exactly this step.

    Raises UnknownStep, which names the nearest step, or BrokenCheckpoint if the manifest cannot be read.
    """
    return _pick(run, checkpoints(run), step)


def _pick(run: Run, checkpoints: list[Checkpoint], step: int) -> Checkpoint:
    """Return the checkpoint at this step among the readable ones of a run. Raises as `checkpoint` does."""
    for candidate in checkpoints:
        if candidate.step == step:
            return candidate
    unread = {path.name: reason for path, reason in broken_checkpoints(run)}
    if reason := unread.get(f"step{step}"):
        raise BrokenCheckpoint(reason)
    if unread and not checkpoints:
        raise UnknownStep(f"Run '{run.name}' has no checkpoint that can be read: {next(iter(unread.values()))}")
    if not checkpoints:
        raise UnknownStep(f"Run '{run.name}' has no checkpoint yet; continue it with python -m pretrain.")
    nearest = min(checkpoints, key=lambda c: abs(c.step - step)).step
    steps = ", ".join(str(c.step) for c in checkpoints)
    raise UnknownStep(f"Run '{run.name}' has no checkpoint at step {step}; the nearest is {nearest}. Known: {steps}.")


def loadable_checkpoints(run: Run, steps: Iterable[int] | None = None) -> list[Checkpoint]:
    """Return the checkpoints of a run that have their weights, at these steps or at all, in the order of steps.

    Raises as `checkpoint` does, UnknownStep also for a run without checkpoints, and MissingWeights if a given step, or
    every step, has lost its weights.
    """
    existing = checkpoints(run)
    if not existing:
        _pick(run, existing, 0)  # raises UnknownStep with the command that makes checkpoints
    if steps is not None:
        chosen = [_pick(run, existing, step) for step in sorted(set(steps))]
        if missing := next((candidate for candidate in chosen if not candidate.has_weights), None):
            raise missing_weights_error(missing)
        return chosen
    if not any(candidate.has_weights for candidate in existing):
        raise MissingWeights(
            f"Run '{run.name}' has results and no weights to compute with; copy its weights back, or name another run."
        )
    return [candidate for candidate in existing if candidate.has_weights]


def steps_without_weights(run: Run) -> set[int]:
    """Return the steps of a run whose checkpoints have lost their weights."""
    return {candidate.step for candidate in checkpoints(run) if not candidate.has_weights}


def explain_missing_weights(checkpoints: Iterable[Checkpoint]) -> list[str]:
    """Return a sentence on the checkpoints without weights, as a list; empty if all have their weights."""
    checkpoints = [*checkpoints]
    without = {candidate.step: candidate.run.step_unit for candidate in checkpoints if not candidate.has_weights}
    if not without:
        return []
    if kept_count := len(checkpoints) - len(without):
        return [f"{kept_count:,} of {quantity(len(checkpoints), 'checkpoint')} kept their weights."]
    return [f"No weights were kept at {list_steps(sorted(without), next(iter(without.values())))}."]


def missing_weights_error(checkpoint: Checkpoint) -> MissingWeights:
    """Return the error for a checkpoint that has lost its weights; it names the nearest step that has them."""
    steps = [other.step for other in checkpoints(checkpoint.run) if other.has_weights]
    nearest = f"the nearest step with weights is {min(steps, key=lambda step: abs(step - checkpoint.step))}"
    return MissingWeights(
        f"Step {checkpoint.step} of run '{checkpoint.run.name}' has results and no weights to compute with; "
        f"{nearest if steps else 'no other step has weights'}."
    )


def generator(checkpoint: Checkpoint) -> Checkpoint | None:
    """Return the generator in an ELECTRA's checkpoint, which predicts masked words, or None without one.

    Raises BrokenCheckpoint if its weights are outside the run and its manifest cannot be read, or this user may not
    read them.
    """
    path = checkpoint.path / GENERATOR
    inside = checkpoint.path.name == GENERATOR  # a generator has no generator
    if inside or not (path / "config.json").is_file():
        return None
    weights = read_manifest(path, checkpoint.run.path)[0].weights if checkpoint.pointer else None
    return replace(checkpoint, path=path, pointer=_pointer(checkpoint.run, weights, path))


@read_once
def _scan(run: Run) -> list[ScannedFolder]:
    """Return each checkpoint folder, sorted by name, with the checkpoint or the error of reading it."""
    folder = run.path / "checkpoints"
    try:
        listed = os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as reason:
        return [(folder, refusal(folder, reason, BrokenCheckpoint))]
    names = sorted(name for name in listed if name.startswith("step") and not name.endswith(UNFINISHED))
    states = {name: state_of(f"{folder}/{name}/manifest.json") for name in names[:MAX_CHECKPOINTS]}
    key = run, tuple(states.items()), list_state(ADDED_FILE)
    if (scanned := _scanned.get(key)) is None:
        scanned = [*_read_folders(run, states)]
        # scans with errors are not cached, since these may be temporary
        if all(states.values()) and all(isinstance(entry, Checkpoint) for _, entry in scanned):
            if len(_scanned) >= MAX_SCANS:
                _scanned.clear()
            _scanned[key] = scanned
    if len(names) <= MAX_CHECKPOINTS:
        return scanned
    problem = f"has {len(names):,} folders (the maximum is {MAX_CHECKPOINTS:,})"
    return [*scanned, (folder, refusal(folder, problem, BrokenCheckpoint))]


def _read_folders(run: Run, names: Iterable[str]) -> Iterator[ScannedFolder]:
    """Yield each of these folders with the checkpoint or the error of reading it."""
    seen = dict[int, Path]()
    for path in (run.path / "checkpoints" / name for name in names):
        try:
            manifest, mtime = read_manifest(path, run.path)
            pointer = _pointer(run, manifest.weights, path)
            if (first := seen.setdefault(manifest.step, path)) is not path:
                raise refusal(path, f"has step {manifest.step}, which {first.name} has too", BrokenCheckpoint)
        except BrokenCheckpoint as error:
            yield path, error
        else:
            counts = manifest.step, path, manifest.sequences, manifest.tokens
            yield path, Checkpoint(run, *counts, mtime, not manifest.removed, pointer)


def _pointer(run: Run, card: PointerCard | None, folder: Path) -> Pointer | None:
    """Return the pointer in a manifest, if any. Raises BrokenCheckpoint if this user may not follow it."""
    if card is None:
        return None
    for file in card.pointer.files:
        follow(run, file, folder / "manifest.json")
    return card.pointer


def read_manifest(folder: Path, root: Path) -> tuple[Manifest, int]:
    """Return a checkpoint's manifest and its mtime (ns); it is parsed again only if its file changed."""
    manifest, state = read_unchanged(f"{folder}/manifest.json", root, Manifest, BrokenCheckpoint)
    return manifest, state[0]


# === Writing ===


def write_manifest(path: Path, step: int, sequences: int | None, tokens: int | None, **more: Any) -> None:
    """Write the manifest.json of a checkpoint, with the sha256 of each file; counts are None if unknown."""
    files = sorted(p for p in path.iterdir() if p.is_file() and p.name != "manifest.json")
    hashes = {p.name: sha256(p) for p in files}
    write_json(
        path / "manifest.json", {"step": step, "sequences": sequences, "tokens": tokens, "sha256": hashes, **more}
    )
