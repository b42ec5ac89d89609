"""The families that the fast engine reads; each file here has the LAYOUT of one, and no other file names a family."""

from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

__all__ = ["FAMILIES", "Layout"]


@dataclass(frozen=True)
class Layout:
    """How a family stores a checkpoint in Hugging Face layout, as far as reading and bounding it needs.

    `names` has the name of each part of a network in model.safetensors: embeddings, projection, layer (with {} for its
    number); in a layer query, key, value, output, attention_norm, inner, outer, norm; of the masked-word head dense,
    head_norm, decoder, bias; of the replaced-token head detector_dense, detector.
    """

    model_type: str  # in config.json
    masked_word_heads: tuple[str, ...]  # architectures with that head; "": config.json names no architecture
    names: dict[str, str]
    unread: tuple[str, ...] = ()  # in the names of further tensors that the network does not use
    replaced_token_heads: tuple[str, ...] = ()  # architectures with that head
    shares_layers: bool = False  # num_hidden_groups is the number of distinct layers
    factorised: bool = True  # embedding_size may differ from hidden_size
    always_projected: bool = False  # embeddings are projected even if they are as wide as the layers
    head_activation: str | None = None  # of the masked-word head; None: hidden_act


def found() -> dict[str, Layout]:
    """Return the LAYOUT of each file in this folder, by its model_type."""
    layouts = [import_module(f"{__name__}.{module.name}").LAYOUT for module in iter_modules(__path__)]
    return {layout.model_type: layout for layout in layouts}


FAMILIES = found()
