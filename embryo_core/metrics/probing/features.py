"""Features of spans: the mean over a span's pieces of every layer's states, in one forward pass per distinct sentence.

They are held as float16: in memory, or, where they would take more of it than allowed, in a file that is mapped into
memory. The file has no name and goes with the process, however that ends.
"""

import math
import tempfile
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from embryo_core.metrics import batches
from embryo_core.metrics.probing.data import ProbingData

if TYPE_CHECKING:
    from embryo_core.engine.model import Model


def span_features(model: "Model", data: ProbingData, memory: int) -> Tensor:
    """Features [num_layers + 1, spans, H] float16, in at most `memory` bytes of memory or else on disk."""
    features = _room((model.num_layers + 1, len(data.sentence), model.hidden_size), memory)
    by_sentence = np.argsort(data.sentence, kind="stable")
    first = np.searchsorted(data.sentence[by_sentence], np.arange(len(data.sentences) + 1))
    lengths = np.array([len(ids) for ids in data.sentences])

    def pool(batch: np.ndarray) -> None:
        ids = np.stack([data.sentences[i] for i in batch])  # [b, L]
        states = torch.from_numpy(model.hidden_states(ids, np.ones_like(ids))).flatten(1, 2)  # [layers + 1, b L, H]
        spans = np.concatenate([by_sentence[first[i] : first[i + 1]] for i in batch])
        begin = np.repeat(np.arange(len(batch)) * ids.shape[1], first[batch + 1] - first[batch])
        means = _means(states, data.start[spans] + begin, data.end[spans] + begin)
        for own, mean in zip(features, means, strict=True):
            own.index_copy_(0, torch.from_numpy(spans), mean)

    batches.compute(lengths, model.passes_at_once, pool, model.tokens_at_once)
    return features


def _means(states: Tensor, start: np.ndarray, end: np.ndarray) -> list[Tensor]:
    """For each layer of `states` [layers, pieces, H], the mean [n, H] float16 of the pieces from start to end [n]."""
    before = np.cumsum(end - start) - (end - start)  # pieces of the spans before each
    pieces = np.arange((end - start).sum()) + np.repeat(start - before, end - start)
    pieces, before = torch.from_numpy(pieces), torch.from_numpy(before)
    return [embedding_bag(pieces, layer, before, mode="mean").half() for layer in states]


def _room(shape: tuple[int, ...], memory: int) -> Tensor:
    """An array of float16 of this shape; on disk if it takes more bytes than `memory`."""
    if 2 * math.prod(shape) <= memory:
        return torch.empty(shape, dtype=torch.float16)
    with tempfile.TemporaryFile() as file:  # the map keeps it open
        return torch.from_numpy(np.memmap(file, np.float16, "w+", shape=shape))
