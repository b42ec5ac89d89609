"""The checkpoints found in a source, a final model without a step in its name, and the steps that training planned."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from embryo_core.errors import BrokenCheckpoint
from embryo_core.runs import ModelClass, digest, read_json
from embryo_core.runs.checkpoint_files import MAX_WEIGHTS_BYTES
from embryo_core.runs.schema import TrainerState
from embryo_core.sources.patterns import Counts
from embryo_core.types import Pointer, StepUnit
from embryo_core.words import name_step

MIN_POWERS = 3  # at least this number of powers of two make a planned grid of doublings
MAX_DISTANCES = 16  # the most frequent distances between steps, tried as those of an even grid
MIN_COVERAGE = 2 / 3  # share of an even grid that must be present for its other steps to count as missing


@dataclass(frozen=True)
class SourceCheckpoint:
    """A checkpoint of a source: the progress given in its name, and its files."""

    counts: Counts
    config: Path
    root: Path  # folder outside which no file is read
    pointer: Pointer
    name: str  # name in messages
    hashes: tuple[str | None, ...] = ()  # SHA-256 of each weight file, None if the Hub does not list it
    folder: Path | None = None  # the folder as given, links not followed; None on the Hub
    generator: "SourceCheckpoint | None" = None  # the generator of an ELECTRA
    index: Path | None = None  # index of the shards, if the weights have several files

    @property
    def step(self) -> int:
        """Return the checkpoint's position on the axis of steps, in the unit of the first known count."""
        return self.counts.first[0]

    @cached_property
    def model_class(self) -> ModelClass:
        """Return the class of the model in config.json. Raises BrokenCheckpoint."""
        return read_json(self.config, self.root, ModelClass, BrokenCheckpoint)


@dataclass(frozen=True)
class SourceSeries:
    """The checkpoints of a source, complete and incomplete ones."""

    found: list[SourceCheckpoint]  # in any order
    incomplete: dict[int, str] = field(default_factory=dict)  # step -> a sentence on its missing files
    unmatched: list[str] = field(default_factory=list)  # names that end in a number but match no pattern
    notes: list[str] = field(default_factory=list)  # sentences on other omissions


# === The last model of a Trainer's folder, or of the Hub's main branch ===


def with_unnumbered(series: SourceSeries, last: SourceCheckpoint, state: TrainerState | None) -> SourceSeries:
    """Return a series with its unnumbered model `last` as the last step, if the Trainer's state records that step.

    A Trainer that tracked its best checkpoint may have loaded it at the end, so its step is not trusted. A model whose
    step is unknown is mentioned in the notes, unless it equals a checkpoint of the series.
    """
    best = Path(state.best_model_checkpoint or "").name if state else ""
    steps = {*series.incomplete, *(checkpoint.step for checkpoint in series.found)}
    others = series.found  # all checkpoints if the Hub lists hashes, else the last one and the best
    if not last.pointer.repository:
        final = max((checkpoint.step for checkpoint in series.found), default=-1)
        others = [
            checkpoint
            for checkpoint in others
            if checkpoint.step == final or (best and checkpoint.folder and checkpoint.folder.name == best)
        ]
    if any(_same(last, checkpoint) for checkpoint in others):
        return series
    step = state.global_step if state else 0
    if (
        {checkpoint.counts.first[1] for checkpoint in series.found} == {StepUnit.UPDATES}
        and step > max(steps)
        and not best
    ):
        return replace(series, found=[*series.found, replace(last, counts=Counts(step=step))])
    why = f"it may be {name_step(step, StepUnit.UPDATES)}" if step else "no trainer_state.json beside it has its step"
    note = f"{last.name} itself has a model without a step in its name, and {why}; to add it, give a list of STEP:PATH."
    return replace(series, notes=[*series.notes, note])


def _same(checkpoint: SourceCheckpoint, other: SourceCheckpoint) -> bool:
    """Return whether two checkpoints have the same weights, by pointer, hashes or file contents.

    Raises BrokenCheckpoint for a shard that is no regular file, such as a pipe, which would never end.
    """
    if checkpoint.pointer == other.pointer:
        return True
    if checkpoint.pointer.repository or other.pointer.repository:
        return None not in checkpoint.hashes and checkpoint.hashes == other.hashes
    files = [[Path(file.file) for file in each.pointer.files] for each in (checkpoint, other)]
    return all([*map(compare, files[0])] == [*map(compare, files[1])] for compare in (os.path.getsize, _digest))


def _digest(path: Path) -> str:
    return digest(path, path.parent, BrokenCheckpoint, MAX_WEIGHTS_BYTES)


# === Planned steps ===


def complete_grid(steps: Sequence[int], every: int = 0) -> tuple[int, ...]:
    """Return the available steps and those missing from an even grid, if two thirds of the grid are present.

    Powers of two form another grid, alone or below the even grid's first step, as in many published series. `every` is
    the distance that the training recorded, or 0; its grid also needs two thirds of its steps, but the last step may be
    off it.
    """
    available = sorted(steps)
    positive = [step for step in available if step > 0]
    grids = [_grid([step for step in available if step % every == 0], every)] if every else []
    if not _doublings(positive):
        times = Counter(later - earlier for earlier, later in pairwise(available)).most_common(MAX_DISTANCES)
        grids += [_grid(available, distance) for distance, count in times if count > 1]
    even = max(grids, key=len, default=range(0))
    low = [step for step in positive if not even or step < even.step]
    return tuple(sorted({*available, *even, *_doublings(low)}))


def _doublings(steps: Sequence[int]) -> set[int]:
    """Return the powers of two from the first to the last step if all steps are powers and not too few, else none."""
    if len(steps) < MIN_POWERS or any(step & (step - 1) for step in steps):
        return set()
    return {2**k for k in range(steps[0].bit_length() - 1, steps[-1].bit_length())}


def _grid(steps: Sequence[int], distance: int) -> range:
    """Return the even grid that ends at the last step; empty if too few of its steps are available."""
    if not steps:
        return range(0)
    on_it = [step for step in steps if step % distance == steps[-1] % distance]
    grid = range(on_it[0], on_it[-1] + 1, distance)
    return grid if len(on_it) >= MIN_COVERAGE * len(grid) else range(0)
