"""What a checkpoint's model gives, read off its config.json without loading it."""

from embryo_core import runs
from embryo_core.engine.families import FAMILIES
from embryo_core.types import Checkpoint

ENCODER = frozenset({"states", "attentions", "trainable"})  # trainable: it can be fine-tuned as a whole
MASKED_LANGUAGE_MODEL = ENCODER | {"masked_words"}


def gives(checkpoint: Checkpoint) -> frozenset[str]:
    """Which of "masked_words", "states", "attentions" and "trainable" the checkpoint's model gives.

    ELECTRA's discriminator gives masked words by the generator inside its folder, where there is one. A family that no
    engine reads gives nothing. Raises BrokenCheckpoint where config.json cannot be read.
    """
    if has_masked_word_head(checkpoint):
        return MASKED_LANGUAGE_MODEL
    if runs.read_config(checkpoint, runs.ModelClass).model_type not in FAMILIES:
        return frozenset()
    inner = runs.generator(checkpoint)
    return MASKED_LANGUAGE_MODEL if inner and has_masked_word_head(inner) else ENCODER


def has_masked_word_head(checkpoint: Checkpoint) -> bool:
    """Whether the model in this very folder predicts masked words. Raises BrokenCheckpoint as `gives` does."""
    saved = runs.read_config(checkpoint, runs.ModelClass)
    return saved.model_type in FAMILIES and saved.name in FAMILIES[saved.model_type].masked_word_heads
