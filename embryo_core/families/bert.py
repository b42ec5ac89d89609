"""BERT: layers of their own; its next-sentence head is left unread."""

from embryo_core.family import UNREAD, Layout

IN_A_LAYER = {  # by the name of the layer; ELECTRA's are the same
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
    "norm": "output.LayerNorm",
}
LAYOUT = Layout(
    model_type="bert",
    masked_word_heads=("BertForPreTraining", "BertForMaskedLM", ""),
    names=IN_A_LAYER
    | {
        "embeddings": "bert.embeddings",
        "layer": "bert.encoder.layer.{}",
        "dense": "cls.predictions.transform.dense",
        "head_norm": "cls.predictions.transform.LayerNorm",
        "decoder": "cls.predictions.decoder.weight",
        "bias": "cls.predictions.bias",
    },
    unread=(*UNREAD, "cls.seq_relationship."),
    factorised=False,
)
