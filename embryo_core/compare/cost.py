"""The size of a run's model and the cost of its training: parameters from a checkpoint, FLOPs from run.json."""

import re
from collections.abc import Mapping
from math import prod
from typing import Any

from msgspec import convert

from embryo_core import runs
from embryo_core.engine.capabilities import DECODERS
from embryo_core.errors import EmbryoError, RunError
from embryo_core.runs.architecture import layer_flops
from embryo_core.runs.schema import Settings
from embryo_core.types import Checkpoint, Origin, Run, StepUnit

# === Parameters ===

PARTS = {  # a tensor belongs to the first part whose pattern its name matches
    "word embeddings": r"word_embeddings|(^|\.)(wte|embed_in|embed_tokens)\.",
    "projection of embeddings": r"embedding_hidden_mapping_in|embeddings_project",
    "position and segment embeddings": r"(^|\.)(embeddings|wpe|embed_positions)\.",
    "layers": r"(^|\.)(layers?|h|albert_layer_groups)\.\d",
    "heads": r"",
}
# parts that layers share, by the setting `share`
SHARED = {"attention": r"\.attention\.", "ffn": r"\.(ffn|ffn_output|full_layer_layer_norm)\."}
LAYER = r"(^|\.)albert_layer_groups\.(\d+)\."
TIED = r"(decoder\.weight|decoder\.bias|lm_head\.weight)$"  # tensors that copy the word embeddings or the output bias
NOT_TRAINED = r"(^|\.)(attn|attention)\.(masked_)?bias$|inv_freq$|position_ids$"  # buffers of masks and positions
GENERATOR = "generator"


def parameters(run: Run) -> dict[str, int] | None:
    """Count the parameters of each part, shared ones once; None if no checkpoint has readable weights.

    An ELECTRA's generator is a separate part, without the embeddings that it shares with the model.
    """
    for checkpoint in [one for one in reversed(runs.checkpoints(run)) if one.has_weights]:
        try:
            counts = _by_part(checkpoint, run)
            inside = runs.generator(checkpoint)
            inner = _by_part(inside, run) if inside else {}
        except EmbryoError:
            continue
        shared = ("word embeddings", "position and segment embeddings")
        rest = sum(count for part, count in inner.items() if part not in shared)
        return counts | ({GENERATOR: rest} if rest else {}) if counts else None
    return None


def _by_part(checkpoint: Checkpoint, run: Run) -> dict[str, int]:
    """Count the parameters of a checkpoint by part; tied, repeated and untrained tensors are left out."""
    sizes = runs.read_config(checkpoint, runs.Architecture)
    shapes: dict[str, list[int]] = {}
    for file in runs.weights_files(checkpoint):
        if not runs.is_pickled(*file):
            shapes |= {name: tensor.shape for name, tensor in runs.read_header(*file)[0].items()}
    counts: dict[str, int] = {}
    for name, shape in shapes.items():
        tied = sizes.tie_word_embeddings and re.search(TIED, name)
        if tied or re.search(NOT_TRAINED, name) or _repeats(name, run.config):
            continue
        part = next(part for part, pattern in PARTS.items() if re.search(pattern, name))
        counts[part] = counts.get(part, 0) + prod(shape)
    return {part: counts[part] for part in PARTS if part in counts}


def _repeats(name: str, config: Mapping[str, Any]) -> bool:
    """Return whether a tensor copies the one of the layer before; on disk, each layer has a copy of a shared part."""
    shared, layer = SHARED.get(str(config.get("share"))), re.search(LAYER, name)
    if not (shared and layer and re.search(shared, name)):
        return False
    number, layers, groups = int(layer[2]), config.get("num_hidden_layers"), config.get("num_hidden_groups", 1)
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
    needed = (settings.num_hidden_layers, settings.hidden_size, settings.intermediate_size, settings.vocab_size)
    if run.step_unit != StepUnit.UPDATES or not all((*needed, settings.batch_size, settings.sequence_length)):
        return None
    before: float | None = 0.0
    first = run.first_step
    if run.origin:
        before = _parent_flops(run.origin, min(step, first))
    if before is None:
        return None
    updates = max(0, step - first)
    first_phase = min(updates, settings.short_steps)
    short = first_phase - (first_phase // settings.long_every if settings.long_every else 0)
    decoder = run.family in DECODERS
    costs = short * settings.short_batch_size * _sequence_flops(settings, settings.short_sequence_length, decoder)
    costs += (updates - short) * settings.batch_size * _sequence_flops(settings, settings.sequence_length, decoder)
    return before + costs


def cost_changes(run: Run) -> tuple[int, ...]:
    """List the steps at which the FLOPs of an update change."""
    settings, first = convert(run.config, Settings), run.first_step
    inside = 0 < settings.short_steps < settings.steps
    return (first + settings.short_steps,) if inside else ()


def _parent_flops(origin: Origin, step: int) -> float | None:
    """Count the FLOPs of a parent run up to a step; None if the parent is not available or its FLOPs are unknown."""
    try:
        parent = runs.open_run(origin.run)
    except RunError:
        return None
    circular = parent.origin is not None and parent.origin.step >= origin.step  # two runs may name each other as parent
    return None if circular else training_flops(parent, step)


def _sequence_flops(settings: Settings, length: int, decoder: bool) -> float:
    """Count the FLOPs of a forward and a backward pass over one sequence."""
    hidden, vocabulary = settings.hidden_size, settings.vocab_size
    embedding = settings.embedding_size or hidden
    masked_share = max(settings.masked_share, settings.masked_share_end or 0.0)
    masked = max(1, round(masked_share * length))  # every batch is padded to the largest number of masked positions

    def encoder(width: int, inner: int) -> float:
        """Count all layers of this width, and the projection of the embeddings if their size differs."""
        projection = 2 * length * embedding * width if embedding != width else 0
        return settings.num_hidden_layers * layer_flops(length, width, inner) + projection

    def masked_words(width: int) -> float:
        """Count the masked-word head: its dense layer and the product with the output embeddings."""
        return 2 * masked * embedding * (width + vocabulary)

    main = encoder(hidden, settings.intermediate_size)
    if decoder:  # the head is only the output product, at every position
        return PASSES * (main + 2 * length * embedding * vocabulary)
    if settings.generator_size is None:
        return PASSES * (main + masked_words(hidden))
    small = round(hidden * settings.generator_size)
    discriminator = main + 2 * length * hidden * (hidden + 1)
    return PASSES * (discriminator + encoder(small, 4 * small) + masked_words(small))
