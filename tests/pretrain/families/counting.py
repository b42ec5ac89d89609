"""The parameters of a configuration's models, counted without memory for them and compared with transformers' own."""

from math import prod
from typing import Any

import keras
import torch
import transformers

from pretrain.config import Config
from pretrain.families import FAMILIES


def parameters(config: Config) -> dict[str, int]:
    """How many each exported model has, by its folder inside the checkpoint; "" is the checkpoint itself.

    Asserts that names and shapes are those which transformers makes of config.json.
    """
    family = FAMILIES[config.family]
    with keras.StatelessScope(initialize_variables=False):
        model = family.model(config)
        model.build()
        exported = {"": (family.modules(model), family.huggingface(config))} | family.inner_checkpoints(config, model)
        found = {folder: shapes(modules) for folder, (modules, _) in exported.items()}
    for folder, (_, settings) in exported.items():
        kind = getattr(transformers, settings["architectures"][0])
        with torch.device("meta"):
            theirs = kind(kind.config_class(**settings))
        theirs.tie_weights()
        assert found[folder] == {name: tuple(parameter.shape) for name, parameter in theirs.named_parameters()}
    return {folder: sum(map(prod, of.values())) for folder, of in found.items()}


def shapes(modules: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The shape of each weight by its name in transformers, where a dense layer's weight is [out, in]."""
    found = {}
    for name, module in modules.items():
        if isinstance(module, keras.layers.Dense):
            found |= {f"{name}.weight": module.kernel.shape[::-1], f"{name}.bias": module.bias.shape}
        elif isinstance(module, keras.layers.LayerNormalization):
            found |= {f"{name}.weight": module.gamma.shape, f"{name}.bias": module.beta.shape}
        elif isinstance(module, keras.layers.Embedding):
            found[f"{name}.weight"] = module.embeddings.shape
        else:
            found[name] = module.shape
    return {name: tuple(shape) for name, shape in found.items()}
