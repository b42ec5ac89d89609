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

    ELECTRA's discriminator gives masked words by the generator inside its folder, where there is one. A family that no
    engine reads gives nothing. Raises BrokenCheckpoint where config.json cannot be read.
    """
    if has_masked_word_head(checkpoint):
        return MASKED_LANGUAGE_MODEL
    if runs.read_config(checkpoint, runs.ModelClass).model_type not in MASKED_WORD_HEADS:
        return frozenset()
    inner = runs.generator(checkpoint)
    return MASKED_LANGUAGE_MODEL if inner and has_masked_word_head(inner) else ENCODER


def has_masked_word_head(checkpoint: Checkpoint) -> bool:
    """Whether the model in this very folder predicts masked words. Raises BrokenCheckpoint as `gives` does."""
    saved = runs.read_config(checkpoint, runs.ModelClass)
    return saved.name in MASKED_WORD_HEADS.get(saved.model_type, ())
