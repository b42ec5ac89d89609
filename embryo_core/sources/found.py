"""Checkpoints of a source before they are part of a run."""

from dataclasses import dataclass, field
from pathlib import Path

from embryo_core.sources.patterns import Counts
from embryo_core.types import Pointer


@dataclass(frozen=True)
class Found:
    """One checkpoint: how far training had come, and where its files are."""

    counts: Counts
    config: Path
    within: Path  # the folder that its files have to be in
    pointer: Pointer
    name: str  # in messages
    hashes: tuple[str | None, ...] = ()  # SHA-256 of each file of the weights, if the Hub lists it
    folder: Path | None = None  # as it was named, links not followed; None: on the Hub
    generator: "Found | None" = None  # of an ELECTRA, the model inside that predicts masked words
    index: Path | None = None  # of weights in several files

    @property
    def step(self) -> int:
        """Return its number on the axis, in the unit of the axis."""
        return self.counts.first[0]


@dataclass(frozen=True)
class SourceSeries:
    """The checkpoints of a source."""

    found: list[Found]  # unordered
    incomplete: dict[int, str] = field(default_factory=dict)  # a sentence for each step without all of its files
    left_alone: list[str] = field(default_factory=list)  # names with a number that no pattern matched
    notes: list[str] = field(default_factory=list)  # sentences on what else was left out
