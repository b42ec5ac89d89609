"""What the model of a checkpoint gives and what its layers share, read off config.json without loading it.

A capability is a name: "masked_words" (logits of masked words), "replaced_tokens" (logits that a token was replaced),
"states", "attentions", and "trainable" (it can be fine-tuned as a whole).
"""

from embryo_core import runs
from embryo_core.families import FAMILIES
from embryo_core.types import Checkpoint, Run

ENCODER = frozenset({"states", "attentions", "trainable"})
MASKED_LANGUAGE_MODEL = ENCODER | {"masked_words"}
THROUGH_TRANSFORMERS = frozenset(  # other families of masked language models, by their model_type in transformers
    "big_bird camembert convbert data2vec-text deberta deberta-v2 distilbert ernie esm esmc eurobert fnet gte ibert "
    "jina_embeddings_v3 layoutlm longformer luke megatron-bert mobilebert modernbert mpnet nomic_bert "
    "nystromformer rembert roberta roberta-prelayernorm roformer squeezebert tapas ultrabert xlm-roberta "
    "xlm-roberta-xl xmod yoso".split()
)
WITHOUT_ATTENTIONS = frozenset(  # families whose attention weights are not those of every head between all pieces
    "convbert fnet longformer nystromformer squeezebert yoso".split()
)


def gives(checkpoint: Checkpoint) -> frozenset[str]:
    """Return the capabilities of a checkpoint's model; none for a family that no engine reads.

    ELECTRA's discriminator detects replaced tokens; the generator inside its folder, if present, predicts masked words.
    Raises BrokenCheckpoint if config.json cannot be read.
    """
    family = runs.read_config(checkpoint, runs.ModelClass).model_type
    if family not in FAMILIES and family not in THROUGH_TRANSFORMERS:
        return frozenset()
    generator = runs.generator(checkpoint)
    encoder = ENCODER - {"attentions"} if family in WITHOUT_ATTENTIONS else ENCODER
    return encoder | heads(checkpoint) | (heads(generator) if generator else frozenset())


def heads(checkpoint: Checkpoint) -> frozenset[str]:
    """Return the capabilities of the heads in this very folder, without a generator's.

    A head of another kind is added here, and in `Engine` (model.py). Raises BrokenCheckpoint as `gives` does.
    """
    saved = runs.read_config(checkpoint, runs.ModelClass)
    if (layout := FAMILIES.get(saved.model_type)) is not None:
        known = {"masked_words": layout.masked_word_heads, "replaced_tokens": layout.replaced_token_heads}
        return frozenset(capability for capability, classes in known.items() if saved.name in classes)
    masked = saved.model_type in THROUGH_TRANSFORMERS and saved.name.endswith(("ForMaskedLM", "ForPreTraining"))
    return frozenset({"masked_words"} if masked else ())


def head_groups(run: Run) -> int | None:
    """Return the number of layer groups that share the weights of their heads; None if no layers share them."""
    layout = FAMILIES.get(run.family)
    shared = layout and layout.shares_layers and run.config.get("share", "all") in ("all", "attention")
    return run.config.get("num_hidden_groups", 1) if shared else None
