"""Checkpoints of a source before they are part of a run, a model without a step in its name, and the planned steps."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from embryo_core.runs import sha256
from embryo_core.runs.schema import TrainerState
from embryo_core.sources.patterns import Counts
from embryo_core.types import Pointer, StepUnit
from embryo_core.words import name_step

MIN_POWERS = 3  # powers of two from which a grid of doublings counts as planned
MAX_DISTANCES = 16  # number of tried distances, the most frequent ones
MIN_COVERAGE = 2 / 3  # share of an even grid that must be present for the others to count as missing


@dataclass(frozen=True)
class SourceCheckpoint:
    """One checkpoint: its counts of training, and its files."""

    counts: Counts
    config: Path
    within: Path  # the folder that must contain its files
    pointer: Pointer
    name: str  # name in messages
    hashes: tuple[str | None, ...] = ()  # SHA-256 of each file of the weights, if the Hub lists it
    folder: Path | None = None  # as given, without following links; None: on the Hub
    generator: "SourceCheckpoint | None" = None  # the generator of an ELECTRA
    index: Path | None = None  # index of weights in several files

    @property
    def step(self) -> int:
        """Return its number on the axis of steps, in the unit of the axis."""
        return self.counts.first[0]


@dataclass(frozen=True)
class SourceSeries:
    """The checkpoints of a source."""

    found: list[SourceCheckpoint]  # in any order
    incomplete: dict[int, str] = field(default_factory=dict)  # a sentence for each step without all of its files
    unmatched: list[str] = field(default_factory=list)  # names with a number that no pattern matched
    notes: list[str] = field(default_factory=list)  # sentences on other omissions


# === The last model of a Trainer's folder, or of the Hub's main branch ===


def with_unnumbered(series: SourceSeries, last: SourceCheckpoint, state: TrainerState | None) -> SourceSeries:
    """Return a series with its unnumbered model as the last step, if a Trainer's state has that step.

    A Trainer that may have loaded its best checkpoint is not trusted. A model without a known step is added to the
    notes.
    """
    best = Path(state.best_model_checkpoint or "").name if state else ""
    steps = {*series.incomplete, *(one.step for one in series.found)}
    others = series.found  # all checkpoints if the Hub lists hashes, else the last one and the best
    if not last.pointer.repository:
        final = max((one.step for one in series.found), default=-1)
        others = [one for one in others if one.step == final or (best and one.folder and one.folder.name == best)]
    if any(_same(last, one) for one in others):
        return series
    step = state.global_step if state else 0
    if {one.counts.first[1] for one in series.found} == {StepUnit.UPDATES} and step > max(steps) and not best:
        return replace(series, found=[*series.found, replace(last, counts=Counts(step=step))])
    why = f"it may be {name_step(step, StepUnit.UPDATES)}" if step else "no trainer_state.json beside it has its step"
    note = f"{last.name} itself has a model without a step in its name, and {why}; to add it, give a list of STEP:PATH."
    return replace(series, notes=[*series.notes, note])


def _same(one: SourceCheckpoint, other: SourceCheckpoint) -> bool:
    if one.pointer == other.pointer:
        return True
    if one.pointer.repository or other.pointer.repository:
        return None not in one.hashes and one.hashes == other.hashes
    files = [[Path(file.file) for file in each.pointer.files] for each in (one, other)]
    return all([*map(compare, files[0])] == [*map(compare, files[1])] for compare in (os.path.getsize, sha256))


# === The steps at which a foreign run saved ===


def planned(steps: Sequence[int], every: int = 0) -> tuple[int, ...]:
    """Return the available steps and those missing from an even grid of which two thirds are present.

    Below the grid's first distance, powers of two are another grid, as in many series. `every` is the distance that the
    training recorded; its grid also needs two thirds of its steps, and the last step may be off it.
    """
    available = sorted(steps)
    grids = [_grid([step for step in available if step % every == 0], every)] if every else []
    times = Counter(later - earlier for earlier, later in pairwise(available)).most_common(MAX_DISTANCES)
    grids += [_grid(available, distance) for distance, count in times if count > 1]
    even = max(grids, key=len, default=range(0))
    distance = even.step if even else None
    low = [step for step in available if step > 0 and (distance is None or step < distance)]
    powers = len(low) >= MIN_POWERS and all(step & (step - 1) == 0 for step in low)
    doublings = {2**k for k in range(low[0].bit_length() - 1, low[-1].bit_length())} if powers else set()
    return tuple(sorted({*available, *even, *doublings}))


def _grid(steps: Sequence[int], distance: int) -> range:
    """Return the even grid that ends at the last step; empty if too few of the steps are on it."""
    if not steps:
        return range(0)
    on_it = [step for step in steps if step % distance == steps[-1] % distance]
    grid = range(on_it[0], on_it[-1] + 1, distance)
    return grid if len(on_it) >= MIN_COVERAGE * len(grid) else range(0)
