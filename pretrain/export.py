"""Keras weights to the Hugging Face layout: a checkpoint folder that the family's from_pretrained loads."""

from pathlib import Path

import keras
import numpy as np
from safetensors.numpy import save

from embryo_core import runs
from pretrain.config import Config
from pretrain.families import FAMILIES
from pretrain.family import Family
from pretrain.model import PretrainingModel
from pretrain.state import Progress


def tensors(family: Family, model: PretrainingModel) -> dict[str, np.ndarray]:
    """Every weight of the model in float32 under its name in transformers; dense kernels are transposed."""
    arrays = {}
    for name, module in family.modules(model).items():
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
    arrays = tensors(family, model)
    stored = {name: np.ascontiguousarray(array.astype(config.checkpoint_dtype)) for name, array in arrays.items()}
    parameters = sum(array.size for array in arrays.values())
    with runs.replacing(path) as folder:
        folder.mkdir()
        content = save(stored, metadata={"format": "pt"})
        (folder / "model.safetensors").write_bytes(content)  # a full disk is an OSError here, and none in safetensors
        runs.write_json(folder / "config.json", family.huggingface(config))
        runs.write_manifest(folder, progress.step, progress.sequences, progress.tokens, parameters=parameters)
    return path


def _array(variable) -> np.ndarray:
    return np.asarray(keras.ops.convert_to_numpy(variable), np.float32)
