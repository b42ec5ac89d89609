"""Text in, checkpoints out: pretraining of masked language models in Keras 3 on TensorFlow, JAX or torch."""

from pretrain.config import Config
from pretrain.families import FAMILIES, preset

__all__ = ["FAMILIES", "Config", "preset"]
