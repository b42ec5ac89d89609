"""The size of a run's model and the cost of its training: parameters from a checkpoint, FLOPs from run.json."""

import re
from collections.abc import Container, Mapping
from math import prod
from typing import Any

from msgspec import convert

from embryo_core import runs
from embryo_core.engine.capabilities import DECODER_FAMILIES
from embryo_core.errors import EmbryoError, RunError
from embryo_core.families import ENCODERS
from embryo_core.runs.architecture import layer_flops
from embryo_core.runs.schema import Settings
from embryo_core.types import Checkpoint, Origin, Run, StepUnit

# === Parameters ===

PART_PATTERNS = {  # a tensor belongs to the first part whose pattern its name matches
    "word embeddings": r"word_embeddings|(^|\.)(wte|embed_in|embed_tokens|tokens_embed|tok_embeddings)\."
    r"|(^|\.)embeddings\.weight$|^(transformer\.)?w\.weight$",  # of Mamba and CTRL
    "projection of embeddings": r"embedding_hidden_mapping_in|embeddings_project",
    "position and segment embeddings": r"(^|\.)(embeddings|wpe|embed_positions|positions_embed)\.",
    "layers": r"(^|\.)(layers?|h|blocks|albert_layer_groups)\.\d",
    "heads": r"",
}
# parts that layers share, by the setting `share`
SHARED_PATTERNS = {"attention": r"\.attention\.", "ffn": r"\.(ffn|ffn_output|full_layer_layer_norm)\."}
LAYER_PATTERN = r"(^|\.)albert_layer_groups\.(\d+)\."
TIED_PATTERN = r"(decoder|lm_head)\.weight$"  # tensors that copy the word embeddings
BUFFER_PATTERN = r"(^|\.)(attn|attention)\.(masked_)?bias$|inv_freq$|position_ids$"  # buffers of masks and positions
GENERATOR = "generator"


def parameters(run: Run) -> dict[str, int] | None:
    """Count the parameters of each part, shared ones once; None if no checkpoint has readable weights.

    An ELECTRA's generator is a separate part, without the embeddings that it shares with the model.
    """
    for checkpoint in [candidate for candidate in reversed(runs.checkpoints(run)) if candidate.has_weights]:
        try:
            counts = _count_by_part(checkpoint, run)
            generator = runs.generator(checkpoint)
            generator_counts = _count_by_part(generator, run) if generator else {}
        except EmbryoError:
            continue
        shared_parts = ("word embeddings", "position and segment embeddings")
        generator_total = sum(count for part, count in generator_counts.items() if part not in shared_parts)
        return counts | ({GENERATOR: generator_total} if generator_total else {}) if counts else None
    return None


def _count_by_part(checkpoint: Checkpoint, run: Run) -> dict[str, int]:
    """Count the parameters of a checkpoint by part; tied, repeated and untrained tensors are left out."""
    architecture = runs.read_config(checkpoint, runs.Architecture)
    shapes: dict[str, list[int]] = {}
    for file in runs.weights_files(checkpoint):
        if not runs.is_pickled(*file):
            shapes |= {name: tensor.shape for name, tensor in runs.read_header(*file)[0].items()}
    counts: dict[str, int] = {}
    for name, shape in shapes.items():
        is_copy = architecture.tie_word_embeddings and _is_tied(name, shapes)
        if is_copy or re.search(BUFFER_PATTERN, name) or _is_repeated(name, run.config):
            continue
        part = next(part for part, pattern in PART_PATTERNS.items() if re.search(pattern, name))
        counts[part] = counts.get(part, 0) + prod(shape)
    return {part: counts[part] for part in PART_PATTERNS if part in counts}


def _is_tied(name: str, names: Container[str]) -> bool:
    """Return whether a tensor copies the word embeddings, or the output bias if there is another one, as in BERT."""
    is_copied_bias = name.endswith("decoder.bias") and f"{name.removesuffix('decoder.bias')}bias" in names
    return is_copied_bias or bool(re.search(TIED_PATTERN, name))


def _is_repeated(name: str, config: Mapping[str, Any]) -> bool:
    """Return whether a tensor copies the one of the layer before; on disk, each layer has a copy of a shared part."""
    shared_pattern, layer_match = SHARED_PATTERNS.get(str(config.get("share"))), re.search(LAYER_PATTERN, name)
    if not (shared_pattern and layer_match and re.search(shared_pattern, name)):
        return False
    number, layers, groups = int(layer_match[2]), config.get("num_hidden_layers"), config.get("num_hidden_groups", 1)
    if not (isinstance(layers, int) and isinstance(groups, int) and layers > 0):  # run.json may be malformed
        return False
    return number > 0 and number * groups // layers == (number - 1) * groups // layers


# === Training FLOPs ===

PASSES = 3  # one forward pass, and a backward pass that costs twice as much


def training_flops(run: Run, step: int) -> float | None:
    """Count the FLOPs of a run up to a step, including its parent run; None if the settings are unknown.

    A multiply-add counts as two FLOPs. A layer costs `layer_flops` in the forward pass and twice that in the backward
    pass; sharing weights between layers saves nothing. docs/metrics.md has the full formula.
    """
    settings = convert(run.config, Settings)
    required_sizes = (settings.num_hidden_layers, settings.hidden_size, settings.intermediate_size, settings.vocab_size)
    if run.step_unit != StepUnit.UPDATES or not all((*required_sizes, settings.batch_size, settings.sequence_length)):
        return None
    parent_flops: float | None = 0.0
    first_step = run.first_step
    if run.origin:
        parent = _parent(run.origin)
        parent_flops = training_flops(parent, min(step, first_step)) if parent else None
    if parent_flops is None:
        return None
    updates = max(0, step - first_step)
    first_phase = min(updates, settings.short_steps)
    short = first_phase - (first_phase // settings.long_every if settings.long_every else 0)
    flops = short * settings.short_batch_size * _sequence_flops(settings, settings.short_sequence_length, run.family)
    flops += (updates - short) * settings.batch_size * _sequence_flops(settings, settings.sequence_length, run.family)
    return parent_flops + flops


def cost_changes(run: Run) -> tuple[int, ...]:
    """List the steps at which the FLOPs of an update change, in the run and, before it, in its parent runs."""
    settings, first_step = convert(run.config, Settings), run.first_step
    has_change = 0 < settings.short_steps < settings.steps
    changes = (first_step + settings.short_steps,) if has_change else ()
    parent = _parent(run.origin) if run.origin else None
    if parent is None:
        return changes
    return (*(step for step in (parent.first_step, *cost_changes(parent)) if step < first_step), *changes)


def _parent(origin: Origin) -> Run | None:
    """Return the parent run of a continued run; None if it is not available."""
    try:
        parent = runs.open_run(origin.run)
    except RunError:
        return None
    # two runs may name each other as parent
    is_circular = parent.origin is not None and parent.origin.step >= origin.step
    return None if is_circular else parent


def _sequence_flops(settings: Settings, length: int, family: str) -> float:
    """Count the FLOPs of a forward and a backward pass over one sequence."""
    hidden_size, vocabulary_size = settings.hidden_size, settings.vocab_size
    embedding_size = settings.embedding_size or hidden_size
    masked_share = max(settings.masked_share, settings.masked_share_end or 0.0)
    # every batch is padded to the largest number of masked positions
    masked_count = max(1, round(masked_share * length))
    always_projected = family in ENCODERS and ENCODERS[family].always_projected

    def count_encoder(width: int, inner: int) -> float:
        """Count all layers of this width, and the projection of the embeddings if the model has one."""
        projection = 2 * length * embedding_size * width if always_projected or embedding_size != width else 0
        return settings.num_hidden_layers * layer_flops(length, width, inner) + projection

    def count_head(width: int) -> float:
        """Count the masked-word head: its dense layer and the product with the output embeddings."""
        return 2 * masked_count * embedding_size * (width + vocabulary_size)

    encoder_flops = count_encoder(hidden_size, settings.intermediate_size)
    if family in DECODER_FAMILIES:  # the head is only the output product, at every position
        return PASSES * (encoder_flops + 2 * length * embedding_size * vocabulary_size)
    if settings.generator_size is None:
        return PASSES * (encoder_flops + count_head(hidden_size))
    generator_width = round(hidden_size * settings.generator_size)
    discriminator_flops = encoder_flops + 2 * length * hidden_size * (hidden_size + 1)
    return PASSES * (
        discriminator_flops + count_encoder(generator_width, 4 * generator_width) + count_head(generator_width)
    )
