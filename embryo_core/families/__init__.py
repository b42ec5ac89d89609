"""The model families that the fast engine reads; each file in this folder has the LAYOUT of one family.

EncoderLayout describes encoders that normalise after each residual, DecoderLayout decoders that normalise before each
block.
"""

from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

__all__ = ["DECODERS", "ENCODERS", "DecoderLayout", "EncoderLayout"]


@dataclass(frozen=True)
class EncoderLayout:
    """How a family of encoders stores a checkpoint in Hugging Face layout.

    `names` maps the parts of a network to their names in model.safetensors: embeddings, projection, layer (with {} for
    its number); in a layer, query, key, value, output, attention_norm, inner, outer, norm; in the masked-word head,
    dense, head_norm, decoder, bias; in the replaced-token head, detector_dense, detector.
    """

    model_type: str  # in config.json
    masked_word_heads: tuple[str, ...]  # architectures with this head; "" if config.json names no architecture
    names: dict[str, str]
    unread: tuple[str, ...] = ()  # parts of the names of tensors that the network does not use
    replaced_token_heads: tuple[str, ...] = ()  # architectures with this head
    shares_layers: bool = False  # whether num_hidden_groups is the number of distinct layers
    factorised: bool = True  # whether embedding_size may differ from hidden_size
    always_projected: bool = False  # whether embeddings are projected even if they are as wide as the layers
    head_activation: str | None = None  # activation of the masked-word head; None for hidden_act


@dataclass(frozen=True)
class DecoderLayout:
    """How a family of decoders stores a checkpoint in Hugging Face layout.

    `names` maps the parts of a network to their names: words, positions (if they are learned), layer (with {} for its
    number), final_norm; in a layer, attention_norm, query_key_value, output, norm, inner, outer. The prefix `base` is
    put before them, except in files of a model without head.
    """

    model_type: str  # in config.json
    base: str
    names: dict[str, str]
    decoder: tuple[str, ...]  # possible names of the output matrix; the first one that exists is read
    tied: bool  # whether the word embeddings are the output matrix, unless config.json says otherwise
    activation: str  # unless config.json says otherwise
    unread: tuple[str, ...]  # parts of the names of tensors that the network does not use
    transposed: bool = False  # whether linear maps are stored [in, out]
    by_head: bool = False  # whether query, key and value of each head are stored next to each other
    rotary: bool = False  # whether positions rotate queries and keys
    parallel: bool = False  # whether attention and feed-forward read the same states, unless config.json says otherwise


def load_layouts() -> dict[str, EncoderLayout | DecoderLayout]:
    """Return the LAYOUT of every file in this folder, by its model_type."""
    layouts = [import_module(f"{__name__}.{module.name}").LAYOUT for module in iter_modules(__path__)]
    return {layout.model_type: layout for layout in layouts}


ENCODERS: dict[str, EncoderLayout] = {
    name: layout for name, layout in load_layouts().items() if isinstance(layout, EncoderLayout)
}
DECODERS: dict[str, DecoderLayout] = {
    name: layout for name, layout in load_layouts().items() if isinstance(layout, DecoderLayout)
}
