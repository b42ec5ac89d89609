"""Keras weights to the Hugging Face layout and back: a checkpoint folder that the family's from_pretrained loads."""

from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from embryo_core import runs
from embryo_core.types import Checkpoint
from pretrain.config import Config
from pretrain.families import FAMILIES
from pretrain.family import Family
from pretrain.model import PretrainingModel
from pretrain.state import Progress
from pretrain.weights import assign, stored


def tensors(family: Family, model: PretrainingModel) -> dict[str, np.ndarray]:
    """Every weight of the model in float32 under its name in transformers; dense kernels are transposed."""
    return {name: variable.array() for name, variable in stored(family.modules(model)).items()}


def read_checkpoint(model: PretrainingModel, config: Config, checkpoint: Checkpoint) -> None:
    """Set the model's weights to those of a checkpoint. Raises BrokenCheckpoint, MissingWeights."""
    runs.verify(checkpoint)
    path = checkpoint.path / "model.safetensors"
    assign(FAMILIES[config.family].modules(model), load_file(path), path)


def write_checkpoint(model: PretrainingModel, config: Config, run_path: Path, progress: Progress) -> Path:
    """Write checkpoints/step{N}/, whole or not at all; an older folder of that step is replaced."""
    family = FAMILIES[config.family]
    path = run_path / "checkpoints" / f"step{progress.step}"
    arrays = tensors(family, model)
    as_stored = {name: np.ascontiguousarray(array.astype(config.checkpoint_dtype)) for name, array in arrays.items()}
    parameters = sum(array.size for array in arrays.values())
    with runs.replacing(path) as folder:
        folder.mkdir()
        save_file(as_stored, folder / "model.safetensors", metadata={"format": "pt"})
        runs.write_json(folder / "config.json", family.huggingface(config))
        runs.write_manifest(folder, progress.step, progress.sequences, progress.tokens, parameters=parameters)
    return path
