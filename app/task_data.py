"""Cached texts behind results: examples of fine-tuning tasks, and minimal pairs."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import pandas as pd

from app.caching import cached_resource, files_state, results_state
from embryo_core import runs
from embryo_core.errors import CorpusError
from embryo_core.figures import finetuning_examples
from embryo_core.finetune import task_folders
from embryo_core.finetune.task_specs import SQUAD
from embryo_core.query import pair_sentences
from embryo_core.types import MinimalPair, Run

PAIRS_KEY = "minimal pairs"  # a key next to the names of tasks, which contain no space
RETRY_SECONDS = 5.0  # seconds until missing data are searched for again: a search may read all other data


@dataclass(frozen=True)
class TextFolder:
    """The place where a run's data were found: a folder or a file, or None if they were not found."""

    run: Run
    folder: Path | None
    state: str  # of the files in the folder (`files_state`)
    searched: float  # monotonic clock, seconds

    @property
    def is_current(self) -> bool:
        """Return whether the data are unchanged, or missing data need not be searched for again yet."""
        if self.folder is None:
            return monotonic() - self.searched < RETRY_SECONDS
        return _state(self.run, self.folder) == self.state


def _state(run: Run, folder: Path) -> str:
    return files_state(run, folder, *sorted(folder.glob("*")))


@cached_resource(results_state, 32, "Looking for the texts", validate=lambda place: place.is_current)
def _find(run: Run, dataset: str) -> TextFolder:
    """Return the folder of the data behind results of a task, or of minimal pairs (PAIRS_KEY). Raises ResultsError."""
    folder = None
    with suppress(CorpusError):
        if dataset == PAIRS_KEY:
            folder = pair_sentences.find_pairs(run, runs.roots())
        else:
            folder = task_folders.find_task_data(run, dataset, runs.roots())
    return TextFolder(run, folder, "" if folder is None else _state(run, folder), monotonic())


def read_texts(run: Run, task: str) -> pd.DataFrame | None:
    """Return the texts of a task's development examples (see `task_folders`); None if its data were not found."""
    folder = _find(run, task)
    return _texts(run, task, folder.folder, folder.state)


@cached_resource(results_state, 4, "Reading the texts")
def _texts(run: Run, task: str, folder: Path | None, state: str) -> pd.DataFrame | None:
    """Read the texts; the folder's `state` is only a part of the cache's key."""
    with suppress(CorpusError):
        return None if folder is None else task_folders.read_texts(task, folder)
    return None


def read_examples(run: Run, task: str, seed: int) -> pd.DataFrame:
    """Return the answer at each step to each example, for one seed (see `finetuning_examples.read_examples`)."""
    folder = _find(run, task)
    return _examples(run, task, seed, folder.folder, folder.state)


@cached_resource(results_state, 4, "Reading the answers")
def _examples(run: Run, task: str, seed: int, folder: Path | None, state: str) -> pd.DataFrame:
    """Read the examples; `state`, of the folder, serves only as a cache key."""
    texts = _texts(run, task, folder, state) if task == SQUAD else None
    return finetuning_examples.read_examples(run, task, seed, None if texts is None else texts["context"])


# === Minimal pairs ===


def read_pairs(run: Run, paradigm: str) -> list[MinimalPair]:
    """Return the sentences of a paradigm's pairs; an empty list if the data were not found."""
    folder = _find(run, PAIRS_KEY)
    return _pairs(run, folder.folder, folder.state).get(paradigm, [])


@cached_resource(results_state, 4, "Reading the sentences")
def _pairs(run: Run, path: Path | None, state: str) -> dict[str, list[MinimalPair]]:
    """Return the pairs of each paradigm; `state`, of the data, serves only as a cache key."""
    with suppress(CorpusError):
        return {} if path is None else pair_sentences.read_pair_sentences(run, path)
    return {}
