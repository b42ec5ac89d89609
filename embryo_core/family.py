"""The layout of a model family on disk: what is needed to read and check a checkpoint in Hugging Face format."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """One family. `names` maps each part of a network to its name in model.safetensors:

    embeddings, projection, layer (with {} for its number), in a layer query, key, value, output, attention_norm, inner,
    outer, norm, of the masked-word head dense, head_norm, decoder, bias, and of the replaced-token head detector_dense,
    detector.
    """

    model_type: str  # in config.json
    masked_word_heads: tuple[str, ...]  # architectures with that head; "" is a config.json that names no architecture
    names: dict[str, str]
    unread: tuple[str, ...]  # substrings of names of tensors that are not read
    replaced_token_heads: tuple[str, ...] = ()  # architectures with a head for replaced tokens
    shares_layers: bool = False  # num_hidden_groups is the number of distinct layers
    factorised: bool = True  # embedding_size may differ from hidden_size
    always_projected: bool = False  # embeddings are projected even if as wide as the layers
    head_activation: str | None = None  # of the masked-word head; None: hidden_act


# The pooler, position numbers, the decoder if no words are predicted, and a bias if the decoder has another.
UNREAD = ("pooler.", "position_ids", "predictions.decoder.", "predictions.bias")
