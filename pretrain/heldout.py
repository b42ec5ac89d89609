"""Held-out batches: every sequence once, the same every time, at each length and in each way of measuring."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pretrain.collators import Collator, Measured
from pretrain.config import Config
from pretrain.corpus import Text
from pretrain.examples import Packing
from pretrain.masking import MaskedBatch

SEED = 0  # the examples and their masks are the same for every run with the same settings
BATCH = 32  # sequences measured at once; fixed, since the masks depend on it


@dataclass(frozen=True)
class HeldOut:
    """Held-out sequences of one length, measured in one way."""

    length: int
    masking: str  # the way: "training", "whole words 15 %", "next tokens", ...
    batches: list[MaskedBatch]

    @property
    def sequences(self) -> int:
        """How many sequences there are."""
        return sum(len(batch.ids) for batch in self.batches)

    @property
    def predictions(self) -> int:
        """How many pieces are to be predicted."""
        return int(sum(batch.weights.sum() for batch in self.batches))


def heldout_batches(text: Text, config: Config, collator: Collator) -> Iterator[HeldOut]:
    """Yield batches of a text at each length of a run, in each way in which the collator measures.

    Every sequence is there once and has the same masks every time. Longer sequences are fewer, so that each length has
    as many tokens. A way without a batch is left out.
    """
    shortest = config.lengths[0]
    for length in config.lengths:
        packing = collator.pack(text, length)
        for way in collator.measured():
            rng = np.random.default_rng([SEED, length, way.drawn])
            if batches := _each_once(packing, way, way.sequences * shortest // length, rng):
                yield HeldOut(length, way.name, batches)


def _each_once(packing: Packing, way: Measured, sequences: int, rng: np.random.Generator) -> list[MaskedBatch]:
    """Return up to that many examples, each once, drawn and masked by `rng`, in batches of BATCH or all in one."""
    count = min(sequences, len(packing.examples))
    size = max(1, min(BATCH, count))
    chosen = rng.permutation(len(packing.examples))[: count // size * size].reshape(-1, size)
    return [way.make(packing, indices, rng) for indices in chosen]
