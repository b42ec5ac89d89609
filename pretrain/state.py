"""States from which a run resumes: every variable of model and optimizer in full precision; the last two are kept.

A state is an archive with a checksum (CRC-32) for each variable, all verified before it is used.
"""

import logging
import os
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np

from embryo_core import runs
from embryo_core.errors import BrokenRun
from pretrain.masking import Batch
from pretrain.model import PretrainingModel

logger = logging.getLogger(__name__)
STATE_NAME = re.compile(r"step([0-9]{1,18})\.npz")
# end record of an archive: signature, number of members, sizes, length of the comment
END_RECORD = struct.Struct("<4s6xH8sH")
# Errors of zipfile for a damaged archive, whichever byte has changed.
DAMAGE_ERRORS = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError)


@dataclass(frozen=True)
class Progress:
    """The progress of a run: updates made, sequences and tokens (without padding) seen; None means unknown."""

    step: int
    sequences: int | None
    tokens: int | None

    def after(self, batch: Batch) -> "Progress":
        """Return the progress after one update on this batch."""
        tokens = int(batch.attention_mask.sum())
        return Progress(self.step + 1, (self.sequences or 0) + len(batch.ids), (self.tokens or 0) + tokens)


def save_state(model: PretrainingModel, run_path: Path, progress: Progress, seconds: float = 0.0) -> None:
    """Write state/step{N}.npz atomically and delete all but the last two; `seconds` is the training time so far."""
    arrays = {f"variable{i}": keras.ops.convert_to_numpy(variable) for i, variable in enumerate(_variables(model))}
    counts = np.array([progress.step, progress.sequences, progress.tokens], np.int64)
    path = runs.own_folder(run_path / "state", run_path, BrokenRun) / f"step{progress.step}.npz"
    with runs.replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, progress=counts, seconds=np.float32(seconds), **arrays)
        file.flush()
        os.fsync(file.fileno())
    for _, old_state in _states(run_path)[:-2]:
        old_state.unlink()


def latest_state(run_path: Path) -> Path | None:
    """Return the last intact state, or None. Raises BrokenRun if all states are damaged."""
    states = _states(run_path)
    for _, path in reversed(states):
        if _is_whole(path):
            return path
        logger.warning("%s is damaged and passed over.", path)
    if states:
        folder = run_path / "state"
        raise BrokenRun(f"Every state in {folder} is damaged; remove that folder to train the run from its start.")
    return None


def _is_whole(path: Path) -> bool:
    """Return whether every member matches its checksum and the directory, which has none, lists all members."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            file.seek(-END_RECORD.size, os.SEEK_END)
            _, members, _, _ = END_RECORD.unpack(file.read())
            return members == len(set(archive.namelist())) and archive.testzip() is None
    except DAMAGE_ERRORS:
        return False


def step_of(state: Path) -> int:
    """Return the step of a state, from its name."""
    return int(STATE_NAME.sub(r"\1", state.name))


def seconds_of(state: Path) -> float:
    """Return the training time (s) before a state; 0 for states of earlier versions, which did not record it."""
    with np.load(state) as archive:
        return float(archive["seconds"]) if "seconds" in archive else 0.0


def restore(model: PretrainingModel, path: Path) -> Progress:
    """Set every variable of the model and its optimizer to the saved value; return the progress."""
    with np.load(path) as state:
        for i, variable in enumerate(_variables(model)):
            variable.assign(state[f"variable{i}"])
        return Progress(*(int(count) for count in state["progress"]))


def _variables(model: PretrainingModel) -> list:
    return [*model.variables, *model.optimizer.variables]


def _states(run_path: Path) -> list[tuple[int, Path]]:
    files = (
        path for path in (run_path / "state").glob("step*.npz") if path.is_file() and STATE_NAME.fullmatch(path.name)
    )
    return sorted((step_of(path), path) for path in files)
