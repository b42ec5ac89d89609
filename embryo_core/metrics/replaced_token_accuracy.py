"""Replaced-token accuracy: does an ELECTRA's discriminator tell a word from the generator's sample for it?

What the discriminator is trained on (Clark et al., 2020, ELECTRA, Section 2), one word at a time and by part of speech:
it predicts no words, so that token reconstruction does not apply to it.
"""

from typing import TYPE_CHECKING

import numpy as np

from embryo_core.metrics import batches
from embryo_core.metrics.part_of_speech import Treebank, WordMetric

if TYPE_CHECKING:
    from embryo_core.engine.model import Model

SEED = 0  # of the samples, so that those of two checkpoints differ by their generators alone


class ReplacedTokenAccuracy(WordMetric):
    """Accuracy by part of speech: a word is right if it is called original where it stands, and replaced once it is.

    For the second, its pieces are masked and each is sampled by the generator's probabilities of all other pieces. Both
    hold at every piece of the word, so that a discriminator which always gives one answer has none right.
    """

    name = "replaced_token_accuracy"
    needs = frozenset({"masked_words", "replaced_tokens"})

    def judge(self, model: "Model", data: Treebank) -> np.ndarray:
        lengths = np.array([len(ids) for ids in data.sentences])
        called = [np.empty(0, bool)] * len(lengths)  # replaced, at each piece of each sentence as it is

        def read_batch(batch: np.ndarray) -> None:
            ids = np.stack([data.sentences[i] for i in batch])  # [b, L]
            for i, row in zip(batch, model.replaced_logits(ids, np.ones_like(ids)) > 0, strict=True):
                called[i] = row

        batches.compute(lengths, model.passes_at_once, read_batch, model.tokens_at_once)
        spans = list(zip(data.sentence, data.start, data.end, strict=True))
        original = np.array([not called[sentence][start:end].any() for sentence, start, end in spans])
        return original & self._replaced(model, data, lengths[data.sentence])

    @staticmethod
    def _replaced(model: "Model", data: Treebank, lengths: np.ndarray) -> np.ndarray:
        """Whether each word is called replaced at all its pieces where a sample stands for it: bool [n]."""
        pieces = data.end - data.start
        offsets = np.cumsum([0, *pieces])
        chances = np.random.default_rng(SEED).random(offsets[-1])  # one for each piece of each word
        found = np.zeros(len(pieces), bool)

        def judge_batch(batch: np.ndarray) -> None:
            ids = np.stack([data.sentences[data.sentence[i]] for i in batch])  # [b, L]
            rows = np.repeat(np.arange(len(batch)), pieces[batch])
            columns = np.concatenate([np.arange(data.start[i], data.end[i]) for i in batch])
            drawn = np.concatenate([chances[offsets[i] : offsets[i + 1]] for i in batch])
            own = ids[rows, columns]
            ids[rows, columns] = model.tokenizer.mask_id
            attention_mask = np.ones_like(ids)
            ids[rows, columns] = sample_others(model.mlm_logits(ids, attention_mask, rows, columns), own, drawn)
            original = model.replaced_logits(ids, attention_mask)[rows, columns] <= 0
            found[batch] = np.bincount(rows[original], minlength=len(batch)) == 0

        batches.compute(lengths, model.passes_at_once, judge_batch, model.tokens_at_once)
        return found


def sample_others(logits: np.ndarray, own: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """A piece [n] by the softmax of logits [n, V] without the `own` pieces [n]; `chances` [n] are uniform in [0, 1).

    The piece at which the cumulative probability passes the chance.
    """
    weights = np.exp(logits.astype(float) - logits.max(axis=1, keepdims=True))
    weights[np.arange(len(own)), own] = 0.0
    cumulative = weights.cumsum(axis=1)
    return (cumulative <= (chances * cumulative[:, -1])[:, None]).sum(axis=1)
