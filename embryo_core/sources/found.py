"""What a source gives for one checkpoint before it is part of a run."""

from dataclasses import dataclass
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
    trainer_state: Path | None = None

    @property
    def name(self) -> str:
        """As messages name it."""
        return f"hf:{self.pointer.repository}@{self.pointer.commit}" if self.pointer.repository else self.pointer.file
