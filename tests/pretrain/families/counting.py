"""The parameters of a configuration's models, counted without memory for them and compared with transformers' own."""

from math import prod

import keras
import torch
import transformers

from pretrain.config import Config
from pretrain.export import stored
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
        weights = {folder: stored(modules) for folder, (modules, _) in exported.items()}
        found = {folder: {name: each.shape for name, each in of.items()} for folder, of in weights.items()}
    for folder, (_, settings) in exported.items():
        kind = getattr(transformers, settings["architectures"][0])
        with torch.device("meta"):
            theirs = kind(kind.config_class(**settings))
        theirs.tie_weights()
        assert found[folder] == {name: tuple(parameter.shape) for name, parameter in theirs.named_parameters()}
    return {folder: sum(map(prod, of.values())) for folder, of in found.items()}
