"""ELECTRA: ElectraForPreTraining is the discriminator, ElectraForMaskedLM the generator."""

from embryo_core.families.bert import IN_A_LAYER
from embryo_core.family import UNREAD, Layout

LAYOUT = Layout(
    model_type="electra",
    masked_word_heads=("ElectraForMaskedLM",),
    names=IN_A_LAYER
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
    unread=(*UNREAD, "generator_lm_head.weight", "discriminator_predictions."),
    replaced_token_heads=("ElectraForPreTraining",),
    head_activation="gelu",  # whatever hidden_act is, in transformers' generator
)
