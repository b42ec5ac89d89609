"""ELECTRA: the discriminator is an ElectraForPreTraining, the generator an ElectraForMaskedLM."""

from embryo_core.families import EncoderLayout
from embryo_core.families.bert import LAYER_NAMES

LAYOUT = EncoderLayout(
    model_type="electra",
    masked_word_heads=("ElectraForMaskedLM",),
    names=LAYER_NAMES
    | {
        "embeddings": "electra.embeddings",
        "projection": "electra.embeddings_project",
        "layer": "electra.encoder.layer.{}",
        "dense": "generator_predictions.dense",
        "head_norm": "generator_predictions.LayerNorm",
        "decoder": "generator_lm_head.weight",
        "bias": "generator_lm_head.bias",
        "detector_dense": "discriminator_predictions.dense",
        "detector": "discriminator_predictions.dense_prediction",
    },
    unread=("generator_lm_head.weight", "discriminator_predictions."),
    replaced_token_heads=("ElectraForPreTraining",),
    head_activation="gelu",  # transformers' generator ignores hidden_act
)
