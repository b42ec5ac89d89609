"""Held-out batches: every sequence once, with the same masks every time, at each length and in each way of masking."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pretrain.config import Config
from pretrain.corpus import Text
from pretrain.examples import Packing, Pairing, batch_of, pack
from pretrain.masking import MaskedBatch, Masking

SEED = 0  # the examples and their masks are the same for every run with the same settings
BATCH = 32  # sequences measured at once; fixed, since the masks depend on it
EVALUATION_SHARE = 0.15  # masked where recipes are compared, whatever share a run trains with


@dataclass(frozen=True)
class HeldOut:
    """Held-out sequences of one length, masked in one way."""

    length: int
    masking: str  # "training", "single pieces 15 %", "whole words 15 %" or "single pieces 15 %, all [MASK]"
    batches: list[MaskedBatch]

    @property
    def sequences(self) -> int:
        """How many sequences there are."""
        return sum(len(batch.ids) for batch in self.batches)

    @property
    def masked(self) -> int:
        """How many pieces are masked."""
        return int(sum(batch.weights.sum() for batch in self.batches))


def heldout_batches(
    text: Text, config: Config, masking: Masking, pairing: Pairing, word_start: np.ndarray
) -> Iterator[HeldOut]:
    """Batches of a text at each length of a run, masked by `masking`, as in training, and in three ways at 15 %.

    Every sequence is there once and has the same masks every time; those at 15 % are the same for every run on this
    corpus. Of the single pieces a tenth stays as it is and a tenth is random, as in training of BERT; the last way has
    [MASK] at all of the same pieces. Longer sequences are fewer, so that each length has as many tokens. A way without
    a batch is left out. `word_start` [V] bool: pieces that begin a word.
    """
    words = Masking(word_start, masking.mask_id, masking.special_ids, EVALUATION_SHARE, max_ngram=1)
    single = replace(words, word_start=np.ones_like(word_start))
    hidden = replace(single, mask_token_share=1.0, random_token_share=0.0)
    ways = (  # with the number that decides what is drawn
        ("training", masking, config.heldout_sequences, 0),
        ("single pieces 15 %", single, config.measured_sequences, 1),
        ("whole words 15 %", words, config.measured_sequences, 2),
        ("single pieces 15 %, all [MASK]", hidden, config.measured_sequences, 1),
    )
    shortest = config.lengths[0]
    for length in config.lengths:
        packing = pack(text, length, word_start)
        for name, how, sequences, drawn in ways:
            rng = np.random.default_rng([SEED, length, drawn])
            if batches := _masked_once(packing, how, pairing, sequences * shortest // length, rng):
                yield HeldOut(length, name, batches)


def _masked_once(
    packing: Packing, masking: Masking, pairing: Pairing, sequences: int, rng: np.random.Generator
) -> list[MaskedBatch]:
    """Up to that many examples, each once, drawn and masked by `rng`, in batches of BATCH or all in one."""
    count = min(sequences, len(packing.examples))
    size = max(1, min(BATCH, count))
    chosen = rng.permutation(len(packing.examples))[: count // size * size].reshape(-1, size)
    return [masking(*batch_of(packing, indices, rng, pairing), rng) for indices in chosen]
