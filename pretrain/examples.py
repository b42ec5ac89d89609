"""Training examples from token ids: whole sentences of a document as two segments, and the order of the examples.

As in the data creation of BERT and ALBERT, an example is [CLS] A [SEP] B [SEP], where A is the first few sentences
of a chunk and B the rest. A pairing may swap or replace them; then the longer one is cut at either end until both fit.
The boundary, the pairing and the cuts are drawn again each time an example is used.

The lengths of the segments must not reveal their order. A chunk grows until it is long enough, so its last sentence
tends to be a long one: B would be longer than A, and cut more often. Therefore half of the chunks grow towards the
front.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pretrain.corpus import Text
from pretrain.tokenizer import WordStarts
from pretrain.vocabularies import CLS, PAD, SEP

SPECIAL_TOKENS = 3  # special tokens of a sequence: [CLS] and two [SEP]
MIN_TOKENS = 8  # tokens of a document; shorter ones give no example
MIN_SENTENCES = 2  # sentences of a chunk, if its document has two: a cut inside a sentence would reveal the order
MIN_REST = 0.75  # the rest of a document becomes a padded example if it fills this share of the space
LOOK_BACK = 16  # tokens searched backwards for the start of a word


@dataclass(frozen=True, eq=False)
class Packing:
    """The examples of one sequence length that a text is divided into."""

    text: Text
    sequence_length: int
    examples: np.ndarray  # int64 [N, 2], first token and the token after the last; batch_of cuts examples to the space
    begins_word: WordStarts
    special: int = SPECIAL_TOKENS  # special tokens of a sequence

    @property
    def space(self) -> int:
        """Return the number of text tokens that fit into a sequence."""
        return self.sequence_length - self.special

    @property
    def fill(self) -> float:
        """Return the mean share of a sequence that is not padding."""
        lengths = np.minimum(np.diff(self.examples), self.space) + self.special
        return float(lengths.mean() / self.sequence_length) if len(lengths) else 0.0


Paired = tuple[np.ndarray, np.ndarray, np.ndarray]  # starts, stops (int64 [B, 2]: of A, of B), label (bool [B])
Pairing = Callable[[Packing, np.ndarray, np.ndarray, np.random.Generator], Paired]


def pack(text: Text, sequence_length: int, begins_word: WordStarts) -> Packing:
    """Divide every document into chunks of whole sentences.

    A chunk has the fewest sentences that reach sequence_length - 3 tokens, but at least two. Chunks are taken from the
    front and the back of a document in turn until they meet; every other document begins at the back. The rest between
    them becomes an example if it is long enough; otherwise it is extended into its neighbour, whose sentences are then
    in two examples. A document shorter than the space is one padded example.
    """
    space, sentences = sequence_length - SPECIAL_TOKENS, text.sentences
    low, high = text.documents[:-1], text.documents[1:]  # first sentence of a document, and the one after its last
    from_front = np.arange(len(low)) % 2 == 0
    is_long = sentences[high] - sentences[low] >= MIN_TOKENS
    low, high, from_front = low[is_long], high[is_long], from_front[is_long]
    front, back = low, high  # sentences not yet in a chunk
    spans = [np.empty((0, 2), np.int64)]
    while len(front):
        boundary = np.searchsorted(sentences, sentences[front] + space, side="left")
        stop = np.where(from_front, np.minimum(np.maximum(boundary, front + MIN_SENTENCES), high), back)
        boundary = np.searchsorted(sentences, sentences[back] - space, side="right") - 1
        start = np.where(from_front, front, np.maximum(np.minimum(boundary, back - MIN_SENTENCES), low))
        is_enough = (sentences[back] - sentences[front] >= MIN_REST * space) & (back - front >= MIN_SENTENCES)
        is_rest = ((start < front) | (stop > back)) & is_enough
        start, stop = np.where(is_rest, front, start), np.where(is_rest, back, stop)
        spans.append(sentences[np.stack([start, stop], axis=1)])
        front, back = np.where(from_front, stop, front), np.where(from_front, back, start)
        is_open = front < back
        low, high, front, back, from_front = (
            low[is_open],
            high[is_open],
            front[is_open],
            back[is_open],
            ~from_front[is_open],
        )
    examples = np.concatenate(spans)
    return Packing(text, sequence_length, examples[np.argsort(examples[:, 0], kind="stable")], begins_word)


def windows(text: Text, length: int, begins_word: WordStarts) -> Packing:
    """Divide every document into windows of `length` tokens, each beginning with a sentence.

    A sentence that is cut by the end of a window begins the next window, so that it is also read whole. If less than
    three quarters of a window remain at the end of a document, the last window begins earlier. A sentence longer than a
    window continues in the next one at the start of a word.
    """
    sentences = text.sentences
    bounds = sentences[text.documents]
    is_long = np.diff(bounds) >= MIN_TOKENS
    begin, end = bounds[:-1][is_long], bounds[1:][is_long]
    packing = Packing(text, length, np.empty((0, 2), np.int64), begins_word, special=0)
    spans = [packing.examples]
    while len(begin):
        stop = np.minimum(begin + length, end)
        spans.append(np.stack([begin, stop], axis=1))
        begin, stop, end = (bound[stop < end] for bound in (begin, stop, end))
        cut_sentence = sentences[np.searchsorted(sentences, stop, side="right") - 1]
        next_begin = np.where(cut_sentence > begin, cut_sentence, _word_at_or_before(packing, stop, begin + 1))
        earliest = sentences[np.searchsorted(sentences, end - length, side="left")]
        is_short = end - next_begin < MIN_REST * length
        begin = np.where(is_short, np.minimum(earliest, next_begin), next_begin)
    examples = np.concatenate(spans)
    return replace(packing, examples=examples[np.argsort(examples[:, 0], kind="stable")])


def batch_of(
    packing: Packing, indices: np.ndarray, rng: np.random.Generator, pairing: Pairing
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return examples as ids, token_type_ids, attention_mask (int32 [B, L]) and pair (int32 [B], the label).

    A ends with a sentence, drawn uniformly from those that end inside the example. A segment that was cut begins with
    a whole word and may end inside one.
    """
    begin, end = packing.examples[np.asarray(indices)].T
    boundary = _boundaries(packing, begin, end, rng.random(len(begin)))
    begins, ends = np.stack([begin, boundary], axis=1), np.stack([boundary, end], axis=1)  # [B, 2]: A, B
    begins, ends, pair = pairing(packing, begins, ends, rng)
    begins, lengths = _truncate(packing, begins, ends - begins, rng)
    positions = np.arange(packing.sequence_length)[None, :]
    middle = lengths[:, :1] + 1  # positions of the two [SEP]
    last_position = middle + lengths[:, 1:] + 1
    source = np.where(positions < middle, begins[:, :1] + positions - 1, begins[:, 1:] + positions - middle - 1)
    ids = packing.text.tokens[np.clip(source, 0, len(packing.text.tokens) - 1)].astype(np.int32)
    ids[(positions == middle) | (positions == last_position)] = SEP
    ids[:, 0] = CLS
    attention_mask = positions <= last_position
    ids[~attention_mask] = PAD
    token_type_ids = (positions > middle) & attention_mask
    return ids, token_type_ids.astype(np.int32), attention_mask.astype(np.int32), pair.astype(np.int32)


def _boundaries(packing: Packing, begin: np.ndarray, end: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Return the first token of segment B of each example, chosen by `chance` in [0, 1).

    B begins with a sentence. An example of one sentence is cut at the word around a random point of its middle half, or
    at that point if no word starts near it; its full stop then reveals the order of the segments.
    """
    sentences = packing.text.sentences
    low = np.searchsorted(sentences, begin, side="right")
    high = np.searchsorted(sentences, end, side="left")
    drawn_sentence = sentences[low + (chance * (high - low)).astype(np.int64)]
    cut_point = begin + ((0.25 + 0.5 * chance) * (end - begin)).astype(np.int64)
    return np.where(high > low, drawn_sentence, _word_at_or_before(packing, cut_point, begin + 1))


def _truncate(
    packing: Packing, starts: np.ndarray, lengths: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return starts and lengths [B, 2] of the two segments, cut so that they fit the space together.

    This is the closed form of ALBERT's loop: while both are too long together, the longer one (the second in a tie)
    loses its first or its last token, with equal probability. A start inside a word then moves back to the first token
    of the word.
    """
    space = packing.space
    halves = np.array([space - space // 2, space // 2])
    new_lengths = np.minimum(lengths, np.maximum(halves, space - lengths[:, ::-1]))
    from_front = rng.binomial(lengths - new_lengths, 0.5)
    return _word_at_or_before(packing, starts + from_front, starts), new_lengths


def _word_at_or_before(packing: Packing, position: np.ndarray, lowest: np.ndarray) -> np.ndarray:
    """Return the nearest word start from each position down to `lowest`, or the position itself if none is near."""
    candidates = position[..., None] - np.arange(LOOK_BACK)
    tokens, previous = (packing.text.tokens[np.maximum(places, 0)] for places in (candidates, candidates - 1))
    good = packing.begins_word(tokens, previous) & (candidates >= lowest[..., None])
    return np.where(good.any(axis=-1), position - good.argmax(axis=-1), position)


# === Pairs ===


def in_order(packing: Packing, starts: np.ndarray, stops: np.ndarray, rng: np.random.Generator) -> Paired:
    """Keep A and B in the order of the text."""
    return starts, stops, np.zeros(len(starts), bool)


def swapped(packing: Packing, starts: np.ndarray, stops: np.ndarray, rng: np.random.Generator) -> Paired:
    """Swap A and B with probability 1/2 (ALBERT's sentence-order prediction)."""
    is_swapped = rng.random(len(starts)) < 0.5
    starts[is_swapped], stops[is_swapped] = starts[is_swapped, ::-1], stops[is_swapped, ::-1]
    return starts, stops, is_swapped


def from_another_document(packing: Packing, starts: np.ndarray, stops: np.ndarray, rng: np.random.Generator) -> Paired:
    """Take B from another document with probability 1/2 (BERT's next-sentence prediction).

    The new B begins with a sentence drawn uniformly from the other documents, or with an earlier one if its document
    would end too soon. It has the fewest whole sentences that reach the length of the true B, or that fill the space
    left by A if this is shorter, so that lengths hardly reveal the label.
    """
    text = packing.text
    is_replaced = rng.random(len(starts)) < 0.5
    own_document = np.searchsorted(text.sentences[text.documents], starts[:, 0], side="right") - 1
    own_start, own_end = text.documents[own_document], text.documents[own_document + 1]  # sentences of A's document
    other_count = len(text.sentences) - 1 - (own_end - own_start)
    sentence = (rng.random(len(starts)) * other_count).astype(np.int64)
    sentence += np.where(sentence < own_start, 0, own_end - own_start)
    document = np.searchsorted(text.documents, sentence, side="right") - 1
    document_start, document_end = text.documents[document], text.documents[document + 1]
    length_a, length_b = (stops - starts).T
    length = np.clip(packing.space - length_a, 1, length_b)
    latest = np.searchsorted(text.sentences, text.sentences[document_end] - length, side="right") - 1
    begin = np.maximum(np.minimum(sentence, latest), document_start)
    end = np.minimum(np.searchsorted(text.sentences, text.sentences[begin] + length, side="left"), document_end)
    starts[is_replaced, 1], stops[is_replaced, 1] = text.sentences[begin[is_replaced]], text.sentences[end[is_replaced]]
    return starts, stops, is_replaced


class SentenceLoss(NamedTuple):
    """A loss on the relation of two segments."""

    objective: str  # name in log and model
    title: str  # title in run.json
    pairing: Pairing


SENTENCE_LOSSES = {  # the setting `sentence_loss`; "none" has no objective
    "sop": SentenceLoss("sentence_order", "sentence order", swapped),
    "nsp": SentenceLoss("next_sentence", "next sentence", from_another_document),
    "none": None,
}


# === Order ===


def example_order(n_examples: int, seed: int, step: int, batch_size: int) -> np.ndarray:
    """Return the indices [B] of the examples of a step (from 0), in an order that is a new permutation each epoch.

    They depend on the arguments only, so that a resumed run has the same data as an uninterrupted one.
    """
    position = step * batch_size + np.arange(batch_size)
    epoch, offset = np.divmod(position, n_examples)
    indices = np.empty(batch_size, np.int64)
    for number in np.unique(epoch):
        in_epoch = epoch == number
        indices[in_epoch] = _permutation(n_examples, seed, int(number))[offset[in_epoch]]
    return indices


@lru_cache(maxsize=4)
def _permutation(n_examples: int, seed: int, epoch: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(n_examples)
