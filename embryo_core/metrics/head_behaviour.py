"""Head behaviour: where each head attends, how sharply, and whether it finds syntactic heads (Section 4).

Weights and entropy are means over all pieces of all sentences as origins, without [CLS] and [SEP]. A tokenizer's other
tokens around a text count as [CLS] and [SEP]; without such a token, `cls` or `sep` is not measured:

    same, previous, next   weight on the piece itself, its predecessor and its successor ([CLS] and [SEP] count as the
                           neighbours of the first and last piece; a piece without such a neighbour is not counted)
    cls, sep               weight on [CLS], on [SEP]
    punctuation            weight on all pieces of words that consist of punctuation (Unicode category P)
    entropy                of the weights over all positions, in nats
    distance               mean |i - j| over pairs of pieces in a sentence, weighted by the attention from i to j
                           (Vig and Belinkov, 2019, https://arxiv.org/abs/1906.04284)

Syntax follows Clark et al. (2019, https://arxiv.org/abs/1906.04341): attention between words is the sum over the pieces
attended to and the mean over the pieces attending. The strongest link of a word excludes the word itself and special
tokens; a word without any attention has no link, such as the first word of a decoder, which attends only to itself.
Scores are shares of words whose strongest link is with their syntactic head (unlabelled attachment):

    dependent_to_head      the word to which the dependent attends most
    head_to_dependent      the word that attends most to the dependent
    fixed_offset           the baseline on the same words: the head is always at the most frequent offset

Each score is named head_behaviour_<quantity>; its layer and its group, the head, count from 1. The group of the
baseline is its offset (+1: the next word). Roots have no head and are left out.
"""

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embryo_core.measurements import Findings, Score
from embryo_core.metric import Limits, Source
from embryo_core.metrics import treebank_words
from embryo_core.metrics.attention import AttentionMetric
from embryo_core.words import quantity

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.tokenizer import Tokenizer

MEAN_NAMES = ("same", "previous", "next", "cls", "sep", "punctuation", "entropy", "distance")
LINK_NAMES = ("dependent_to_head", "head_to_dependent")
# between: weight on all pieces of the sentence, the divisor of distance
SUM_NAMES = (*MEAN_NAMES, "between", *LINK_NAMES)


@dataclass(frozen=True, eq=False)
class ParsedSentence:
    """One encoded sentence of P pieces and W words that have pieces."""

    ids: np.ndarray  # pieces with the special tokens around them
    first: int  # position of the first piece
    word: np.ndarray  # [P] the word of each piece, from 0 to W - 1
    punctuation: np.ndarray  # bool [P]
    head: np.ndarray  # [P] the syntactic head of each of the W words; -1 for no head, and as padding from W on


class HeadSums:
    """Sums of each quantity over each sentence, for one checkpoint."""

    def __init__(self, model: "Model", data: treebank_words.EncodedSentences):
        self._data = data
        special_tokens = {"cls": len(model.tokenizer.begin), "sep": len(model.tokenizer.end)}
        self._measured = [name for name in MEAN_NAMES if special_tokens.get(name, 1)]
        pieces, sentences = data.summary["pieces"], len(data.sentences)
        self._neighbours = {  # number of pieces with this neighbour: not the first or last one without a special token
            name: pieces - (0 if special_tokens[token] else sentences)
            for name, token in (("previous", "cls"), ("next", "sep"))
        }
        self._found = np.zeros((len(data.sentences), len(SUM_NAMES), model.num_layers, model.num_heads))

    def sum_batch(self, batch: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return np.moveaxis(_sums(weights, [self._data.sentences[i] for i in batch]), 2, 0)

    def add(self, batch: np.ndarray, sums: np.ndarray) -> None:
        self._found[batch] = sums

    def findings(self) -> Findings:
        sums = dict(zip(SUM_NAMES, self._found.sum(axis=0), strict=True))  # each [layers, heads]
        pieces, headed_words = self._data.summary["pieces"], self._data.summary["words"]
        counts = dict.fromkeys(self._measured, pieces) | self._neighbours
        values = {name: (sums[name] / n, n) for name, n in counts.items() if n}
        values["distance"] = sums["distance"] / sums["between"], pieces
        if headed_words:
            values |= {name: (sums[name] / headed_words, headed_words) for name in LINK_NAMES}
        scores = [
            Score(f"head_behaviour_{name}", float(value), n, str(head + 1), layer + 1)
            for name, (values_of_heads, n) in values.items()
            for (layer, head), value in np.ndenumerate(values_of_heads)
        ]
        return Findings(scores=scores + (_baseline(self._data) if headed_words else []))


class HeadBehaviour(AttentionMetric):
    """Scores of each layer and head, from the sentences that fit the model's positions, and one baseline."""

    name = "head_behaviour"
    observer = HeadSums

    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> treebank_words.EncodedSentences:
        treebank = treebank_words.encode(tokenizer, limits, source)
        sentences = tuple(map(_parse, treebank.sentences))
        pieces = sum(len(sentence.word) for sentence in sentences)
        headed_words = sum(int((sentence.head >= 0).sum()) for sentence in sentences)
        note = f"{quantity(pieces, 'piece')} in {quantity(len(sentences), 'sentence')} of {source.path.name}"
        note += treebank.reading
        syntax = f"syntax over {quantity(headed_words, 'word')} with a head"
        note += f"; {syntax if headed_words else 'it has no syntactic heads'}"
        summary = {"sentences": len(sentences), "pieces": pieces, "words": headed_words, "note": note}
        return treebank_words.EncodedSentences(sentences, summary)


def _baseline(data: treebank_words.EncodedSentences) -> list[Score]:
    """Return the score `fixed_offset`: the share of words with the most frequent offset; ties go to the nearest."""
    offsets = np.concatenate([s.head[s.head >= 0] - np.flatnonzero(s.head >= 0) for s in data.sentences])
    distinct, frequencies = np.unique(offsets, return_counts=True)
    best = min(range(len(distinct)), key=lambda i: (-frequencies[i], abs(distinct[i]), distinct[i]))
    n = len(offsets)
    return [Score("head_behaviour_fixed_offset", frequencies[best] / n, n, f"{distinct[best]:+d}")]


def _parse(sentence: treebank_words.Sentence) -> ParsedSentence:
    """Return a sentence with its punctuation and syntactic heads."""
    words, word = np.unique(sentence.word_of_piece, return_inverse=True)  # a word may have no pieces
    number = {int(word_index): i for i, word_index in enumerate(words)}
    head = np.full(len(word), -1)
    for i, word_index in enumerate(words if sentence.example.heads else ()):
        head[i] = number.get(sentence.example.heads[word_index], -1)
    categories = [
        {unicodedata.category(character)[0] for character in sentence.example.words[word_index]} for word_index in words
    ]
    punctuation = np.array([word_categories <= {"P"} for word_categories in categories], bool)[word]
    return ParsedSentence(sentence.ids, sentence.first, word, punctuation, head)


def _sums(weights: np.ndarray, sentences: list[ParsedSentence]) -> np.ndarray:
    """Return the sum of each quantity in SUM_NAMES over each sentence: [quantities, layers, b, heads].

    `weights` [layers, b, heads, L, L] are of b sentences of L tokens, including P pieces.
    """
    first, pieces = sentences[0].first, len(sentences[0].word)
    rows = weights[..., first : first + pieces, :]  # from each piece
    inner = rows[..., first : first + pieces]
    distances = np.abs(np.subtract.outer(np.arange(pieces), np.arange(pieces))).astype(np.float32)
    is_punctuation = np.stack([sentence.punctuation for sentence in sentences])[None, :, None, :]  # [1, b, 1, P]
    weights_received = inner.sum(axis=-2)  # [layers, b, heads, P]
    neighbours = [np.trace(rows, first + offset, -2, -1) for offset in (0, -1, 1)]  # columns include [CLS], rows do not
    entropy = -(rows * np.log(np.maximum(rows, np.finfo(np.float32).tiny))).sum(axis=(-2, -1))
    return np.stack(
        [
            *neighbours,
            rows[..., 0].sum(axis=-1),
            rows[..., -1].sum(axis=-1),
            (weights_received * is_punctuation).sum(axis=-1),
            entropy,
            (inner * distances).sum(axis=(-2, -1)),
            weights_received.sum(axis=-1),
            *_links(inner, sentences),
        ]
    )


def _links(inner: np.ndarray, sentences: list[ParsedSentence]) -> tuple[np.ndarray, np.ndarray]:
    """Return the counts of both LINK_NAMES in each sentence, [layers, b, heads] each.

    `inner`, the attention between pieces [layers, b, heads, P, P], is reduced to attention between words. A sentence
    with fewer words than pieces has spare rows and columns, which no link may choose.
    """
    pieces = inner.shape[-1]
    is_of_word = np.stack([sentence.word for sentence in sentences])[:, None, :] == np.arange(pieces)[:, None]
    to_words = is_of_word.astype(np.float32)[:, None]  # [b, 1, words, P]
    from_words = to_words / np.maximum(to_words.sum(axis=-1, keepdims=True), 1)
    words = from_words @ inner @ to_words.swapaxes(-1, -2)
    is_spare = ~is_of_word.any(axis=-1)  # [b, words]
    is_excluded = is_spare[:, None, :] | is_spare[:, :, None] | np.eye(pieces, dtype=bool)
    words = np.where(is_excluded[:, None], -1, words)
    head = np.stack([sentence.head for sentence in sentences])[None, :, None, :]  # [1, b, 1, words]
    return tuple(
        ((words.argmax(axis=direction) == head) & (head >= 0) & (words.max(axis=direction) > 0)).sum(axis=-1)
        for direction in (-1, -2)
    )
