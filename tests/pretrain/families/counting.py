"""Count the parameters of a configuration's models without allocating them, and compare them with transformers."""

from math import prod

import keras
import torch
import transformers

from pretrain.config import Config
from pretrain.export import stored_tensors
from pretrain.families import FAMILIES


def parameters(config: Config) -> dict[str, int]:
    """Return the number of parameters of each exported model by its folder inside the checkpoint ("" for itself).

    Check that their names and shapes are those that transformers derives from config.json.
    """
    family = FAMILIES[config.family]
    with keras.StatelessScope(initialize_variables=False):
        model = family.model(config)
        model.build()
        exported = {"": (family.modules(model), family.huggingface_config(config))}
        exported |= family.inner_checkpoints(config, model)
        weights = {folder: stored_tensors(modules) for folder, (modules, _) in exported.items()}
        shapes = {folder: {name: each.shape for name, each in of.items()} for folder, of in weights.items()}
    for folder, (_, settings) in exported.items():
        kind = getattr(transformers, settings["architectures"][0])
        with torch.device("meta"):
            theirs = kind(kind.config_class(**settings))
        theirs.tie_weights()
        assert shapes[folder] == {name: tuple(parameter.shape) for name, parameter in theirs.named_parameters()}
    return {folder: sum(map(prod, of.values())) for folder, of in shapes.items()}
