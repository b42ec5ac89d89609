"""Collators, which make batches for training and for measuring: one for masked words, one for next tokens."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from embryo_core.errors import ConfigError
from pretrain.config import Config, MaskedConfig
from pretrain.corpus import Text
from pretrain.examples import Packing, Pairing, batch_of, from_another_document, pack, windows
from pretrain.masking import Batch, Masking
from pretrain.tokenizer import WordStarts
from pretrain.vocabularies import CLS, MASK, PAD, SEP

HELDOUT_SEED = 0  # for held-out text: examples and masks are the same for every run with the same settings
MEASURED_BATCH_SIZE = 32  # sequences per measured batch; fixed, since the masks depend on it
EVALUATION_SHARE = 0.15  # share of the tokens masked to compare recipes, whatever the share in training

MakeBatch = Callable[[Packing, np.ndarray, np.random.Generator], Batch]


class MeasurePlan(NamedTuple):
    """One way of measuring on held-out text."""

    name: str  # name in the log
    sequences: int  # sequences measured at the shortest length; longer ones get as many tokens
    seed: int  # of the choice of sequences and of masks
    make: MakeBatch


class Collator(ABC):
    """Base class of the collators, which split a text into examples and make batches of them."""

    count_key: ClassVar[str]  # key in the log for the number of predictions of the main objective

    @abstractmethod
    def pack(self, text: Text, length: int) -> Packing:
        """Split a text into examples for sequences of this length."""

    @abstractmethod
    def batch(self, packing: Packing, indices: np.ndarray, step: int, rng: np.random.Generator) -> Batch:
        """Return the batch of these examples for the update that leads from `step` to `step + 1`."""

    @abstractmethod
    def measure_plans(self) -> list[MeasurePlan]:
        """Return the ways of measuring on held-out text; the first one gives the means of a row of the log."""

    def check(self, name: str, text: Text) -> None:  # noqa: B027  # most collators accept every text
        """Raise ConfigError if no batches can be made of a text; the error calls it the `name` text."""


@dataclass(frozen=True)
class MaskedPairCollator(Collator):
    """Sequences of two segments, in which some pieces are masked."""

    count_key: ClassVar[str] = "n_masked"

    config: MaskedConfig
    masking: Masking
    pairing: Pairing
    begins_word: WordStarts  # `masking` may treat every piece as a word

    @classmethod
    def from_config(cls, config: MaskedConfig, pairing: Pairing, begins_word: WordStarts) -> "MaskedPairCollator":
        """Return the collator of a configuration. As in the original code, unknown pieces are masked too."""
        masking = Masking(
            begins_word if config.whole_words else begins_word.at_every_piece(),
            MASK,
            (PAD, CLS, SEP, MASK),
            config.masked_share,
            config.max_ngram,
            max(config.masked_share, config.masked_share_end or 0.0),
            config.mask_token_share,
            config.random_token_share,
        )
        return cls(config, masking, pairing, begins_word)

    def pack(self, text: Text, length: int) -> Packing:
        """Split a text into chunks of whole sentences."""
        return pack(text, length, self.begins_word)

    def batch(self, packing: Packing, indices: np.ndarray, step: int, rng: np.random.Generator) -> Batch:
        """Mask these examples with the configuration's settings for this step."""
        share, max_ngram = self.config.masking_at(step)
        return self._masked(replace(self.masking, masked_share=share, max_ngram=max_ngram))(packing, indices, rng)

    def measure_plans(self) -> list[MeasurePlan]:
        """Return the masking of training and three maskings at 15 %.

        Those at 15 % are the same for all runs with the same corpus, vocabulary and sentence loss. A tenth of their
        pieces is unchanged and a tenth is random, as in BERT's pretraining; the last one masks the same pieces as the
        one of single pieces, all with [MASK].
        """
        masking, count = self.masking, self.config.measured_sequences
        whole_words = Masking(self.begins_word, masking.mask_id, masking.special_ids, EVALUATION_SHARE, max_ngram=1)
        single_pieces = replace(whole_words, begins_word=self.begins_word.at_every_piece())
        all_masked = replace(single_pieces, mask_token_share=1.0, random_token_share=0.0)
        return [
            MeasurePlan("training", self.config.heldout_sequences, 0, self._masked(masking)),
            MeasurePlan("single pieces 15 %", count, 1, self._masked(single_pieces)),
            MeasurePlan("whole words 15 %", count, 2, self._masked(whole_words)),
            MeasurePlan("single pieces 15 %, all [MASK]", count, 1, self._masked(all_masked)),
        ]

    def check(self, name: str, text: Text) -> None:
        """Raise ConfigError if segments of other documents are needed and the text is one document."""
        if self.pairing is from_another_document and len(text.documents) - 1 == 1:
            raise ConfigError(
                f"Next-sentence prediction takes segments from other documents, and the {name} text is one document; "
                "put blank lines between documents, or choose --sentence-loss sop."
            )

    def _masked(self, masking: Masking) -> MakeBatch:
        return lambda packing, indices, rng: masking(*batch_of(packing, indices, rng, self.pairing), rng)


@dataclass(frozen=True)
class NextTokenCollator(Collator):
    """Sequences that begin with [CLS], with a prediction of the next token at every position.

    Where a document ends inside a sequence, [SEP] is its next token. The last label of a sequence is not in its input.
    """

    count_key: ClassVar[str] = "n_predicted"

    config: Config
    begins_word: WordStarts

    def pack(self, text: Text, length: int) -> Packing:
        """Split a text into windows that begin with a sentence."""
        return windows(text, length, self.begins_word)

    def batch(self, packing: Packing, indices: np.ndarray, step: int, rng: np.random.Generator) -> Batch:
        """Return the batch of these examples, the same at every step."""
        return self._shifted(packing, indices, rng)

    def measure_plans(self) -> list[MeasurePlan]:
        """Return the only way: predicting every next token."""
        return [MeasurePlan("next tokens", self.config.heldout_sequences, 0, self._shifted)]

    @staticmethod
    def _shifted(packing: Packing, indices: np.ndarray, rng: np.random.Generator) -> Batch:
        begin, end = packing.examples[np.asarray(indices)].T[..., None]  # (B, 1)
        positions = np.arange(packing.sequence_length)[None, :]
        is_used = positions <= end - begin
        next_tokens = packing.text.tokens[np.minimum(begin + positions, len(packing.text.tokens) - 1)]
        labels = np.where(positions < end - begin, next_tokens, SEP) * is_used
        ids = np.where(is_used, np.pad(labels, ((0, 0), (1, 0)), constant_values=CLS)[:, :-1], PAD)
        ids, labels, mask, zeros = (array.astype(np.int32) for array in (ids, labels, is_used, np.zeros_like(labels)))
        used_positions = (positions * is_used).astype(np.int32)
        return Batch(ids, zeros, mask, used_positions, labels, is_used.astype(np.float32), zeros[:, 0], zeros)


# === Held-out text ===


@dataclass(frozen=True)
class HeldoutBatches:
    """Held-out sequences of one length, measured in one way."""

    length: int
    masking: str  # name of the MeasurePlan: "training", "whole words 15 %", "next tokens", ...
    batches: list[Batch]

    @property
    def sequences(self) -> int:
        """Return the number of sequences."""
        return sum(len(batch.ids) for batch in self.batches)

    @property
    def predictions(self) -> int:
        """Return the number of pieces to predict."""
        return int(sum(batch.weights.sum() for batch in self.batches))


def heldout_batches(text: Text, config: Config, collator: Collator) -> Iterator[HeldoutBatches]:
    """Yield the batches of a text at each sequence length of a run, for each of the `measure_plans`.

    A sequence occurs once in each, always with the same masks. Longer sequences are fewer, so that every length has
    about the same number of tokens. A way without a batch is left out.
    """
    shortest = config.lengths[0]
    for length in config.lengths:
        packing = collator.pack(text, length)
        for plan in collator.measure_plans():
            rng = np.random.default_rng([HELDOUT_SEED, length, plan.seed])
            if batches := _each_once(packing, plan, plan.sequences * shortest // length, rng):
                yield HeldoutBatches(length, plan.name, batches)


def _each_once(packing: Packing, plan: MeasurePlan, sequences: int, rng: np.random.Generator) -> list[Batch]:
    """Return up to `sequences` different examples, drawn and masked by `rng`, in equal batches, or in one."""
    count = min(sequences, len(packing.examples))
    size = max(1, min(MEASURED_BATCH_SIZE, count))
    batches_of_indices = rng.permutation(len(packing.examples))[: count // size * size].reshape(-1, size)
    return [plan.make(packing, indices, rng) for indices in batches_of_indices]
