"""How many parameters a run's model has, in all and per part, counted in the tensors of a checkpoint."""

import re
from collections.abc import Mapping
from math import prod
from typing import Any

from embryo_core import runs
from embryo_core.errors import EmbryoError
from embryo_core.types import Checkpoint, Run

PARTS = {  # the first whose pattern is in a tensor's name has it
    "word embeddings": r"word_embeddings",
    "projection of embeddings": r"embedding_hidden_mapping_in|embeddings_project",
    "position and segment embeddings": r"(^|\.)embeddings\.",
    "layers": r"(^|\.)(layers?|albert_layer_groups)\.\d",
    "heads": r"",
}
SHARED = {"attention": r"\.attention\.", "ffn": r"\.(ffn|ffn_output|full_layer_layer_norm)\."}  # by the run's share
LAYER = r"(^|\.)albert_layer_groups\.(\d+)\."
TIED = r"(decoder\.weight|decoder\.bias|lm_head\.weight)$"  # repeat the word embeddings and the bias
GENERATOR = "generator"


def parameters(run: Run) -> dict[str, int] | None:
    """Parameters by part, those that layers share counted once; None where no checkpoint has tensors to count.

    The generator of replaced tokens is a part of its own, without the embeddings that it shares with the model.
    """
    for checkpoint in [one for one in reversed(runs.checkpoints(run)) if one.has_weights]:
        try:
            counts = _by_part(checkpoint, run)
            inside = runs.generator(checkpoint)
            own = _by_part(inside, run) if inside else {}
        except EmbryoError:
            continue
        shared = ("word embeddings", "position and segment embeddings")
        rest = sum(count for part, count in own.items() if part not in shared)
        return counts | ({GENERATOR: rest} if rest else {}) if counts else None
    return None


def _by_part(checkpoint: Checkpoint, run: Run) -> dict[str, int]:
    sizes = runs.read_config(checkpoint, runs.Architecture)
    shapes = runs.tensor_shapes(*runs.weights_file(checkpoint), sizes)
    counts: dict[str, int] = {}
    for name, shape in shapes.items():
        if (sizes.tie_word_embeddings and re.search(TIED, name)) or _repeats(name, run.config):
            continue
        part = next(part for part, pattern in PARTS.items() if re.search(pattern, name))
        counts[part] = counts.get(part, 0) + prod(shape)
    return {part: counts[part] for part in PARTS if part in counts}


def _repeats(name: str, config: Mapping[str, Any]) -> bool:
    """Whether a tensor repeats that of the layer before: layers that share one part alone have a copy each on disk."""
    shared, layer = SHARED.get(str(config.get("share"))), re.search(LAYER, name)
    if not (shared and layer and re.search(shared, name)):
        return False
    number, layers, groups = int(layer[2]), config.get("num_hidden_layers"), config.get("num_hidden_groups", 1)
    known = isinstance(layers, int) and isinstance(groups, int) and layers > 0  # the card may be a stranger's
    return known and number > 0 and number * groups // layers == (number - 1) * groups // layers
