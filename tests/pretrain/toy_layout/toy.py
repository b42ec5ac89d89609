"""By which the fast engine reads the toy's checkpoints."""

from embryo_core.families import EncoderLayout
from embryo_core.families.bert import LAYER_NAMES

LAYOUT = EncoderLayout(
    model_type="toy",
    masked_word_heads=("ToyForPreTraining",),
    names=LAYER_NAMES
    | {
        "embeddings": "toy.embeddings",
        "layer": "toy.encoder.layer.{}",
        "dense": "words.dense",
        "head_norm": "words.norm",
        "bias": "words.bias",
    },
    unread=("order.",),
    factorised=False,
)
