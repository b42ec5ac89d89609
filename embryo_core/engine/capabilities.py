"""The capabilities of a checkpoint's model, and what its layers share, read from its files without loading it.

A capability is a name: "masked_words" (logits of masked words), "next_words" (logits of the piece after each piece),
"words" (either of these), "replaced_tokens" (logits that a token was replaced), "states", "attentions", and
"trainable" (the whole model can be fine-tuned).
"""

from collections.abc import Collection, Iterator
from contextlib import suppress

from embryo_core import runs
from embryo_core.engine.tensor_names import heads_stored
from embryo_core.errors import BrokenCheckpoint
from embryo_core.families import ENCODERS
from embryo_core.types import Checkpoint, Run
from embryo_core.words import list_steps

ENCODER = frozenset({"states", "attentions", "trainable"})
MASKED_LANGUAGE_MODEL = ENCODER | {"masked_words", "words"}
THROUGH_TRANSFORMERS = frozenset(  # further families of masked language models, by their model_type in transformers
    "big_bird camembert convbert data2vec-text deberta deberta-v2 distilbert ernie esm esmc eurobert fnet gte ibert "
    "jina_embeddings_v3 layoutlm longformer luke megatron-bert mobilebert modernbert mpnet nomic_bert "
    "nystromformer rembert roberta roberta-prelayernorm roformer squeezebert tapas ultrabert xlm-roberta "
    "xlm-roberta-xl xmod yoso".split()
)
DECODER_FAMILIES = frozenset(  # families whose models read a text from left to right, by their model_type
    "afmoe apertus arcee aria_text axk1 axk2 bailing_hybrid bamba beam biogpt bitnet bloom codegen cohere "
    "cohere2 cohere2_moe cohere_compass_text cpmant ctrl cwm dbrx deepseek_v2 deepseek_v3 deepseek_v32 "
    "deepseek_v4 diffllama doge dots1 dots3_note_text ernie4_5 ernie4_5_moe exaone4 exaone_moe falcon "
    "falcon_h1 falcon_mamba flex_olmo flint gemma gemma2 gemma3_text gemma3n_text gemma4_text "
    "gemma4_unified_text glm glm4 glm4_moe glm4_moe_lite glm_moe_dsa gpt-sw3 gpt2 gpt_bigcode gpt_neo "
    "gpt_neox gpt_neox_japanese gpt_oss gptj granite granite_swa granitemoe granitemoe_swa "
    "granitemoehybrid granitemoeshared helium hrm_text hunyuan_v1_dense hunyuan_v1_moe hy_v3 hy_v4 "
    "hyperclovax inkling2_text inkling_text internlm3 iquestcoder jais2 jamba jetmoe kimi_linear kolibri1 "
    "laguna lfm2 lfm2_moe lfm3 llama llama4_text longcat_flash mamba mamba2 mellum mimo_v2_flash minicpm3 "
    "minimax minimax_m2 minimax_m3_vl_text ministral ministral3 mistral mixtral modernbert-decoder mpt "
    "nanochat nemotron nemotron_h olmo olmo2 olmo3 olmo_hybrid olmoe openai-gpt opt persimmon phi phi3 "
    "phimoe qwen2 qwen2_moe qwen3 qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next qwen4_exp_text "
    "recurrent_gemma rwkv seed_oss smollm3 solar_open stablelm starcoder2 vaultgemma xglm xlstm youtu "
    "zamba zamba2 zaya".split()
)
OPTIONAL_DECODER_FAMILIES = frozenset(  # families of encoders whose models are decoders if config.json has is_decoder
    "bert big_bird camembert data2vec-text electra ernie megatron-bert rembert roberta roberta-prelayernorm roformer "
    "xlm-roberta xlm-roberta-xl xmod".split()
)
MASKED_HEADS = ("ForMaskedLM", "ForPreTraining")  # suffixes of the names of classes that predict masked words
DECODER_HEADS = ("ForCausalLM", "LMHeadModel")  # suffixes of the names of classes that predict the next piece
# families whose head may consist of the word embeddings only, so that no tensor shows it
BARE_HEAD_FAMILIES = ("eurobert",)
WITHOUT_ATTENTIONS = frozenset(  # families without an attention weight for each head and pair of pieces
    "convbert falcon_mamba fnet longformer mamba mamba2 nystromformer rwkv squeezebert xlstm yoso".split()
)


def checkpoint_capabilities(checkpoint: Checkpoint) -> frozenset[str]:
    """Return the capabilities of a checkpoint's model; none for a family that no engine reads.

    ELECTRA's discriminator detects replaced tokens; the generator inside its folder, if present, predicts masked words.
    Raises BrokenCheckpoint if config.json cannot be read.
    """
    family = runs.read_config(checkpoint, runs.ModelClass).model_type
    if not is_supported(family):
        return frozenset()
    generator = runs.generator(checkpoint)
    encoder = ENCODER - {"attentions"} if family in WITHOUT_ATTENTIONS else ENCODER
    capabilities = heads(checkpoint) | (heads(generator) if generator else frozenset())
    return encoder | capabilities | ({"words"} if capabilities & {"masked_words", "next_words"} else frozenset())


def may_support(checkpoint: Checkpoint, needs: Collection[str]) -> bool:
    """Return whether a model has these capabilities; True for a broken checkpoint, which fails on loading."""
    try:
        return checkpoint_capabilities(checkpoint).issuperset(needs)
    except BrokenCheckpoint:
        return True


def run_capabilities(run: Run) -> frozenset[str]:
    """Return the capabilities of a run's last readable checkpoint, or by default of a masked language model."""
    for checkpoint in reversed(runs.checkpoints(run)):
        with suppress(BrokenCheckpoint):
            return checkpoint_capabilities(checkpoint)
    return MASKED_LANGUAGE_MODEL


def heads(checkpoint: Checkpoint) -> frozenset[str]:
    """Return the capabilities of the heads in a checkpoint's folder, without its generator.

    For an encoder they follow from the names of its tensors; for a decoder, a model of another task, or weights that
    are not on this machine, from the class in config.json. Support for a new kind of head is added here and in `Engine`
    (engine.py). Raises BrokenCheckpoint if config.json cannot be read.
    """
    model_class = runs.read_config(checkpoint, runs.ModelClass)
    if is_decoder(model_class):
        return frozenset({"next_words"} if not model_class.name or model_class.name.endswith(DECODER_HEADS) else ())
    class_heads, stored_heads = _heads_of_class(model_class), heads_stored(checkpoint)
    has_foreign_head = model_class.name.endswith(DECODER_HEADS) or (
        model_class.name and not model_class.name.endswith((*MASKED_HEADS, "Model"))
    )
    is_bare = model_class.model_type in BARE_HEAD_FAMILIES
    if stored_heads is None or has_foreign_head or is_bare:  # a class of another task has that task's head
        return class_heads
    layout = ENCODERS.get(model_class.model_type)
    return stored_heads if layout and layout.replaced_token_heads else stored_heads - {"replaced_tokens"}


def _heads_of_class(model_class: runs.ModelClass) -> frozenset[str]:
    """Return the capabilities of an encoder's heads according to the class in its config.json."""
    if (layout := ENCODERS.get(model_class.model_type)) is not None:
        head_classes = {"masked_words": layout.masked_word_heads, "replaced_tokens": layout.replaced_token_heads}
        return frozenset(capability for capability, classes in head_classes.items() if model_class.name in classes)
    has_masked_head = model_class.model_type in THROUGH_TRANSFORMERS and model_class.name.endswith(MASKED_HEADS)
    return frozenset({"masked_words"} if has_masked_head else ())


def is_supported(family: str) -> bool:
    """Return whether an engine reads models of this model_type."""
    return family in ENCODERS or family in THROUGH_TRANSFORMERS or family in DECODER_FAMILIES


def is_decoder(model_class: runs.ModelClass) -> bool:
    """Return whether a model reads a text from left to right, by its family or by is_decoder in its config.json."""
    return model_class.model_type in DECODER_FAMILIES or (
        model_class.is_decoder and model_class.model_type in OPTIONAL_DECODER_FAMILIES
    )


def _describe(capabilities: frozenset[str], model_class: runs.ModelClass) -> str:
    """Return capabilities as text, and whether the head for words is missing: "states; no masked words: ..."."""
    words = "next_words" if is_decoder(model_class) else "masked_words"
    labels = [name for name in (words, "replaced_tokens", "states", "attentions") if name in capabilities]
    text = ", ".join(labels).replace("_", " ")
    return text if words in capabilities else f"{text}; no {words.replace('_', ' ')}: their head is missing"


def head_groups(run: Run) -> int | None:
    """Return the number of groups of layers that share their attention heads; None if no layers share them."""
    layout = ENCODERS.get(run.family)
    shares_heads = layout and layout.shares_layers and run.config.get("share", "all") in ("all", "attention")
    return run.config.get("num_hidden_groups", 1) if shares_heads else None


def describe_capabilities(run: Run) -> Iterator[str]:
    """Yield a sentence on what a run's checkpoints can compute, one for each set of capabilities among them."""
    steps: dict[str, list[int]] = {}
    for checkpoint in runs.checkpoints(run):
        with suppress(BrokenCheckpoint):  # the audit reports it
            description = _describe(checkpoint_capabilities(checkpoint), runs.read_config(checkpoint, runs.ModelClass))
            steps.setdefault(description, []).append(checkpoint.step)
    for description, group in steps.items():
        subject = f"Checkpoints of {list_steps(group, run.step_unit)}" if len(steps) > 1 else "The checkpoints"
        yield f"{subject} give {description}."
