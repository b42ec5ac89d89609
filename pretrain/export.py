"""Keras weights to the Hugging Face layout and back: a checkpoint folder that the family's from_pretrained loads."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save

from embryo_core import runs
from embryo_core.types import Checkpoint
from pretrain.config import Config
from pretrain.families import FAMILIES
from pretrain.model import PretrainingModel
from pretrain.state import Progress
from pretrain.weights import assign, stored


def tensors(modules: dict[str, Any]) -> dict[str, np.ndarray]:
    """Every weight of a family's `modules` in float32 under its name in transformers; dense kernels are transposed."""
    return {name: variable.array() for name, variable in stored(modules).items()}


def read_checkpoint(model: PretrainingModel, config: Config, checkpoint: Checkpoint) -> None:
    """Set the model's weights to those of a checkpoint. Raises BrokenCheckpoint, MissingWeights."""
    family = FAMILIES[config.family]
    inner = {name: modules for name, (modules, _) in family.inner_checkpoints(config, model).items()}
    for name, modules in ({"": family.modules(model)} | inner).items():
        part = replace(checkpoint, path=checkpoint.path / name)
        runs.verify(part)
        assign(modules, load_file(part.path / "model.safetensors"), part.path)


def write_checkpoint(model: PretrainingModel, config: Config, run_path: Path, progress: Progress) -> Path:
    """Write checkpoints/step{N}/, whole or not at all; an older folder of that step is replaced."""
    family = FAMILIES[config.family]
    path = run_path / "checkpoints" / f"step{progress.step}"
    with runs.replacing(path) as folder:
        folder.mkdir()
        _write(folder, family.modules(model), family.huggingface(config), config.checkpoint_dtype, progress)
        for name, (modules, architecture) in family.inner_checkpoints(config, model).items():
            (folder / name).mkdir()
            _write(folder / name, modules, architecture, config.checkpoint_dtype, progress)
    return path


def _write(folder: Path, modules: dict[str, Any], architecture: dict[str, Any], dtype: str, progress: Progress) -> None:
    """Write weights, config.json and manifest.json, which counts weights that layers share once."""
    arrays = {name: np.ascontiguousarray(array.astype(dtype)) for name, array in tensors(modules).items()}
    parameters = sum(array.size for array in tensors({id(module): module for module in modules.values()}).values())
    content = save(arrays, metadata={"format": "pt"})
    (folder / "model.safetensors").write_bytes(content)  # a full disk is an OSError here, and none in safetensors
    runs.write_json(folder / "config.json", architecture)
    runs.write_manifest(folder, progress.step, progress.sequences, progress.tokens, parameters=parameters)
