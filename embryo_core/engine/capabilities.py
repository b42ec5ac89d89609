"""What a checkpoint's model gives, read off its config.json without loading it."""

import json
from typing import Any

from embryo_core.errors import BrokenCheckpoint
from embryo_core.types import Checkpoint

ENCODER = frozenset({"states", "attentions", "trainable"})  # trainable: it can be fine-tuned as a whole
MASKED_LANGUAGE_MODEL = ENCODER | {"masked_words"}
# The architectures that have a masked-word head; "" is a config.json that names no architecture.
# ELECTRA's ForPreTraining is the discriminator, which has no such head.
MASKED_WORD_HEADS = {
    "albert": ("AlbertForPreTraining", "AlbertForMaskedLM", ""),
    "bert": ("BertForPreTraining", "BertForMaskedLM", ""),
    "electra": ("ElectraForMaskedLM",),
}


def gives(checkpoint: Checkpoint) -> frozenset[str]:
    """Of "masked_words", "states", "attentions" and "trainable", those that the checkpoint's model gives.

    A family that no engine reads gives none of them. Raises BrokenCheckpoint where config.json cannot be read.
    """
    config = read_config(checkpoint)
    family = config.get("model_type")
    if family not in MASKED_WORD_HEADS:
        return frozenset()
    return MASKED_LANGUAGE_MODEL if architecture(config) in MASKED_WORD_HEADS[family] else ENCODER


def architecture(config: dict[str, Any]) -> str:
    """The class of transformers that a config.json was saved for, "" where it does not say."""
    return (config.get("architectures") or [""])[0]


def read_config(checkpoint: Checkpoint) -> dict[str, Any]:
    """The checkpoint's config.json. Raises BrokenCheckpoint."""
    try:
        config = json.loads((checkpoint.path / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as reason:
        raise broken(checkpoint, f"config.json cannot be read ({reason!r})") from None
    if not isinstance(config, dict):
        raise broken(checkpoint, f"config.json holds a {type(config).__name__} instead of an object")
    return config


def broken(checkpoint: Checkpoint, what: str) -> BrokenCheckpoint:
    """The error for a checkpoint with something wrong."""
    return BrokenCheckpoint(f"{checkpoint.path}: {what}; train this step again or delete that folder.")
