"""GPT-2: learned positions, linear maps stored [in, out], and an output matrix tied to the word embeddings."""

from embryo_core.families import DecoderLayout

LAYOUT = DecoderLayout(
    model_type="gpt2",
    base="transformer.",
    names={
        "words": "wte",
        "positions": "wpe",
        "layer": "h.{}",
        "attention_norm": "ln_1",
        "query_key_value": "attn.c_attn",
        "output": "attn.c_proj",
        "norm": "ln_2",
        "inner": "mlp.c_fc",
        "outer": "mlp.c_proj",
        "final_norm": "ln_f",
    },
    decoder=("lm_head",),
    tied=True,
    activation="gelu_new",
    unread=("lm_head.", "multiple_choice_head.", "score.", "classifier."),
    transposed=True,
)
