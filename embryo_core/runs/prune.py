"""Grids of steps, and pruning: removing the weights, which take nearly all space, at steps off a grid."""

from collections.abc import Collection, Iterable
from math import log2
from pathlib import Path
from typing import Any

from embryo_core.errors import BrokenCheckpoint
from embryo_core.runs.atomic_files import write_json
from embryo_core.runs.checkpoint_files import WEIGHTS
from embryo_core.runs.manifests import checkpoints, loadable_checkpoints
from embryo_core.runs.trust import own_folder, read_json
from embryo_core.types import Checkpoint, Run


def step_grid(total: int, every: int) -> tuple[int, ...]:
    """Return the steps at which to save: 0, powers of two, every `every` updates, and the last one."""
    powers = {2**k for k in range(total.bit_length()) if 2**k < min(every, total)}
    return tuple(sorted({0, total} | powers | set(range(every, total, every))))


def log_grid(total: int, per_doubling: int) -> tuple[int, ...]:
    """Return steps from 1 to `total` in equal ratios up to rounding, `per_doubling` for each doubling."""
    if per_doubling >= total:  # adjacent steps would differ by less than 1
        return tuple(range(1, total + 1))
    last = int(log2(total) * per_doubling)
    return tuple(sorted({round(2 ** (i / per_doubling)) for i in range(last + 1)}))


def checkpoints_to_remove(run: Run, keep: Iterable[str]) -> list[tuple[Checkpoint, int]]:
    """Return the checkpoints whose weights are to be removed, each with the bytes that this frees.

    `keep` names the checkpoints to keep, as steps ("500"), "every:N" (those nearest to the multiples of N) and "log:K"
    (those nearest to K steps per doubling). The last checkpoint with weights is always kept: without it the run could
    be neither queried nor continued. Raises UnknownStep, MissingWeights.
    """
    with_weights = [checkpoint.step for checkpoint in loadable_checkpoints(run)]
    kept = kept_steps(run, keep, with_weights) | {with_weights[-1]}
    going = [checkpoint for checkpoint in checkpoints(run) if checkpoint.step not in kept]
    sizes = [sum(path.stat().st_size for path in _weights(checkpoint)) for checkpoint in going]
    return [(checkpoint, size) for checkpoint, size in zip(going, sizes, strict=True) if size]


def kept_steps(run: Run, keep: Iterable[str], steps: Collection[int]) -> set[int]:
    """Return which `steps` of a run `keep` names (see `checkpoints_to_remove`). Raises UnknownStep, MissingWeights."""
    kept: set[int] = set()
    for wanted in keep:
        kind, _, count = wanted.rpartition(":")
        if not kind:
            kept.update(checkpoint.step for checkpoint in loadable_checkpoints(run, [int(count)]))
            continue
        grid = range(0, max(steps) + 1, int(count)) if kind == "every" else log_grid(max(steps), int(count))
        kept |= {_nearest(steps, wanted, kind) for wanted in grid}
    return kept


def remove_weights(checkpoint: Checkpoint) -> None:
    """Remove the weights of a checkpoint and of its generator. Raises BrokenCheckpoint for a link.

    The manifests are written first, so that an interrupted removal can be repeated.
    """
    weights = _weights(checkpoint)
    manifests = [checkpoint.path / "manifest.json", *checkpoint.path.glob("*/manifest.json")]
    for path in (*manifests, *weights):
        own_folder(path, checkpoint.run.path, BrokenCheckpoint)
    for path in manifests:
        manifest = read_json(path, checkpoint.run.path, dict[str, Any], BrokenCheckpoint)
        if removed := {name: manifest["sha256"].pop(name) for name in WEIGHTS if name in manifest["sha256"]}:
            write_json(path, manifest | {"removed": removed})
    for file in weights:
        file.unlink()


def _nearest(steps: Collection[int], wanted: int, kind: str) -> int:
    """Return the step nearest to the wanted one: by difference, or, on a grid of doublings, by ratio."""
    if kind == "every":
        return min(steps, key=lambda step: abs(step - wanted))
    return min(steps, key=lambda step: abs(log2(max(step, 0.5) / wanted)))


def _weights(checkpoint: Checkpoint) -> list[Path]:
    return [path for name in WEIGHTS for path in checkpoint.path.rglob(name) if path.is_file()]
