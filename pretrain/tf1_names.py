"""Variables that google-research's code writes, by their names in transformers: every one accounted for.

What a family's variables are called is in its file in families/, as an `Original`.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

from embryo_core.errors import ConfigError

SLOTS = re.compile(r"(^|/)(adam_m|adam_v|global_step)$")  # of the optimizers (lamb_optimizer.py, optimization.py)
EMBEDDINGS = r"embeddings/(word|position|token_type)_embeddings"
LAYER = (  # modeling.py of bert, transformer_model: its number, and its part
    r"encoder/layer_(\d+)/"
    r"(attention/self/(?:query|key|value)|(?:attention/output|intermediate|output)/dense|(?:attention/)?output/LayerNorm)"
)
PARTS = {"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias", "output_weights": "weight",
         "output_bias": "bias"}  # fmt: skip


@dataclass(frozen=True)
class Original:
    """How the original code of a family writes its checkpoints.

    `scopes` has, by a pattern, what a variable's scope is called in transformers; its last part follows by PARTS.
    """

    mark: str  # part of the name of some variable, which no other family has
    scopes: dict[str, str]
    layers: tuple[str, str] = ("num_hidden_layers", r"encoder\.layer\.(\d+)\.")  # a setting, and what counts to it
    inner: str = "intermediate.dense"  # the first dense layer of the feed-forward network, in transformers
    only_configured: tuple[str, ...] = ("num_attention_heads",)  # settings that no variable tells
    projection: str | None = None  # of embeddings, in transformers; the original has none if they are as wide as states
    head_size: int | None = None  # of every model, where no configuration lies beside it; None: one has to


class Tensor(NamedTuple):
    """What a variable is in a checkpoint of ours."""

    folder: str  # inside the checkpoint's: "generator", or "" for the checkpoint itself
    name: str
    transposed: bool  # kernels have [inputs, outputs], weights [outputs, inputs]


def tensor_of(variable: str, original: Original, source: object) -> Tensor | None:
    """What a variable of a family is; None for one of the optimizer. Raises ConfigError for one that is unknown."""
    if SLOTS.search(variable):
        return None
    folder = "generator" if variable.startswith("generator") else ""
    scope, _, last = variable.rpartition("/")
    part = PARTS.get(last)
    if last.endswith("_embeddings"):
        scope, part = variable, "weight"
    for pattern, name in original.scopes.items():
        if part and (found := re.fullmatch(pattern, scope)):
            return Tensor(folder, f"{found.expand(name).replace('/', '.')}.{part}", variable.endswith("/kernel"))
    raise ConfigError(f"{source} has the variable {variable}, which its original code does not write.")
