"""BERT: layers do not share weights, and the next-sentence head is not read."""

from embryo_core.families import EncoderLayout

LAYER_NAMES = {  # names within a layer, also used by ELECTRA
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
    "norm": "output.LayerNorm",
}
LAYOUT = EncoderLayout(
    model_type="bert",
    masked_word_heads=("BertForPreTraining", "BertForMaskedLM", ""),
    names=LAYER_NAMES
    | {
        "embeddings": "bert.embeddings",
        "layer": "bert.encoder.layer.{}",
        "dense": "cls.predictions.transform.dense",
        "head_norm": "cls.predictions.transform.LayerNorm",
        "decoder": "cls.predictions.decoder.weight",
        "bias": "cls.predictions.bias",
    },
    unread=("cls.seq_relationship.",),
    factorised=False,
)
