"""What a checkpoint's model gives, read off its config.json without loading it."""

from embryo_core import runs
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
    saved = runs.read_config(checkpoint, runs.ModelClass)
    if saved.model_type not in MASKED_WORD_HEADS:
        return frozenset()
    return MASKED_LANGUAGE_MODEL if saved.name in MASKED_WORD_HEADS[saved.model_type] else ENCODER
