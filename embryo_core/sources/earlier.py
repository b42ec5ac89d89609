"""The earlier run that an added run replaces: which steps are kept, and whether its results fit the new models."""

import os
import shutil
from collections.abc import Collection, Iterable, Iterator
from operator import eq
from pathlib import Path
from typing import Any

from embryo_core import results, runs
from embryo_core.errors import BrokenCheckpoint, BrokenRun, RunError
from embryo_core.runs.checkpoint_files import SAFETENSORS, WEIGHTS
from embryo_core.runs.schema import Manifest
from embryo_core.sources.source_series import SourceCheckpoint
from embryo_core.types import Run


def points_elsewhere(target: Path) -> bool:
    """Return whether all checkpoints in a folder point to weights elsewhere, or lost them, as in a moved run."""
    manifests = [manifest for _, manifest in _manifests(target)]
    return any(manifest.weights for manifest in manifests) and all(
        manifest.weights or manifest.removed for manifest in manifests
    )


def weight_sources(folder: Path) -> set[str]:
    """Return the folders and repositories to which the checkpoints of a run point, generators included."""
    manifests = [part for path, manifest in _manifests(folder) for part in (manifest, _inside(path, folder)) if part]
    return {runs.source_of(file) for part in manifests if part.weights for file in part.weights.pointer.files}


def sources_of(added: Iterable[SourceCheckpoint]) -> set[str]:
    """Return the folders and repositories of these checkpoints, generators included."""
    parts = [part for checkpoint in added for part in (checkpoint, checkpoint.generator) if part]
    return {runs.source_of(file) for part in parts for file in part.pointer.files}


def refuse_other_models(old: Run | None, new: Run) -> None:
    """Raise RunError if results under the new run's name belong to other models."""
    measured = set().union(*results.steps_by_metric(new).values())
    if measured and old is None:
        raise RunError(
            f"{new.results} has results of a run '{new.name}' that is gone, so they may belong to "
            "other checkpoints; choose another --name, or remove that folder first."
        )
    if measured and old and not _is_same_tokenizer(old, new):
        raise RunError(
            f"'{new.name}' had another tokenizer, and {new.results} has results that depend on it; name that "
            "tokenizer with --tokenizer, choose another --name, or remove that folder first."
        )
    if measured and old and (changed := sorted(_changed(old, new, measured))):
        steps = ", ".join(f"{step:,}" for step in changed[:4]) + (" and others" if len(changed) > 4 else "")
        raise RunError(
            f"'{new.name}' had other weights, or another config, at steps {steps}, and {new.results} has "
            "results of those; choose another --name, or remove that folder first."
        )


def keep_earlier_steps(old: Run | None, new: Run, allowed: Collection[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Keep the steps that the new run lacks; return the steps kept unchanged, and the steps kept without weights.

    Copied weights are kept, and so are pointers to existing files in `allowed` places. Other steps lose their weights
    but stay in the run, since they may have results. Word counts that the user added to the old run are kept.
    """
    kept_steps, lost_steps = [], []
    new_weights = {manifest.step: manifest.weights for _, manifest in _manifests(new.path)}
    if old is None:
        return (), ()
    for folder, manifest in _manifests(old.path):
        if manifest.step in new_weights or (manifest.weights and manifest.weights in new_weights.values()):
            continue  # added again, possibly counted in another unit
        copy = new.path / "checkpoints" / f"step{manifest.step}"
        inside = _inside(folder, old.path)
        whole = inside is None or _is_there(inside, folder / runs.GENERATOR, allowed)
        if whole and _is_there(manifest, folder, allowed):
            shutil.copytree(folder, copy, symlinks=True, copy_function=runs.link_or_copy)
            kept_steps.append(manifest.step)
        else:
            removed = {name: manifest.sha256[name] for name in WEIGHTS if name in manifest.sha256}
            if manifest.weights:
                removed = {SAFETENSORS: manifest.weights.digest}
            copy.mkdir(parents=True)
            content = runs.read_bytes(folder / "config.json", old.path, BrokenCheckpoint)
            (copy / "config.json").write_bytes(content)
            runs.write_manifest(copy, manifest.step, manifest.sequences, manifest.tokens, removed=removed)
            lost_steps.append(manifest.step)
    if old.frequencies.is_file():
        runs.link_or_copy(str(old.frequencies), str(new.frequencies))
    return tuple(sorted(kept_steps)), tuple(sorted(lost_steps))


def _is_same_tokenizer(old: Run, new: Run) -> bool:
    """Return whether two runs' tokenizer.json are equal as JSON; versions of the library may format it differently."""
    if old.tokenizer_sha256 == new.tokenizer_sha256:
        return True
    files = {run.path: run.tokenizer / "tokenizer.json" for run in (old, new)}
    return all(path.is_file() for path in files.values()) and eq(
        *(runs.read_json(path, run, dict[str, Any], BrokenRun) for run, path in files.items())
    )


def _changed(old: Run, new: Run, measured: Collection[int]) -> set[int]:
    """Return the measured steps whose model differs in the new run, or has moved to another step."""
    if (old.family, old.step_unit) != (new.family, new.step_unit):
        return set(measured)
    before, now = (
        {manifest.step: _model(path, run.path, manifest) for path, manifest in _manifests(run.path)}
        for run in (old, new)
    )
    elsewhere = {hashes[0] for hashes, _ in now.values()}

    def is_changed(step: int) -> bool:
        if step not in now:
            return before[step][0][0] in elsewhere
        (hashes, configs), (old_hashes, old_configs) = now[step], before[step]
        # map ends with the shorter list: a step without weights may lack its generator.
        return not (all(map(eq, hashes, old_hashes)) and all(map(eq, configs, old_configs)))

    return {step for step in before.keys() & measured if is_changed(step)}


def _model(folder: Path, root: Path, manifest: Manifest) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the weights' SHA-256 of a model and, if it has one, of its generator, and the configs of both."""
    parts = {folder: manifest, folder / runs.GENERATOR: _inside(folder, root)}
    present = {path: part_manifest for path, part_manifest in parts.items() if part_manifest}
    configs = [runs.read_json(path / "config.json", root, dict[str, Any], BrokenCheckpoint) for path in present]
    return [_sha256(part_manifest) for part_manifest in present.values()], [
        runs.model_fields(config) for config in configs
    ]


def _sha256(manifest: Manifest) -> str:
    """Return the SHA-256 of the weights, also if they were removed or are elsewhere; "" if the manifest has none."""
    held = manifest.sha256 | manifest.removed
    return manifest.weights.digest if manifest.weights else next((held[name] for name in WEIGHTS if name in held), "")


def _manifests(run: Path) -> Iterator[tuple[Path, Manifest]]:
    """Yield each checkpoint's folder and manifest. Raises BrokenCheckpoint."""
    for path in sorted((run / "checkpoints").glob("step*/manifest.json")):
        if not path.parent.name.endswith(".tmp"):
            yield path.parent, runs.read_json(path, run, Manifest, BrokenCheckpoint)


def _inside(folder: Path, root: Path) -> Manifest | None:
    """Return the manifest of the generator inside a checkpoint's folder, or None."""
    path = folder / runs.GENERATOR / "manifest.json"
    return runs.read_json(path, root, Manifest, BrokenCheckpoint) if path.exists() else None


def _is_there(manifest: Manifest, folder: Path, allowed: Collection[str]) -> bool:
    if card := manifest.weights:
        files = card.pointer.files
        return all(runs.source_of(file) in allowed and (file.repository or os.path.isfile(file.file)) for file in files)
    return bool(manifest.removed) or any((folder / name).is_file() for name in WEIGHTS)
