"""Replaced-token accuracy: does an ELECTRA's discriminator distinguish a word from the generator's sample for it?

This is the discriminator's training task (Clark et al., 2020, ELECTRA, Section 2), one word at a time and by part of
speech. Token reconstruction does not apply, because a discriminator predicts no words.
"""

from typing import TYPE_CHECKING

import numpy as np

from embryo_core.metrics import batches
from embryo_core.metrics.treebank_words import TreebankWords, WordMetric

if TYPE_CHECKING:
    from embryo_core.engine.model import Model

SEED = 0  # seed of the samples at every step: the samples of two checkpoints differ only by their generators


class ReplacedTokenAccuracy(WordMetric):
    """Accuracy by part of speech: a word is right if it is classified as original and its sample as replaced.

    For the sample, the pieces of the word are masked, and a different piece is drawn from the generator for each. Both
    conditions must hold at all pieces, so a discriminator with a constant answer has no word right.
    """

    name = "replaced_token_accuracy"
    needs = frozenset({"masked_words", "replaced_tokens"})

    def judge(self, model: "Model", data: TreebankWords) -> np.ndarray:
        # for each original sentence, whether each piece is classified as replaced
        verdicts = [np.empty(0, bool)] * len(data.sentences)

        def read_batch(batch: np.ndarray, ids: np.ndarray) -> None:
            for i, row in zip(batch, model.replaced_logits(ids) > 0, strict=True):
                verdicts[i] = row

        batches.map_batches(model, data.sentences, read_batch)
        spans = list(zip(data.sentence, data.start, data.end, strict=True))
        original = np.array([not verdicts[sentence][start:end].any() for sentence, start, end in spans])
        return original & self._judge_samples(model, data)

    @staticmethod
    def _judge_samples(model: "Model", data: TreebankWords) -> np.ndarray:
        """Return whether the sample for each word is classified as replaced at all of its pieces: bool [n]."""
        pieces = data.end - data.start
        offsets = np.cumsum([0, *pieces])
        chances = np.random.default_rng(SEED).random(offsets[-1])  # a random number for each piece of each word
        are_replaced = np.zeros(len(pieces), bool)

        def judge_batch(batch: np.ndarray, ids: np.ndarray) -> None:
            rows = np.repeat(np.arange(len(batch)), pieces[batch])
            columns = np.concatenate([np.arange(data.start[i], data.end[i]) for i in batch])
            batch_chances = np.concatenate([chances[offsets[i] : offsets[i + 1]] for i in batch])
            originals = ids[rows, columns]
            ids[rows, columns] = model.tokenizer.mask_id
            logits = model.mlm_logits(ids, rows, columns)
            ids[rows, columns] = sample_others(logits, originals, batch_chances)
            is_original = model.replaced_logits(ids)[rows, columns] <= 0
            are_replaced[batch] = np.bincount(rows[is_original], minlength=len(batch)) == 0

        batches.map_batches(model, data.sentences, judge_batch, data.sentence)
        return are_replaced


def sample_others(logits: np.ndarray, originals: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """Sample pieces [n] from the softmax of logits [n, V], never the `originals` [n].

    The sample is the piece at which the cumulative probability exceeds `chances` [n], uniform in [0, 1).
    """
    weights = np.exp(logits.astype(float) - logits.max(axis=1, keepdims=True))
    weights[np.arange(len(originals)), originals] = 0.0
    cumulative = weights.cumsum(axis=1)
    return (cumulative <= (chances * cumulative[:, -1])[:, None]).sum(axis=1)
