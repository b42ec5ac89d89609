"""More pieces for a vocabulary: a checkpoint whose new pieces begin as the mean of the pieces of their words."""

import numpy as np

from embryo_core.types import Checkpoint, Run
from pretrain import tokenizer as tokenizers
from pretrain.config import Config
from pretrain.export import StoredTensor, write_grown


def write_extended(run: Run, config: Config, start: Checkpoint) -> None:
    """Write the first checkpoint of a run: the model of `start` with the new pieces of the run's tokenizer.

    Old pieces have the logits that they had; a new one has the mean of its pieces'. Raises MissingWeights,
    BrokenCheckpoint.
    """
    old, new = (tokenizers.load(one.tokenizer) for one in (start.run, run))
    added = range(old.get_vocab_size(), new.get_vocab_size())
    cuts = [old.encode(new.id_to_token(i), add_special_tokens=False).ids for i in added]
    write_grown(run, config, start, lambda arrays, stored: extended(arrays, stored, cuts))


def extended(
    arrays: dict[str, np.ndarray], stored: dict[str, StoredTensor], cuts: list[list[int]]
) -> dict[str, np.ndarray]:
    """Return tensors with a row more for each of `cuts`, the mean of those rows, where `stored` has as many more."""
    found = dict(arrays)
    for name, array in arrays.items():
        if name in stored and stored[name].shape[0] == len(array) + len(cuts):
            rows = np.stack([array[ids].astype(np.float64).mean(axis=0) for ids in cuts])
            found[name] = np.concatenate([array, rows.astype(array.dtype)])
    return found
