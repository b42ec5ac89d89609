"""Variables of google-research's albert, bert and electra by their names in transformers, every one accounted for."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from embryo_core.errors import ConfigError

SLOTS = re.compile(r"(^|/)(adam_m|adam_v|global_step)$")  # of the optimizers (lamb_optimizer.py, optimization.py)
LAYER = (  # modeling.py of bert, transformer_model: its number, and its part
    r"encoder/layer_(\d+)/"
    r"(attention/self/(?:query|key|value)|(?:attention/output|intermediate|output)/dense|(?:attention/)?output/LayerNorm)"
)
EMBEDDINGS = r"embeddings/(word|position|token_type)_embeddings"
SHARED = r"bert/encoder/transformer/group_(\d+)/inner_group_0"  # modeling.py of albert, attention_ffn_block
ALBERT_LAYER = r"albert.encoder.albert_layer_groups.\1.albert_layers.0"

# What each variable's scope is called in transformers; its last part follows by the rules in PARTS.
SCOPES = {
    "albert": {
        rf"bert/{EMBEDDINGS}": r"albert.embeddings.\1_embeddings",
        r"bert/embeddings/LayerNorm": "albert.embeddings.LayerNorm",
        r"bert/encoder/embedding_hidden_mapping_in": "albert.encoder.embedding_hidden_mapping_in",
        rf"{SHARED}/attention_1/self/(query|key|value)": rf"{ALBERT_LAYER}.attention.\2",
        rf"{SHARED}/attention_1/output/dense": rf"{ALBERT_LAYER}.attention.dense",
        rf"{SHARED}/LayerNorm": rf"{ALBERT_LAYER}.attention.LayerNorm",
        rf"{SHARED}/ffn_1/intermediate/dense": rf"{ALBERT_LAYER}.ffn",
        rf"{SHARED}/ffn_1/intermediate/output/dense": rf"{ALBERT_LAYER}.ffn_output",
        rf"{SHARED}/LayerNorm_1": rf"{ALBERT_LAYER}.full_layer_layer_norm",
        r"bert/pooler/dense": "albert.pooler",
        r"cls/predictions/transform/(dense|LayerNorm)": r"predictions.\1",
        r"cls/predictions": "predictions",
        r"cls/seq_relationship": "sop_classifier.classifier",
    },
    "bert": {
        rf"bert/{EMBEDDINGS}": r"bert.embeddings.\1_embeddings",
        r"bert/embeddings/LayerNorm": "bert.embeddings.LayerNorm",
        rf"bert/{LAYER}": r"bert.encoder.layer.\1.\2",
        r"bert/pooler/dense": "bert.pooler.dense",
        r"cls/predictions/transform/(dense|LayerNorm)": r"cls.predictions.transform.\1",
        r"cls/predictions": "cls.predictions",
        r"cls/seq_relationship": "cls.seq_relationship",
    },
    "electra": {
        rf"electra/{EMBEDDINGS}": r"electra.embeddings.\1_embeddings",
        r"electra/embeddings/LayerNorm": "electra.embeddings.LayerNorm",
        rf"(?:electra|generator)/{LAYER}": r"electra.encoder.layer.\1.\2",
        r"(?:electra|generator)/embeddings_project": "electra.embeddings_project",
        r"discriminator_predictions/dense": "discriminator_predictions.dense",
        r"discriminator_predictions/dense_1": "discriminator_predictions.dense_prediction",
        r"generator_predictions/(dense|LayerNorm)": r"generator_predictions.\1",
        r"generator_predictions": "generator_lm_head",
    },
}
PARTS = {"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias", "output_weights": "weight",
         "output_bias": "bias"}  # fmt: skip


class Tensor(NamedTuple):
    """What a variable is in a checkpoint of ours."""

    folder: str  # inside the checkpoint's: "generator", or "" for the checkpoint itself
    name: str
    transposed: bool  # kernels have [inputs, outputs], weights [outputs, inputs]


def family_of(variables: Iterable[str], source: object) -> str:
    """The family that wrote these variables. Raises ConfigError where none of the three did."""
    names = list(variables)
    for family, part in (("electra", "electra/encoder/"), ("albert", "/group_0/"), ("bert", "bert/encoder/layer_0/")):
        if any(part in name for name in names):
            return family
    raise ConfigError(
        f"{source} holds no ALBERT, BERT or ELECTRA as their original code writes them: its variables are "
        f"{', '.join(sorted(names)[:3]) or 'none'}, ..."
    )


def tensor_of(variable: str, family: str, source: object) -> Tensor | None:
    """What a variable of that family is; None for one of the optimizer. Raises ConfigError for one that is unknown."""
    if SLOTS.search(variable):
        return None
    folder = "generator" if variable.startswith("generator") else ""
    scope, _, last = variable.rpartition("/")
    part = PARTS.get(last)
    if last.endswith("_embeddings"):
        scope, part = variable, "weight"
    for pattern, name in SCOPES[family].items():
        if part and (found := re.fullmatch(pattern, scope)):
            return Tensor(folder, f"{found.expand(name).replace('/', '.')}.{part}", variable.endswith("/kernel"))
    raise ConfigError(f"{source} has the variable {variable}, which the original {family} lacks; nothing was written.")
