"""Surprisal of the words of a list in a text, from which curves/ages.py estimates when a model acquires each word.

Chang and Bergen (2022), "Word Acquisition in Neural Language Models". A word's surprisal is minus log2 of the joint
probability of its pieces. An encoder predicts a piece from both sides, with the piece and the later pieces of its word
masked (word-l2r, see minimal_pairs.py; for a word of one piece this is their method). A decoder predicts it from the
left.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from embryo_core.corpora import word_list
from embryo_core.corpora.groups import ALL
from embryo_core.errors import CorpusError
from embryo_core.metric import Limits, Metric, Option, Source
from embryo_core.metrics import batches
from embryo_core.metrics.piece_scores import score_pieces
from embryo_core.types import Findings, ListedWord, Score, WordSurprise
from embryo_core.words import quantity

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.tokenizer import Pieces, Tokenizer

SEED = 0  # seed of the draw of occurrences, the same for all runs
START = ""  # in bigrams, what precedes the first word of a sentence
# Reasons why words or occurrences are left out.
ABSENT = "never in the text"
FIRST = "at the start of a text, where nothing predicts them"
UNWRITABLE = "with letters that the tokenizer cannot encode"
ACROSS = "with a piece that holds more than the word"


@dataclass(frozen=True, eq=False)
class EncodedWords:
    """The words that occur, and their n occurrences, grouped by word in the order of `words`."""

    words: list[ListedWord]
    counts: np.ndarray  # [words] number of occurrences of each word
    sentences: list[np.ndarray]  # ids with special tokens
    sentence: np.ndarray  # [n] index of each occurrence's sentence
    first: np.ndarray  # [n] index of its first piece, counted from 0 after the special tokens
    end: np.ndarray  # [n] index after its last piece
    summary: dict[str, Any]


class WordSurprisal(Metric):
    """Mean surprisal (bits) of each word of a list over its occurrences in a text; scores are means over words.

    If a word has more than `occurrences`, this many are drawn, in an order that is the same for all runs and steps. An
    occurrence is left out in a sentence longer than the model's positions, at the start of a text where nothing
    predicts it, in pieces that contain more than the word, and with letters that the tokenizer cannot encode. The
    summary has each word's surprisals by unigram and bigram counts of the text.
    """

    name = "word_surprisal"
    page = "words"
    source = "words"
    form = word_list.WORD_LIST
    second = "text"
    second_form = word_list.TEXT
    needs = frozenset({"words"})
    limited = False  # `occurrences` bounds the cost; a limit on sentences would lose words
    options = (Option("occurrences", 64, "of a word in the text, at most", identifies=True),)

    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> EncodedWords:
        assert source.second is not None
        words, text = word_list.read_word_list(source.path), source.second.path
        sentences = word_list.read_sentences(text)
        occurrences = word_list.find_occurrences(words, sentences)
        drawn = {word: _shuffled(word, places) for word, places in occurrences.items()}
        wanted = sorted({number for places in drawn.values() for number, *_ in places})
        pieces = batches.encode_texts(tokenizer, [sentences[number] for number in wanted])
        encoded = dict(zip(wanted, pieces, strict=True))
        kept: dict[str, list[tuple[int, ...]]] = {}  # sentence, first and end piece, first and end character
        skipped, reasons = Counter[str](), {}
        for word, places in drawn.items():
            kept[word], why = [], Counter[str]()
            for place in places:
                if len(kept[word]) == source.options["occurrences"]:
                    break
                located = _locate(sentences[place[0]], encoded[place[0]], place, tokenizer, limits)
                if isinstance(located, str):
                    why[located] += 1
                else:
                    kept[word].append((place[0], *located, *place[1:]))
            skipped += why
            if not kept[word]:
                reasons[word] = why.most_common(1)[0][0] if why else ABSENT
        if len(reasons) == len(words):
            raise CorpusError(
                f"No word of {source.path} can be measured in {text} "
                f"({_describe(Counter(reasons.values()))}); give another text."
            )
        summary = _summarize(words, kept, reasons, skipped, source, len(sentences))
        occurring = [word for word in words if kept[word.word]]
        counts = np.array([len(kept[word.word]) for word in occurring])
        rows = np.array([place for word in occurring for place in kept[word.word]])
        used, sentence = np.unique(rows[:, 0], return_inverse=True)
        ids = [tokenizer.surround(encoded[i].ids.astype(np.int64)) for i in used.tolist()]
        summary |= _ngrams(sentences, kept)
        return EncodedWords(occurring, counts, ids, sentence, rows[:, 1], rows[:, 2], summary)

    def compute(self, model: "Model", data: EncodedWords) -> Findings:
        lengths = data.end - data.first
        starts = np.cumsum(lengths) - lengths
        place = np.arange(lengths.sum()) - np.repeat(starts - data.first, lengths)
        order = np.argsort(np.repeat(data.sentence, lengths), kind="stable")
        sentence, end = (np.repeat(each, lengths)[order] for each in (data.sentence, data.end))
        scores = np.zeros(len(place))
        scores[order] = score_pieces(model, data.sentences, sentence, place[order], end)
        bits = -np.add.reduceat(scores, starts) / np.log(2)
        ends = np.cumsum(data.counts)
        chance = np.log2(model.vocabulary_size)
        measured = []
        for word, surprisals, pieces in zip(
            data.words, np.split(bits, ends[:-1]), np.split(lengths, ends[:-1]), strict=True
        ):
            n, mean, mean_pieces = len(surprisals), float(surprisals.mean()), float(pieces.mean())
            occurrences = surprisals.astype("<f2").tobytes()
            properties = (word.category, word.age, word.concreteness)
            measured.append(
                WordSurprise(word.word, n, mean, mean_pieces * chance, occurrences, mean_pieces, *properties)
            )
        return Findings(scores=list(_means(self.name, measured)), surprisals=measured)


def _shuffled(word: str, occurrences: Sequence[word_list.Occurrence]) -> list[word_list.Occurrence]:
    """Return the occurrences of a word in a random order that depends only on the word and their number."""
    rng = np.random.default_rng([SEED, crc32(word.encode())])
    return [occurrences[i] for i in rng.permutation(len(occurrences))]


def _locate(
    text: str, pieces: "Pieces", occurrence: word_list.Occurrence, tokenizer: "Tokenizer", limits: Limits
) -> tuple[int, int] | str:
    """Return the first piece of an occurrence and the piece after its last, or the reason why it is left out."""
    if len(tokenizer.surround(pieces.ids)) > limits.positions:
        return f"in a sentence longer than {limits.positions} pieces"
    _, start, end = occurrence
    starts, stops = pieces.characters.T
    blanks = np.array([len(text[one:]) - len(text[one:].lstrip()) for one in starts.tolist()], np.int64)
    starts = starts + blanks  # the space before a word belongs to its first piece, or is a separate piece
    inside = np.flatnonzero((starts < end) & (np.maximum(stops, starts + 1) > start))
    if not len(inside) or (pieces.ids[inside] == tokenizer.unk_id).any():
        return UNWRITABLE
    if starts[inside].min() < start or stops[inside].max() > end:
        return ACROSS
    if limits.decoder and not len(tokenizer.begin) and inside[0] == 0:
        return FIRST
    return int(inside[0]), int(inside[-1]) + 1


def _ngrams(sentences: Sequence[str], kept: Mapping[str, Sequence[tuple[int, ...]]]) -> dict[str, dict[str, float]]:
    """Return each word's surprisal (bits) by its frequency in the text, and the mean of its surprisals by bigrams."""
    counts = WordBigrams(sentences)
    bits = {word: [counts.bits(sentences[i], start, end) for i, *_, start, end in each] for word, each in kept.items()}
    return {
        "unigrams": {word: round(counts.single_bits(word), 3) for word, each in bits.items() if each},
        "bigrams": {word: round(float(np.mean(each)), 3) for word, each in bits.items() if each},
    }


def _summarize(
    words: Sequence[ListedWord],
    kept: Mapping[str, Sequence[Any]],
    reasons: Mapping[str, str],
    skipped: Counter[str],
    source: Source,
    sentences: int,
) -> dict[str, Any]:
    """Return the numbers of words and occurrences, the words left out by reason, and the note for captions."""
    assert source.second is not None
    counts = [len(places) for places in kept.values() if places]
    most = source.options["occurrences"]
    note = (
        f"{quantity(sum(counts), 'occurrence')} of {quantity(len(counts), 'word')} of {source.path.name} in "
        f"{quantity(sentences, 'sentence')} of {source.second.path.name}, at most {most} of a word (median "
        f"{np.median(counts):g})"
    )
    left_out = {why: [word for word, reason in reasons.items() if reason == why] for why in sorted({*reasons.values()})}
    if reasons:
        named = ", ".join(f"{quantity(len(words), 'word')} {why}" for why, words in left_out.items())
        note += f"; left out: {named}"
    if skipped:
        note += f"; skipped: {_describe(skipped, 'occurrence')}"
    return {
        "words": len(counts),
        "of": len(words),
        "occurrences_found": sum(counts),
        "left_out": left_out,
        "note": note,
    }


def _describe(reasons: Counter[str], noun: str = "word") -> str:
    return ", ".join(f"{quantity(count, noun)} {why}" for why, count in sorted(reasons.items()))


def _means(name: str, surprises: Sequence[WordSurprise]) -> Iterator[Score]:
    """Yield the mean surprisal over all words and over the words of each category."""
    groups: dict[str, list[float]] = {}
    for one in surprises:
        for group in {ALL, one.category or ALL}:
            groups.setdefault(group, []).append(one.surprisal)
    for group, surprises_of_group in sorted(groups.items()):
        yield Score(name, float(np.mean(surprises_of_group)), len(surprises_of_group), group)


# === Bigrams of words ===


class WordBigrams:
    """Counts of words and of bigrams in sentences, ignoring case.

    Bigrams are smoothed as in ngram_divergence.py (Witten and Bell, 1991): after a word with c occurrences and t
    different followers, the followers share c / (c + t) of the probability by their counts; the rest follows the
    frequencies of single words, with one added to each count.
    """

    def __init__(self, sentences: Iterable[str]):
        self.words, self.pairs = Counter[str](), Counter[tuple[str, str]]()
        for sentence in sentences:
            words = split(sentence)
            self.words.update(words)
            self.pairs.update(zip([START, *words], words, strict=False))
        self.total = self.words.total()
        self.before, self.followers = Counter[str](), Counter[str]()
        for (first, _), count in self.pairs.items():
            self.before[first] += count
            self.followers[first] += 1

    def bits(self, sentence: str, start: int, end: int) -> float:
        """Return the surprisal (bits) by bigrams of the words from character `start` to `end` of a counted sentence."""
        before, inside = split(sentence[:start]), split(sentence[start:end])
        previous = [before[-1] if before else START, *inside]
        return -sum(math.log2(self._probability(*pair)) for pair in zip(previous, inside, strict=False))

    def single_bits(self, words: str) -> float:
        """Return the surprisal (bits) of words by their frequency, without counting the occurrence itself."""
        return -sum(math.log2(self._single(word)) for word in split(words))

    def _single(self, word: str) -> float:
        """Return the smoothed frequency of a word, without counting the occurrence itself."""
        return self.words[word] / (self.total - 1 + len(self.words))

    def _probability(self, first: str, second: str) -> float:
        """Return the probability of `second` after `first`, without counting the occurrence itself."""
        pair = self.pairs[first, second] - 1
        single = self._single(second)
        occurrences, different = self.before[first] - 1, self.followers[first] - (pair == 0)
        return (pair + different * single) / (occurrences + different) if occurrences + different else single


def split(text: str) -> list[str]:
    """Return the words of a text in lower case, split as in lists of words."""
    return [part.casefold() for part in word_list.PART.findall(text)]
