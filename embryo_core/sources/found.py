"""What a source gives before it is part of a run."""

from dataclasses import dataclass, field
from pathlib import Path

from embryo_core.sources.patterns import Counts
from embryo_core.types import Pointer


@dataclass(frozen=True)
class Found:
    """One checkpoint of others: how far it is, and where its files are."""

    counts: Counts
    config: Path
    within: Path  # the folder that its files have to be in
    pointer: Pointer
    sha256: str | None = None  # of its weights, where the Hub tells it
    folder: Path | None = None  # as it was named, links not followed; None: on the Hub
    generator: "Found | None" = None  # of an ELECTRA, the model inside that predicts masked words
    parts: tuple[Pointer, ...] = ()  # the files of weights in several, whose index is what `pointer` leads to

    @property
    def name(self) -> str:
        """As messages name it."""
        return f"hf:{self.pointer.repository}@{self.pointer.commit}" if self.pointer.repository else self.pointer.file

    @property
    def step(self) -> int:
        """What places it on the axis, whatever that counts."""
        return self.counts.first[0]


@dataclass(frozen=True)
class Series:
    """What a source holds."""

    found: list[Found]  # unordered
    incomplete: dict[int, str] = field(default_factory=dict)  # a sentence for each step without all of its files
    left_alone: list[str] = field(default_factory=list)  # names with a number that no pattern took
