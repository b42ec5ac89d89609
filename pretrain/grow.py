"""Grow a model, by new pieces of the vocabulary or to twice its width, so that it computes the same function."""

from dataclasses import replace

import numpy as np

from embryo_core.types import Checkpoint, Run
from pretrain import tokenizer as tokenizers
from pretrain.config import Config
from pretrain.export import StoredTensor, write_grown

# === More pieces: a new piece begins as the mean of the old pieces of its word ===


def write_extended(run: Run, config: Config, start: Checkpoint) -> None:
    """Write the first checkpoint of a run: the model of `start` with the new pieces of the run's tokenizer.

    Old pieces keep their logits; a new piece has the mean logit of the old pieces of its word. Raises MissingWeights,
    BrokenCheckpoint.
    """
    old_tokenizer, new_tokenizer = (tokenizers.load(owner.tokenizer) for owner in (start.run, run))
    new_ids = range(old_tokenizer.get_vocab_size(), new_tokenizer.get_vocab_size())
    old_ids = [old_tokenizer.encode(new_tokenizer.id_to_token(i), add_special_tokens=False).ids for i in new_ids]
    write_grown(run, config, start, lambda arrays, targets: extend_arrays(arrays, targets, old_ids))


def extend_arrays(
    arrays: dict[str, np.ndarray], targets: dict[str, StoredTensor], old_ids: list[list[int]]
) -> dict[str, np.ndarray]:
    """Return the arrays, with new rows where `targets` have them: the mean of the rows of each list in `old_ids`."""
    new_arrays = dict(arrays)
    for name, array in arrays.items():
        if name in targets and targets[name].shape[0] == len(array) + len(old_ids):
            rows = np.stack([array[ids].astype(np.float64).mean(axis=0) for ids in old_ids])
            new_arrays[name] = np.concatenate([array, rows.astype(array.dtype)])
    return new_arrays


# === Twice as wide ===

# Net2Net (Chen et al., 2016, arXiv:1511.05641). Every state, every head and every unit of the feed-forward networks is
# doubled, which keeps the mean and variance of layer normalisations. Layers that read states divide each weight between
# the two copies in random shares: with equal shares, both copies would get the same gradients and stay equal.


def write_widened(run: Run, config: Config, start: Checkpoint) -> None:
    """Write the first checkpoint of a run: a model twice as wide as `start` that computes the same function.

    It is written in float32, since dividing a float16 is not exact. Raises MissingWeights, BrokenCheckpoint.
    """
    draw = np.random.default_rng(config.seed)
    exact = replace(config, checkpoint_dtype="float32")
    write_grown(run, exact, start, lambda arrays, targets: widen_arrays(arrays, targets, draw))


def widen_arrays(
    arrays: dict[str, np.ndarray], targets: dict[str, StoredTensor], draw: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return the tensors of a narrow model, with every axis doubled that is twice as long in `targets`.

    Tensors that `targets` lacks are unchanged.
    """
    return {
        name: _widen(array.astype(np.float64), targets[name], draw) if name in targets else array
        for name, array in sorted(arrays.items())
    }


def _widen(array: np.ndarray, target: StoredTensor, draw: np.random.Generator) -> np.ndarray:
    for axis, (size, target_size) in enumerate(zip(array.shape, target.shape, strict=False)):
        if target_size != 2 * size:
            continue
        copies = [array, array]
        if target.transposed and axis == 1:  # the inputs of a dense layer
            fractions = draw.uniform(0.25, 0.75, array.shape)
            copies = [array * fractions, array * (1 - fractions)]
        array = np.concatenate(copies, axis)
    return array
