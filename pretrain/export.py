"""Keras weights to the Hugging Face layout: a checkpoint folder that AlbertForPreTraining.from_pretrained loads."""

import os
import shutil
from pathlib import Path

import keras
import numpy as np
from safetensors.numpy import save_file

from embryo_core import runs
from pretrain.config import Config
from pretrain.model import Albert

LAYER = "albert.encoder.albert_layer_groups.0.albert_layers.0"


def tensors(model: Albert) -> dict[str, np.ndarray]:
    """Every weight of the model in float32 under its name in transformers; dense kernels are transposed."""
    encoder, layer = model.encoder, model.encoder.layer
    head, order = model.masked_language_model, model.sentence_order
    dense = {
        "albert.encoder.embedding_hidden_mapping_in": encoder.projection,
        f"{LAYER}.attention.query": layer.attention.query,
        f"{LAYER}.attention.key": layer.attention.key,
        f"{LAYER}.attention.value": layer.attention.value,
        f"{LAYER}.attention.dense": layer.attention.output_dense,
        f"{LAYER}.ffn": layer.intermediate,
        f"{LAYER}.ffn_output": layer.output_dense,
        "albert.pooler": order.pooler,
        "predictions.dense": head.transform,
        "sop_classifier.classifier": order.classifier,
    }
    norms = {
        "albert.embeddings.LayerNorm": encoder.embeddings.norm,
        f"{LAYER}.attention.LayerNorm": layer.attention.norm,
        f"{LAYER}.full_layer_layer_norm": layer.norm,
        "predictions.LayerNorm": head.norm,
    }
    weights = {
        "albert.embeddings.word_embeddings.weight": encoder.embeddings.word.embeddings,
        "albert.embeddings.position_embeddings.weight": encoder.embeddings.position.embeddings,
        "albert.embeddings.token_type_embeddings.weight": encoder.embeddings.segment.embeddings,
        "predictions.bias": head.bias,
    }
    weights |= {f"{name}.bias": module.bias for name, module in dense.items()}
    weights |= {f"{name}.weight": module.gamma for name, module in norms.items()}
    weights |= {f"{name}.bias": module.beta for name, module in norms.items()}
    arrays = {name: _array(variable) for name, variable in weights.items()}
    return arrays | {f"{name}.weight": _array(module.kernel).T for name, module in dense.items()}


def write_checkpoint(model: Albert, config: Config, run_path: Path, step: int, sequences: int, tokens: int) -> Path:
    """Write checkpoints/step{N}/ under a temporary name and rename it; an older folder of that step is replaced."""
    final = run_path / "checkpoints" / f"step{step}"
    folder = final.with_name(final.name + ".tmp")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    arrays = tensors(model)
    stored = {name: np.ascontiguousarray(array.astype(config.checkpoint_dtype)) for name, array in arrays.items()}
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    runs.write_json(folder / "config.json", config.huggingface())
    runs.write_manifest(folder, step, sequences, tokens, parameters=sum(array.size for array in arrays.values()))
    shutil.rmtree(final, ignore_errors=True)
    os.replace(folder, final)
    return final


def _array(variable) -> np.ndarray:
    return np.asarray(keras.ops.convert_to_numpy(variable), np.float32)
