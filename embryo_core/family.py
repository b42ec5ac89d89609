"""How a model family lies on disk: what has to be known to read and bound a checkpoint in Hugging Face layout."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """One family. `names` has, by the part of a network, the name in model.safetensors:

    embeddings, projection, layer (with {} for its number), in a layer query, key, value, output, attention_norm, inner,
    outer, norm, of the masked-word head dense, head_norm, decoder, bias, and of the replaced-token head detector_dense,
    detector.
    """

    model_type: str  # in config.json
    masked_word_heads: tuple[str, ...]  # architectures with that head; "" is a config.json that names no architecture
    names: dict[str, str]
    unread: tuple[str, ...]  # parts of the names of tensors that no part of the network is
    replaced_token_heads: tuple[str, ...] = ()  # architectures with that head, which tells replaced tokens
    shares_layers: bool = False  # num_hidden_groups says how many layers have weights of their own
    factorised: bool = True  # embedding_size may be another than hidden_size
    always_projected: bool = False  # embeddings are projected even where they are as wide as the layers
    head_activation: str | None = None  # of the masked-word head; None: hidden_act


# A pooler, positions counted up; where no words are asked for the decoder, and a bias where the decoder has its own.
UNREAD = ("pooler.", "position_ids", "predictions.decoder.", "predictions.bias")
