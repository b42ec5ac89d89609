"""Checkpoints of a run: found by their manifests, and how a manifest is written."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from embryo_core.errors import BrokenCheckpoint, MissingWeights, UnknownStep
from embryo_core.runs.atomic_files import UNFINISHED, sha256, write_json
from embryo_core.runs.pointers import ADDED, follow, list_state
from embryo_core.runs.schema import Manifest, PointerCard
from embryo_core.runs.snapshot import read_once
from embryo_core.runs.trust import State, read_json, refusal, state_from
from embryo_core.types import Checkpoint, Pointer, Run
from embryo_core.words import listed, quantity

GENERATOR = "generator"
MAX_LISTED = 10  # broken checkpoints that are listed with their reasons; the rest are counted
MAX_CHECKPOINTS = 16_384  # folders that are read; the rest are reported as one
MAX_SCANS = 64  # runs whose checkpoints are cached

States = tuple[tuple[str, State], ...]


@dataclass(frozen=True, eq=False)
class _Scan:
    """The folders of a run's checkpoints, by name, with what was found in each."""

    run: Run
    states: States
    folders: list[tuple[Path, Checkpoint | BrokenCheckpoint]]

    @cached_property
    def checkpoints(self) -> list[Checkpoint]:
        """Return the checkpoints that can be read, in the order of steps."""
        return sorted((found for _, found in self.folders if isinstance(found, Checkpoint)), key=lambda c: c.step)

    @cached_property
    def digest(self) -> str:
        """Return the digest of `checkpoints_digest`."""
        found = repr([(str(checkpoint.path), checkpoint.written) for checkpoint in self.checkpoints])
        return blake2b(found.encode()).hexdigest()


_scanned: dict[Path, _Scan] = {}  # the last scan of each run


# === Finding ===


def checkpoints(run: Run) -> list[Checkpoint]:
    """Return the checkpoints of a run in the order of steps, without those whose manifest cannot be read (`broken`)."""
    return [*_scan(run).checkpoints]


def checkpoints_digest(run: Run) -> str:
    """Return a text that changes when a checkpoint is added, removed or written again."""
    return _scan(run).digest


def broken(run: Run) -> list[tuple[Path, str]]:
    """Return the checkpoint folders whose manifest cannot be read, each with the reason; of many, the first few."""
    found = [(path, str(c)) for path, c in _scan(run).folders if isinstance(c, BrokenCheckpoint)]
    if (more := len(found) - MAX_LISTED) > 0:
        rest = f"{more:,} more checkpoints of run '{run.name}' cannot be read."
        return [*found[:MAX_LISTED], (run.path / "checkpoints", rest)]
    return found


def checkpoint(run: Run, step: int) -> Checkpoint:
    """Return the run's checkpoint at exactly this step. Raise UnknownStep, which names the nearest."""
    return _pick(run, checkpoints(run), step)


def _pick(run: Run, found: list[Checkpoint], step: int) -> Checkpoint:
    for candidate in found:
        if candidate.step == step:
            return candidate
    unread = {path.name: reason for path, reason in broken(run)}
    if reason := unread.get(f"step{step}"):
        raise BrokenCheckpoint(reason)
    if unread and not found:
        raise UnknownStep(f"Run '{run.name}' has no checkpoint that can be read: {next(iter(unread.values()))}")
    if not found:
        raise UnknownStep(f"Run '{run.name}' has no checkpoint yet; continue it with python -m pretrain.")
    nearest = min(found, key=lambda c: abs(c.step - step)).step
    known = ", ".join(str(c.step) for c in found)
    raise UnknownStep(f"Run '{run.name}' has no checkpoint at step {step}; the nearest is {nearest}. Known: {known}.")


def loadable(run: Run, steps: Iterable[int] | None = None) -> list[Checkpoint]:
    """Return the checkpoints of a run that have their weights, of these steps or of all, in the order of steps.

    Raise UnknownStep, also for a run without checkpoints, and MissingWeights if a given step, or every step, has lost
    its weights.
    """
    known = checkpoints(run)
    if not known:
        _pick(run, known, 0)  # raises, and says how a run gets its checkpoints
    if steps is not None:
        chosen = [_pick(run, known, step) for step in sorted(set(steps))]
        if lost := next((one for one in chosen if not one.has_weights), None):
            raise without_weights(lost)
        return chosen
    if not any(one.has_weights for one in known):
        raise MissingWeights(
            f"Run '{run.name}' has results and no weights to compute with; copy its weights back, or name another run."
        )
    return [one for one in known if one.has_weights]


def steps_without_weights(run: Run) -> set[int]:
    """Return the steps of a run whose checkpoints have lost their weights."""
    return {one.step for one in checkpoints(run) if not one.has_weights}


def left_out(found: Iterable[Checkpoint]) -> list[str]:
    """Return a sentence on the requested checkpoints if some of them kept no weights, else nothing."""
    found = [*found]
    without = {one.step: one.run.step_unit for one in found if not one.has_weights}
    if not without:
        return []
    if kept := len(found) - len(without):
        return [f"{kept:,} of {quantity(len(found), 'checkpoint')} kept their weights."]
    return [f"No weights were kept at {listed(sorted(without), next(iter(without.values())))}."]


def without_weights(checkpoint: Checkpoint) -> MissingWeights:
    """Return the error for a checkpoint that has lost its weights; it names the nearest step that has them."""
    known = [found.step for found in checkpoints(checkpoint.run) if found.has_weights]
    nearest = f"the nearest step with weights is {min(known, key=lambda step: abs(step - checkpoint.step))}"
    return MissingWeights(
        f"Step {checkpoint.step} of run '{checkpoint.run.name}' has results and no weights to compute with; "
        f"{nearest if known else 'no other step has weights'}."
    )


def generator(checkpoint: Checkpoint) -> Checkpoint | None:
    """Return the model that predicts masked words inside an ELECTRA's checkpoint, in generator/, or None.

    Raise BrokenCheckpoint if the weights are elsewhere and the manifest inside does not say where.
    """
    path = checkpoint.path / GENERATOR
    inside = checkpoint.path.name == GENERATOR  # a generator has none
    if inside or not (path / "config.json").is_file():
        return None
    weights = read_manifest(path, checkpoint.run.path)[0].weights if checkpoint.pointer else None
    return replace(checkpoint, path=path, pointer=_pointer(checkpoint.run, weights, path))


@read_once
def _scan(run: Run) -> _Scan:
    """Return what is in the folders of a run's checkpoints; cached while neither the run nor a manifest changes."""
    states = _states(run.path / "checkpoints")
    known = _scanned.get(run.path)
    if known and (known.states, known.run) == (states, run):
        return known
    found = _Scan(run, states, list(_folders(run)))
    if states and all(isinstance(one, Checkpoint) for _, one in found.folders):
        if len(_scanned) >= MAX_SCANS:
            _scanned.clear()
        _scanned[run.path] = found
    return found


def _states(folder: Path) -> States:
    """Return the states of all manifests by folder, and of the list of allowed places; () if one cannot be examined."""
    try:
        names = filter(_is_checkpoint, os.listdir(folder))
        states = [(name, state_from(os.stat(f"{folder}/{name}/manifest.json"))) for name in names]
        return ((ADDED, list_state(ADDED)), *states)
    except OSError:
        return ()


def _is_checkpoint(name: str) -> bool:
    return name.startswith("step") and not name.endswith(UNFINISHED)


def _folders(run: Run) -> Iterator[tuple[Path, Checkpoint | BrokenCheckpoint]]:
    """Yield each folder of a checkpoint with the checkpoint, or the error of reading it."""
    folder, seen = run.path / "checkpoints", dict[int, Path]()
    try:
        names = sorted(filter(_is_checkpoint, os.listdir(folder)))
    except FileNotFoundError:
        return
    except OSError as reason:
        yield folder, refusal(folder, reason, BrokenCheckpoint)
        return
    for path in (folder / name for name in names[:MAX_CHECKPOINTS]):
        try:
            manifest, written = read_manifest(path, run.path)
            pointer = _pointer(run, manifest.weights, path)
        except BrokenCheckpoint as error:
            yield path, error
            continue
        if (first := seen.setdefault(manifest.step, path)) is path:
            counts = manifest.step, path, manifest.sequences, manifest.tokens
            yield path, Checkpoint(run, *counts, written, not manifest.removed, pointer)
        else:
            yield path, refusal(path, f"has step {manifest.step}, which {first.name} has too", BrokenCheckpoint)
    if len(names) > MAX_CHECKPOINTS:
        yield folder, refusal(folder, f"has {len(names):,} folders, and {MAX_CHECKPOINTS:,} are read", BrokenCheckpoint)


def _pointer(run: Run, card: PointerCard | None, folder: Path) -> Pointer | None:
    """Return the pointer in a manifest. Raise BrokenCheckpoint if this user may not follow it."""
    if card is None:
        return None
    for file in card.pointer.files:
        follow(run, file, folder / "manifest.json")
    return card.pointer


def read_manifest(folder: Path, within: Path) -> tuple[Manifest, int]:
    """Return a checkpoint's manifest and its mtime (ns); it is parsed again only if its file changed."""
    path = f"{folder}/manifest.json"
    state = state_of(path)
    return _parse_manifest(path, within, state), state[0]


def state_of(path: str) -> State:
    """Return the state of a file. Raise BrokenCheckpoint."""
    try:
        return state_from(os.stat(path))
    except OSError as reason:
        raise refusal(path, reason, BrokenCheckpoint) from None


@lru_cache(maxsize=MAX_CHECKPOINTS)
def _parse_manifest(path: str, within: Path, _state: State) -> Manifest:
    return read_json(Path(path), within, Manifest, BrokenCheckpoint)


# === Writing ===


def write_manifest(path: Path, step: int, sequences: int | None, tokens: int | None, **more: Any) -> None:
    """Write manifest.json next to the files of a checkpoint, with the sha256 of each; None means unknown."""
    files = sorted(p for p in path.iterdir() if p.is_file() and p.name != "manifest.json")
    hashes = {p.name: sha256(p) for p in files}
    write_json(
        path / "manifest.json", {"step": step, "sequences": sequences, "tokens": tokens, "sha256": hashes, **more}
    )
