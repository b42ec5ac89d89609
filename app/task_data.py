"""Where the data of a fine-tuning task are at hand: found once, and again when their files or the results change."""

from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from app.caching import files_state, kept_whole, results_state
from embryo_core import runs
from embryo_core.errors import CorpusError
from embryo_core.finetune import task_folders
from embryo_core.types import Run

MISSED_FOR = 5.0  # seconds until data that were not at hand are looked for again, which may read other data whole


@dataclass(frozen=True)
class Place:
    """Where data were found, or that they were not."""

    run: Run
    folder: Path | None
    state: str  # of the files in the folder
    seen: float  # when, in seconds of a clock that only goes on

    @property
    def counts(self) -> bool:
        """Whether they are there as they were."""
        if self.folder is None:
            return monotonic() - self.seen < MISSED_FOR
        return _state(self.run, self.folder) == self.state


def _state(run: Run, folder: Path) -> str:
    return files_state(run, *sorted(folder.glob("*")))


@kept_whole(results_state, 32, "Looking for the texts", valid=lambda place: place.counts)
def find(run: Run, task: str) -> Place:
    """The folder of the data that a task's results are of (see `finetune.task_folders`). Raises ResultsError."""
    try:
        folder = task_folders.find_data(run, task, runs.roots())
    except CorpusError:
        folder = None
    return Place(run, folder, "" if folder is None else _state(run, folder), monotonic())
