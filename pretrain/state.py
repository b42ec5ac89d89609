"""What a resume needs: every variable of model and optimizer in full precision; the last two states are kept."""

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np

from embryo_core import runs
from pretrain.masking import MaskedBatch
from pretrain.model import PretrainingModel


@dataclass(frozen=True)
class Progress:
    """How far a run has come: updates made, sequences and tokens (padding excluded) seen; None is unknown."""

    step: int
    sequences: int | None
    tokens: int | None

    def after(self, batch: MaskedBatch) -> "Progress":
        """Progress after one update on this batch."""
        tokens = int(batch.attention_mask.sum())
        return Progress(self.step + 1, self.sequences + len(batch.ids), self.tokens + tokens)


def save_state(model: PretrainingModel, run_path: Path, progress: Progress, keep: int = 2) -> None:
    """Write state/step{N}.npz, whole or not at all, and delete all but the last `keep` states."""
    arrays = {f"variable{i}": keras.ops.convert_to_numpy(variable) for i, variable in enumerate(_variables(model))}
    counts = np.array([progress.step, progress.sequences, progress.tokens], np.int64)
    path = run_path / "state" / f"step{progress.step}.npz"
    with runs.replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, progress=counts, **arrays)
        file.flush()
        os.fsync(file.fileno())
    for _, old in _states(run_path)[:-keep]:
        old.unlink()


def latest_state(run_path: Path) -> Path | None:
    """The state of the highest step that can be read; None where there is none."""
    for _, path in reversed(_states(run_path)):
        try:
            with np.load(path) as state:
                state["progress"]
            return path
        except (zipfile.BadZipFile, EOFError, OSError, KeyError, ValueError):
            continue
    return None


def step_of(state: Path) -> int:
    """The step of a state, from its name."""
    return int(state.stem.removeprefix("step"))


def restore(model: PretrainingModel, path: Path) -> Progress:
    """Set every variable of the model and its optimizer to the saved value."""
    with np.load(path) as state:
        for i, variable in enumerate(_variables(model)):
            variable.assign(state[f"variable{i}"])
        return Progress(*(int(count) for count in state["progress"]))


def _variables(model: PretrainingModel) -> list:
    return [*model.variables, *model.optimizer.variables]


def _states(run_path: Path) -> list[tuple[int, Path]]:
    return sorted((step_of(path), path) for path in (run_path / "state").glob("step*.npz"))
