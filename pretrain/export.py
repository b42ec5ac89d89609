"""Keras weights to the Hugging Face layout: a checkpoint folder that the family's from_pretrained loads."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
from safetensors.numpy import save

from embryo_core import runs
from pretrain.config import Config
from pretrain.families import FAMILIES
from pretrain.model import PretrainingModel
from pretrain.state import Progress


def tensors(modules: dict[str, Any]) -> dict[str, np.ndarray]:
    """Every weight of a family's `modules` in float32 under its name in transformers; dense kernels are transposed."""
    arrays = {}
    for name, module in modules.items():
        if isinstance(module, keras.layers.Dense):
            arrays |= {f"{name}.weight": _array(module.kernel).T, f"{name}.bias": _array(module.bias)}
        elif isinstance(module, keras.layers.LayerNormalization):
            arrays |= {f"{name}.weight": _array(module.gamma), f"{name}.bias": _array(module.beta)}
        elif isinstance(module, keras.layers.Embedding):
            arrays[f"{name}.weight"] = _array(module.embeddings)
        else:
            arrays[name] = _array(module)
    return arrays


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
    arrays = tensors(modules)
    stored = {name: np.ascontiguousarray(array.astype(dtype)) for name, array in arrays.items()}
    parameters = sum(array.size for array in tensors({id(module): module for module in modules.values()}).values())
    content = save(stored, metadata={"format": "pt"})
    (folder / "model.safetensors").write_bytes(content)  # a full disk is an OSError here, and none in safetensors
    runs.write_json(folder / "config.json", architecture)
    runs.write_manifest(folder, progress.step, progress.sequences, progress.tokens, parameters=parameters)


def _array(variable) -> np.ndarray:
    return np.asarray(keras.ops.convert_to_numpy(variable), np.float32)
