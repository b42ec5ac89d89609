"""The data of the sentence losses: how the two segments of an example are paired, and the label that says how.

A pairing is given the bounds of segments A and B of each example and may change them, by `rng` alone.
"""

from typing import NamedTuple

import numpy as np

from pretrain.examples import Packing, Paired, Pairing


def in_order(packing: Packing, starts: np.ndarray, stops: np.ndarray, rng: np.random.Generator) -> Paired:
    """A and B as they follow each other in the text."""
    return starts, stops, np.zeros(len(starts), bool)


def swapped(packing: Packing, starts: np.ndarray, stops: np.ndarray, rng: np.random.Generator) -> Paired:
    """A and B in the other order half of the time (ALBERT's sentence-order prediction)."""
    other = rng.random(len(starts)) < 0.5
    starts[other], stops[other] = starts[other, ::-1], stops[other, ::-1]
    return starts, stops, other


def from_another_document(packing: Packing, starts: np.ndarray, stops: np.ndarray, rng: np.random.Generator) -> Paired:
    """B out of another document half of the time (BERT's next-sentence prediction).

    It begins with a sentence, each of those outside A's document with the same chance, or with an earlier one where its
    document would end too soon. It has as few whole sentences as fill the space that A leaves, or as reach the length
    of the text's own B where that is shorter: by length the two can hardly be told apart.
    """
    text = packing.text
    other = rng.random(len(starts)) < 0.5
    own = np.searchsorted(text.sentences[text.documents], starts[:, 0], side="right") - 1
    low, high = text.documents[own], text.documents[own + 1]  # sentences of A's document
    elsewhere = len(text.sentences) - 1 - (high - low)
    chosen = (rng.random(len(starts)) * elsewhere).astype(np.int64)
    chosen += np.where(chosen < low, 0, high - low)
    document = np.searchsorted(text.documents, chosen, side="right") - 1
    first, last = text.documents[document], text.documents[document + 1]
    length_a, length_b = (stops - starts).T
    length = np.clip(packing.space - length_a, 1, length_b)
    latest = np.searchsorted(text.sentences, text.sentences[last] - length, side="right") - 1
    begin = np.maximum(np.minimum(chosen, latest), first)
    end = np.minimum(np.searchsorted(text.sentences, text.sentences[begin] + length, side="left"), last)
    starts[other, 1], stops[other, 1] = text.sentences[begin[other]], text.sentences[end[other]]
    return starts, stops, other


class SentenceLoss(NamedTuple):
    """A loss on the relation of two segments."""

    objective: str  # its name in log and model
    title: str  # in run.json
    pairing: Pairing


SENTENCE_LOSSES = {  # the setting `sentence_loss`; "none" has no objective
    "sop": SentenceLoss("sentence_order", "sentence order", swapped),
    "nsp": SentenceLoss("next_sentence", "next sentence", from_another_document),
    "none": None,
}
