"""GPT-NeoX, such as Pythia: rotary positions, parallel attention and feed-forward, and a separate output matrix."""

from embryo_core.families import DecoderLayout

LAYOUT = DecoderLayout(
    model_type="gpt_neox",
    base="gpt_neox.",
    names={
        "words": "embed_in",
        "layer": "layers.{}",
        "attention_norm": "input_layernorm",
        "query_key_value": "attention.query_key_value",
        "output": "attention.dense",
        "norm": "post_attention_layernorm",
        "inner": "mlp.dense_h_to_4h",
        "outer": "mlp.dense_4h_to_h",
        "final_norm": "final_layer_norm",
    },
    decoder=("embed_out", "lm_head"),
    tied=False,
    activation="gelu",
    unread=("embed_out.", "lm_head.", "score.", "classifier."),
    by_head=True,
    rotary=True,
    parallel=True,
)
