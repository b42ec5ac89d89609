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
from embryo_core.errors import CorpusError
from embryo_core.groups import ALL
from embryo_core.measurements import Findings, ListedWordSurprisal, Score
from embryo_core.metric import Limits, Metric, Option, Source
from embryo_core.metrics import batches
from embryo_core.metrics.piece_scores import score_pieces
from embryo_core.types import ListedWord
from embryo_core.words import quantity

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.encodings import Pieces
    from embryo_core.tokenizers.tokenizer import Tokenizer

SEED = 0  # seed of the draw of occurrences, the same for all runs
SENTENCE_START = ""  # in bigrams, what precedes the first word of a sentence
# Reasons why words or occurrences are left out.
ABSENT_REASON = "never in the text"
FIRST_REASON = "at the start of a text, where nothing predicts them"
UNWRITABLE_REASON = "with letters that the tokenizer cannot encode"
ACROSS_REASON = "with a piece that holds more than the word"


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
    form = word_list.WORD_LIST_FORM
    second = "text"
    second_form = word_list.TEXT_FORM
    needs = frozenset({"words"})
    limited = False  # `occurrences` bounds the cost; a limit on sentences would lose words
    options = (Option("occurrences", 64, "occurrences of each word, at most", identifies=True),)

    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> EncodedWords:
        assert source.second is not None
        words, text = word_list.read_word_list(source.path), source.second.path
        sentences = word_list.read_sentences(text)
        occurrences = word_list.find_occurrences(words, sentences)
        shuffled = {word: _shuffled(word, occurrences_of_word) for word, occurrences_of_word in occurrences.items()}
        sentence_numbers = sorted({number for of_word in shuffled.values() for number, *_ in of_word})
        pieces = batches.encode_texts(tokenizer, [sentences[number] for number in sentence_numbers])
        pieces_of_sentence = dict(zip(sentence_numbers, pieces, strict=True))
        measurable: dict[str, list[tuple[int, ...]]] = {}  # sentence, first and end piece, first and end character
        skip_reasons, reasons = Counter[str](), {}
        for word, occurrences_of_word in shuffled.items():
            measurable[word], why = [], Counter[str]()
            for occurrence in occurrences_of_word:
                if len(measurable[word]) == source.options["occurrences"]:
                    break
                number, *characters = occurrence
                span = _locate(sentences[number], pieces_of_sentence[number], occurrence, tokenizer, limits)
                if isinstance(span, str):
                    why[span] += 1
                else:
                    measurable[word].append((number, *span, *characters))
            skip_reasons += why
            if not measurable[word]:
                reasons[word] = why.most_common(1)[0][0] if why else ABSENT_REASON
        if len(reasons) == len(words):
            raise CorpusError(
                f"No word of {source.path} can be measured in {text} "
                f"({_describe(Counter(reasons.values()))}); give another text."
            )
        summary = _summarise(words, measurable, reasons, skip_reasons, source, len(sentences))
        measured_words = [word for word in words if measurable[word.word]]
        occurrence_counts = np.array([len(measurable[word.word]) for word in measured_words])
        rows = np.array([occurrence for word in measured_words for occurrence in measurable[word.word]])
        used_sentences, sentence = np.unique(rows[:, 0], return_inverse=True)
        ids = [tokenizer.surround(pieces_of_sentence[i].ids.astype(np.int64)) for i in used_sentences.tolist()]
        summary |= _ngrams(sentences, measurable)
        return EncodedWords(measured_words, occurrence_counts, ids, sentence, rows[:, 1], rows[:, 2], summary)

    def compute(self, model: "Model", data: EncodedWords) -> Findings:
        lengths = data.end - data.first
        offsets = np.cumsum(lengths) - lengths
        piece_index = np.arange(lengths.sum()) - np.repeat(offsets - data.first, lengths)
        order = np.argsort(np.repeat(data.sentence, lengths), kind="stable")
        sentence, end = (np.repeat(values, lengths)[order] for values in (data.sentence, data.end))
        scores = np.zeros(len(piece_index))
        scores[order] = score_pieces(model, data.sentences, sentence, piece_index[order], end)
        bits = -np.add.reduceat(scores, offsets) / np.log(2)
        bounds = np.cumsum(data.counts)
        chance = np.log2(model.vocabulary_size)
        listed: list[ListedWordSurprisal] = []
        for word, surprisals, pieces in zip(
            data.words, np.split(bits, bounds[:-1]), np.split(lengths, bounds[:-1]), strict=True
        ):
            n, mean, mean_pieces = len(surprisals), float(surprisals.mean()), float(pieces.mean())
            occurrences = surprisals.astype("<f2").tobytes()
            properties = (word.category, word.age, word.concreteness)
            listed.append(
                ListedWordSurprisal(word.word, n, mean, mean_pieces * chance, occurrences, mean_pieces, *properties)
            )
        return Findings(scores=list(_means(self.name, listed)), surprisals=listed)


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
    piece_starts, piece_ends = pieces.characters.T
    is_blank = [text[a : max(a + 1, b)].isspace() for a, b in pieces.characters.tolist()]
    rests = [text[piece_start:] for piece_start in piece_starts.tolist()]
    # a word's first piece, or a separate one, has the space before it
    piece_starts = piece_starts + np.array([len(rest) - len(rest.lstrip()) for rest in rests], np.int64)
    inside = np.flatnonzero((piece_starts < end) & (np.maximum(piece_ends, piece_starts + 1) > start))
    mark, names = tokenizer.word_start, tokenizer.pieces(pieces.ids[inside].tolist())
    # of the white space before the word only the last space belongs to it, in the word's first piece or as a piece
    while len(names) > 1 and is_blank[inside[0]]:
        if not names[0].strip(mark) and not is_blank[inside[1]] and not names[1].startswith(mark):
            break
        inside, names = inside[1:], names[1:]
    if not len(inside) or (pieces.ids[inside] == tokenizer.unk_id).any():
        return UNWRITABLE_REASON
    if piece_starts[inside].min() < start or piece_ends[inside].max() > end:
        return ACROSS_REASON
    if limits.decoder and not len(tokenizer.begin) and inside[0] == 0:
        return FIRST_REASON
    return int(inside[0]), int(inside[-1]) + 1


def _ngrams(
    sentences: Sequence[str], measurable: Mapping[str, Sequence[tuple[int, ...]]]
) -> dict[str, dict[str, float]]:
    """Return each word's surprisal (bits) by its frequency in the text, and the mean of its surprisals by bigrams."""
    bigrams = WordBigrams(sentences)
    bits = {
        word: [bigrams.bits(sentences[i], start, end) for i, *_, start, end in values]
        for word, values in measurable.items()
    }
    return {
        "unigrams": {word: round(bigrams.single_bits(word), 3) for word, values in bits.items() if values},
        "bigrams": {word: round(float(np.mean(values)), 3) for word, values in bits.items() if values},
    }


def _summarise(
    words: Sequence[ListedWord],
    measurable: Mapping[str, Sequence[Any]],
    reasons: Mapping[str, str],
    skip_reasons: Counter[str],
    source: Source,
    sentences: int,
) -> dict[str, Any]:
    """Return the numbers of words and occurrences, the words left out by reason, and the note for captions."""
    assert source.second is not None
    counts = [len(occurrences) for occurrences in measurable.values() if occurrences]
    max_occurrences = source.options["occurrences"]
    note = (
        f"{quantity(sum(counts), 'occurrence')} of {quantity(len(counts), 'word')} of {source.path.name} in "
        f"{quantity(sentences, 'sentence')} of {source.second.path.name}, at most {max_occurrences} of a word (median "
        f"{np.median(counts):g})"
    )
    left_out = {why: [word for word, reason in reasons.items() if reason == why] for why in sorted({*reasons.values()})}
    if reasons:
        reasons_text = ", ".join(f"{quantity(len(words), 'word')} {why}" for why, words in left_out.items())
        note += f"; left out: {reasons_text}"
    if skip_reasons:
        note += f"; skipped: {_describe(skip_reasons, 'occurrence')}"
    numbers = {"words": len(counts), "of": len(words), "occurrences_found": sum(counts)}
    return numbers | {"left_out": left_out, "note": note}


def _describe(reasons: Counter[str], noun: str = "word") -> str:
    return ", ".join(f"{quantity(count, noun)} {why}" for why, count in sorted(reasons.items()))


def _means(name: str, listed: Sequence[ListedWordSurprisal]) -> Iterator[Score]:
    """Yield the mean surprisal over all words and over the words of each category."""
    groups: dict[str, list[float]] = {}
    for word in listed:
        for group in {ALL, word.category or ALL}:
            groups.setdefault(group, []).append(word.surprisal)
    for group, surprisals in sorted(groups.items()):
        yield Score(name, float(np.mean(surprisals)), len(surprisals), group)


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
            self.pairs.update(zip([SENTENCE_START, *words], words, strict=False))
        self.total = self.words.total()
        self.before, self.followers = Counter[str](), Counter[str]()
        for (previous, _), count in self.pairs.items():
            self.before[previous] += count
            self.followers[previous] += 1

    def bits(self, sentence: str, start: int, end: int) -> float:
        """Return the surprisal (bits) by bigrams of the words from character `start` to `end` of a counted sentence."""
        words_before, inside = split(sentence[:start]), split(sentence[start:end])
        previous = [words_before[-1] if words_before else SENTENCE_START, *inside]
        return -sum(math.log2(self._probability(*pair)) for pair in zip(previous, inside, strict=False))

    def single_bits(self, words: str) -> float:
        """Return the surprisal (bits) of words by their frequency, without counting the occurrence itself."""
        return -sum(math.log2(self._single(word)) for word in split(words))

    def _single(self, word: str) -> float:
        """Return the smoothed frequency of a word, without counting the occurrence itself."""
        return self.words[word] / (self.total - 1 + len(self.words))

    def _probability(self, previous: str, word: str) -> float:
        """Return the probability of `word` after `previous`, without counting the occurrence itself."""
        pair = self.pairs[previous, word] - 1
        single = self._single(word)
        occurrences, different = self.before[previous] - 1, self.followers[previous] - (pair == 0)
        return (pair + different * single) / (occurrences + different) if occurrences + different else single


def split(text: str) -> list[str]:
    """Return the words of a text in lower case, split as in lists of words."""
    return [match.casefold() for match in word_list.PART_PATTERN.findall(text)]
