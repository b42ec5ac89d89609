"""How many parameters a run's model has, in all and per part, counted in the tensors of a checkpoint."""

import re
from math import prod

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
TIED = r"(decoder\.weight|decoder\.bias|lm_head\.weight)$"  # repeat the word embeddings and the bias
GENERATOR = "generator"


def parameters(run: Run) -> dict[str, int] | None:
    """Parameters by part, those that layers share counted once; None where no checkpoint has tensors to count.

    The generator of replaced tokens is a part of its own, without the embeddings that it shares with the model.
    """
    for checkpoint in [one for one in reversed(runs.checkpoints(run)) if one.has_weights]:
        try:
            counts = _by_part(checkpoint)
            inside = runs.generator(checkpoint)
            own = _by_part(inside) if inside else {}
        except EmbryoError:
            continue
        shared = ("word embeddings", "position and segment embeddings")
        rest = sum(count for part, count in own.items() if part not in shared)
        return counts | ({GENERATOR: rest} if rest else {}) if counts else None
    return None


def _by_part(checkpoint: Checkpoint) -> dict[str, int]:
    sizes = runs.read_config(checkpoint, runs.Architecture)
    shapes = runs.tensor_shapes(*runs.weights_file(checkpoint), sizes)
    counts: dict[str, int] = {}
    for name, shape in shapes.items():
        if sizes.tie_word_embeddings and re.search(TIED, name):
            continue
        part = next(part for part, pattern in PARTS.items() if re.search(pattern, name))
        counts[part] = counts.get(part, 0) + prod(shape)
    return {part: counts[part] for part in PARTS if part in counts}
