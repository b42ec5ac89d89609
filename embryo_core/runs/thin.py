"""Thinning a run: checkpoints lose their weights, which take nearly all of the space, and keep their results."""

from collections.abc import Collection, Iterable
from math import log2
from pathlib import Path
from typing import Any

from embryo_core.errors import BrokenCheckpoint
from embryo_core.runs.files import write_json
from embryo_core.runs.grids import log_grid
from embryo_core.runs.manifests import checkpoint, checkpoints, loadable
from embryo_core.runs.reading import read_json
from embryo_core.runs.trust import own_folder
from embryo_core.runs.weight_files import WEIGHTS
from embryo_core.types import Checkpoint, Run


def to_remove(run: Run, keep: Iterable[str]) -> list[tuple[Checkpoint, int]]:
    """The checkpoints whose weights go, each with the bytes that this frees; nothing is changed.

    What stays is named by steps ("500"), "every:N" (the checkpoints nearest to the multiples of N) and "log:K" (those
    nearest to K steps per doubling). The last checkpoint with weights always stays, or nothing could be asked or
    continued. Raises UnknownStep and MissingWeights.
    """
    with_weights = [found.step for found in loadable(run)]
    if not with_weights:
        checkpoint(run, 0)  # raises, telling how a run gets its checkpoints
    kept = kept_steps(run, keep, with_weights) | {with_weights[-1]}
    going = [(found, _size(found)) for found in checkpoints(run) if found.step not in kept]
    return [(found, size) for found, size in going if size]


def kept_steps(run: Run, keep: Iterable[str], steps: Collection[int]) -> set[int]:
    """Which of the `steps` of a run stay; see `to_remove`. Raises UnknownStep, MissingWeights."""
    kept = set()
    for wanted in keep:
        kind, _, count = wanted.rpartition(":")
        if not kind:
            kept.update(found.step for found in loadable(run, [int(count)]))
            continue
        grid = range(0, max(steps) + 1, int(count)) if kind == "every" else log_grid(max(steps), int(count))
        kept |= {_nearest(steps, wanted, kind) for wanted in grid}
    return kept


def remove_weights(found: Checkpoint) -> None:
    """Remove a checkpoint's weights, those of a generator inside too.

    Manifests are written first: killed in between and called again, it ends the same.
    """
    manifests, weights = [found.path / "manifest.json", *found.path.glob("*/manifest.json")], _weights(found)
    for path in (*manifests, *weights):
        own_folder(path, found.run.path, BrokenCheckpoint)
    for path in manifests:
        manifest = read_json(path, found.run.path, dict[str, Any], BrokenCheckpoint)
        if removed := {name: manifest["sha256"].pop(name) for name in WEIGHTS if name in manifest["sha256"]}:
            write_json(path, manifest | {"removed": removed})
    for file in weights:
        file.unlink()


def _nearest(steps: Collection[int], wanted: int, kind: str) -> int:
    """The step nearest to the wanted one: by the difference, or, on a grid of doublings, by the ratio."""
    if kind == "every":
        return min(steps, key=lambda step: abs(step - wanted))
    return min(steps, key=lambda step: abs(log2(max(step, 0.5) / wanted)))


def _weights(found: Checkpoint) -> list[Path]:
    return [path for name in WEIGHTS for path in found.path.rglob(name) if path.is_file()]


def _size(found: Checkpoint) -> int:
    return sum(path.stat().st_size for path in _weights(found))
