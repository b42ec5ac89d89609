"""Training examples out of token ids: consecutive sentences of one document as two segments, and the order of the data.

As in ALBERT (and Section 2 of the paper): an example is [CLS] A [SEP] B [SEP], A and B consecutive in a document; for
sentence-order prediction they change places half of the time. Where A ends and whether they are swapped is drawn anew
each time an example is seen.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pretrain.corpus import Text
from pretrain.tokenizer import CLS, PAD, SEP

SPECIAL = 3  # [CLS], [SEP], [SEP]
SNAP = 0.9  # an example ends with a sentence where one ends in the last tenth of the space
MIN_TOKENS = 8  # shorter documents, or rests of documents, make no example
LOOK_BACK = 16  # tokens searched for the start of a word


@dataclass(frozen=True, eq=False)
class Packing:
    """Examples of one sequence length over one text."""

    text: Text
    sequence_length: int
    examples: np.ndarray  # int64 [N, 2], first token and the token after the last
    word_start: np.ndarray  # bool [V]

    @property
    def fill(self) -> float:
        """Mean share of the sequence that is not padding."""
        return float((np.diff(self.examples).mean() + SPECIAL) / self.sequence_length) if len(self.examples) else 0.0


def pack(text: Text, sequence_length: int, word_start: np.ndarray) -> Packing:
    """Cut every document into examples of at most sequence_length - 3 tokens; `word_start` [V] is is_word_start.

    Examples follow each other. One ends with a sentence where a sentence ends in its last tenth, else before a word.
    What is left at the end of a document longer than an example becomes a full example that begins earlier if it is
    half of one or more, else it is left out; a shorter document is one example, padded.
    """
    space = sequence_length - SPECIAL
    bounds = text.sentences[text.documents]
    at, stop = bounds[:-1].copy(), bounds[1:]
    begin = at.copy()
    found = []
    alive = np.flatnonzero(stop - at >= MIN_TOKENS)
    while len(alive):
        start, end = at[alive], stop[alive]
        rest = end - start
        tail = rest <= space
        whole = tail & (start == begin[alive])
        pulled = tail & ~whole & (rest >= space // 2)
        cut = np.where(tail, end, _cut(text, word_start, start, np.minimum(start + space, end), space))
        earlier = _next_word(text, word_start, np.maximum(end - space, begin[alive]))
        first = np.where(pulled, earlier, start)
        keep = ~tail | whole | pulled
        found.append(np.stack([first[keep], cut[keep]], axis=1))
        at[alive] = cut
        alive = alive[~tail]
    examples = np.concatenate(found) if found else np.empty((0, 2), np.int64)
    return Packing(text, sequence_length, examples[np.argsort(examples[:, 0], kind="stable")], word_start)


def _cut(text: Text, word_start: np.ndarray, start: np.ndarray, limit: np.ndarray, space: int) -> np.ndarray:
    """Where examples from `start` that may reach `limit` end: with a sentence if one ends near, else with a word."""
    sentence = text.sentences[np.searchsorted(text.sentences, limit, side="right") - 1]
    return np.where(sentence - start >= SNAP * space, sentence, _word_at_or_before(text, word_start, limit, start))


def _word_at_or_before(text: Text, word_start: np.ndarray, limit: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The nearest first token of a word at or before `limit`; `limit` itself where a longer word leaves no choice."""
    candidates = limit[:, None] - np.arange(LOOK_BACK)
    near = np.clip(candidates, 0, len(text.tokens) - 1)
    good = (word_start[text.tokens[near]]) & (candidates > start[:, None])
    return np.where(good.any(axis=1), limit - good.argmax(axis=1), limit)


def _next_word(text: Text, word_start: np.ndarray, position: np.ndarray) -> np.ndarray:
    """The nearest first token of a word at or after each position; the position itself where a longer word holds it."""
    candidates = np.clip(position[:, None] + np.arange(LOOK_BACK), 0, len(text.tokens) - 1)
    good = word_start[text.tokens[candidates]]
    return np.where(good.any(axis=1), position + good.argmax(axis=1), position)


def batch_of(
    packing: Packing, indices: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Examples as model input: ids, token_type_ids, attention_mask (int32 [B, L]) and swapped (int32 [B], 1 = B first).

    A ends at a sentence's end, any of those inside the example with the same chance; not so near the rim that a segment
    would be under an eighth of the example. An example without such an end is cut at the word nearest its middle.
    """
    begin, end = packing.examples[np.asarray(indices)].T
    boundary = _boundaries(packing, begin, end, rng.random(len(begin)))
    swapped = rng.random(len(begin)) < 0.5
    a_start, a_length = np.where(swapped, boundary, begin), np.where(swapped, end - boundary, boundary - begin)
    b_start, b_length = np.where(swapped, begin, boundary), np.where(swapped, boundary - begin, end - boundary)
    at = np.arange(packing.sequence_length)[None, :]
    middle, last = (a_length + 1)[:, None], (a_length + b_length + 2)[:, None]  # places of the two [SEP]
    source = np.where(at < middle, a_start[:, None] + at - 1, b_start[:, None] + at - middle - 1)
    ids = packing.text.tokens[np.clip(source, 0, len(packing.text.tokens) - 1)].astype(np.int32)
    ids[(at == middle) | (at == last)] = SEP
    ids[:, 0] = CLS
    attention_mask = at <= last
    ids[~attention_mask] = PAD
    token_type_ids = (at > middle) & attention_mask
    return ids, token_type_ids.astype(np.int32), attention_mask.astype(np.int32), swapped.astype(np.int32)


def _boundaries(packing: Packing, begin: np.ndarray, end: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """First token of the second segment of each example, chosen by `chance` in [0, 1)."""
    sentences = packing.text.sentences
    margin = np.maximum(1, (end - begin) // 8)
    low = np.searchsorted(sentences, begin + margin, side="left")
    high = np.searchsorted(sentences, end - margin, side="right")
    chosen = sentences[np.minimum(low + (chance * (high - low)).astype(np.int64), len(sentences) - 1)]
    middle = _word_at_or_before(packing.text, packing.word_start, (begin + end) // 2, begin)
    return np.where(high > low, chosen, middle)


# === Order ===


def order(n_examples: int, seed: int, step: int, batch_size: int) -> np.ndarray:
    """Indices [B] of the examples of this step (from 0): slice after slice of a new permutation each epoch.

    A function of its arguments alone, so that a resumed run sees the data that an uninterrupted one would have seen.
    """
    position = step * batch_size + np.arange(batch_size)
    epoch, place = np.divmod(position, n_examples)
    indices = np.empty(batch_size, np.int64)
    for number in np.unique(epoch):
        chosen = epoch == number
        indices[chosen] = _permutation(n_examples, seed, int(number))[place[chosen]]
    return indices


@lru_cache(maxsize=4)
def _permutation(n_examples: int, seed: int, epoch: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(n_examples)
