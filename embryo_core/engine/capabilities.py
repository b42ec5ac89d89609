"""What a checkpoint's model gives, read off its config.json without loading it."""

import json

from embryo_core.types import Checkpoint

MASKED_LANGUAGE_MODEL = frozenset({"masked_words", "states", "attentions", "trainable"})
GIVES = {"albert": MASKED_LANGUAGE_MODEL, "bert": MASKED_LANGUAGE_MODEL}


def gives(checkpoint: Checkpoint) -> frozenset[str]:
    """Of "masked_words", "states", "attentions" and "trainable", those that the checkpoint's model gives."""
    config = json.loads((checkpoint.path / "config.json").read_bytes())
    return GIVES.get(config.get("model_type"), frozenset())
