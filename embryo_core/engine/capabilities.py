"""What a checkpoint's model gives, and what its layers share, read off run.json and config.json without loading it."""

from embryo_core import runs
from embryo_core.families import FAMILIES
from embryo_core.types import Checkpoint, Run

ENCODER = frozenset({"states", "attentions", "trainable"})  # trainable: it can be fine-tuned as a whole
MASKED_LANGUAGE_MODEL = ENCODER | {"masked_words"}
THROUGH_TRANSFORMERS = frozenset(  # families of masked language models that transformers reads, as model_type says
    "big_bird camembert convbert data2vec-text deberta deberta-v2 distilbert ernie esm esmc eurobert fnet gte ibert "
    "jina_embeddings_v3 layoutlm longformer luke megatron-bert mobilebert modernbert mpnet nomic_bert "
    "nystromformer rembert roberta roberta-prelayernorm roformer squeezebert tapas ultrabert xlm-roberta "
    "xlm-roberta-xl xmod yoso".split()
)
WITHOUT_WEIGHTS = frozenset(  # no attention weights of every head, from each piece to each
    "convbert fnet longformer nystromformer squeezebert yoso".split()
)


def gives(checkpoint: Checkpoint) -> frozenset[str]:
    """Which of "masked_words", "replaced_tokens", "states", "attentions" and "trainable" the checkpoint's model gives.

    ELECTRA's discriminator tells replaced tokens, and gives masked words by the generator inside its folder, where
    there is one. A family that no engine reads gives nothing. Raises BrokenCheckpoint where config.json cannot be read.
    """
    family = runs.read_config(checkpoint, runs.ModelClass).model_type
    if family not in FAMILIES and family not in THROUGH_TRANSFORMERS:
        return frozenset()
    inner = runs.generator(checkpoint)
    predicts = has_masked_word_head(checkpoint) or (inner and has_masked_word_head(inner))
    detects = {"replaced_tokens"} if has_replaced_token_head(checkpoint) else set()
    lacks = {"attentions"} if family in WITHOUT_WEIGHTS else set()
    return (MASKED_LANGUAGE_MODEL if predicts else ENCODER) - lacks | detects


def has_masked_word_head(checkpoint: Checkpoint) -> bool:
    """Whether the model in this very folder predicts masked words. Raises BrokenCheckpoint as `gives` does."""
    saved = runs.read_config(checkpoint, runs.ModelClass)
    if saved.model_type in FAMILIES:
        return saved.name in FAMILIES[saved.model_type].masked_word_heads
    return saved.model_type in THROUGH_TRANSFORMERS and saved.name.endswith(("ForMaskedLM", "ForPreTraining"))


def has_replaced_token_head(checkpoint: Checkpoint) -> bool:
    """Whether the model in this very folder tells replaced tokens. Raises BrokenCheckpoint as `gives` does."""
    saved = runs.read_config(checkpoint, runs.ModelClass)
    return saved.model_type in FAMILIES and saved.name in FAMILIES[saved.model_type].replaced_token_heads


def groups_of_heads(run: Run) -> int | None:
    """In how many groups layers share the weights of their heads; None where each layer has its own."""
    layout = FAMILIES.get(run.family)
    shared = layout and layout.shares_layers and run.config.get("share", "all") in ("all", "attention")
    return run.config.get("num_hidden_groups", 1) if shared else None
