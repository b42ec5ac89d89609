"""By which the fast engine reads the toy's checkpoints."""

from embryo_core.families.bert import IN_A_LAYER
from embryo_core.family import Layout

LAYOUT = Layout(
    model_type="toy",
    masked_word_heads=("ToyForPreTraining",),
    names=IN_A_LAYER
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
