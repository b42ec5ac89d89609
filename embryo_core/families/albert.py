"""ALBERT: groups of layers share weights, and the sentence-order head is not read."""

from embryo_core.families import EncoderLayout

LAYOUT = EncoderLayout(
    model_type="albert",
    masked_word_heads=("AlbertForPreTraining", "AlbertForMaskedLM", ""),
    names={
        "embeddings": "albert.embeddings",
        "projection": "albert.encoder.embedding_hidden_mapping_in",
        "layer": "albert.encoder.albert_layer_groups.{}.albert_layers.0",
        "query": "attention.query",
        "key": "attention.key",
        "value": "attention.value",
        "output": "attention.dense",
        "attention_norm": "attention.LayerNorm",
        "inner": "ffn",
        "outer": "ffn_output",
        "norm": "full_layer_layer_norm",
        "dense": "predictions.dense",
        "head_norm": "predictions.LayerNorm",
        "decoder": "predictions.decoder.weight",
        "bias": "predictions.bias",
    },
    unread=("sop_classifier.",),
    shares_layers=True,
    always_projected=True,
)
