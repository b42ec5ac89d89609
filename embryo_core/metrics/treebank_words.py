"""Encoding of a treebank's sentences and words, and their scores by part of speech and word frequency (Section 3).

As in the paper's evaluation, each word is tokenized separately and the pieces are joined between [CLS] and [SEP], or
the special tokens that the tokenizer has instead; with the option AS_WRITTEN the sentence is tokenized as running text.
A word is correct if all its pieces are. Sentences with more pieces than the model has positions are left out and
counted. Words without a piece, whose characters the tokenizer drops, are left out.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embryo_core import runs
from embryo_core.corpora import TREEBANK_FORM, read_treebank
from embryo_core.errors import CorpusError
from embryo_core.groups import ALL, BANDS, band_of, groups_of_tags
from embryo_core.measurements import Findings, Score, WordCount
from embryo_core.metric import Limits, Metric, Option, Source
from embryo_core.types import Example
from embryo_core.words import quantity

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.tokenizer import Tokenizer


AS_WRITTEN = Option(
    "as-written",
    False,
    "read sentences as running text, without blanks where the treebank has none; by default each word is tokenized on "
    "its own, as in the paper",
    identifies=True,
)
READ_AS_TEXT = "read as running text"  # in the notes of results for which sentences were read so

# === Sentences ===


@dataclass(frozen=True, eq=False)
class Sentence:
    """One encoded sentence of P pieces, at least one."""

    number: int  # index in the treebank, from 0
    example: Example
    ids: np.ndarray  # pieces with the special tokens around them
    first: int  # position of the first piece: 1 after a special token, else 0
    word_of_piece: np.ndarray  # [P] index of the word of each piece, never decreasing
    spans: np.ndarray  # [words, 2] index of the first piece of each word, and of the piece after its last

    @property
    def inside(self) -> slice:
        """Return the positions of the pieces, without special tokens."""
        return slice(self.first, self.first + len(self.word_of_piece))


@dataclass(frozen=True, eq=False)
class EncodedTreebank:
    """The sentences that fit the models' positions, and the number of sentences that are too long."""

    sentences: tuple[Sentence, ...]
    too_long: int
    as_written: bool

    @property
    def reading(self) -> str:
        """Return the end of a note on sentences read as running text; "" if each word is read on its own."""
        return f"; {READ_AS_TEXT}" if self.as_written else ""


@dataclass(frozen=True, eq=False)
class EncodedSentences:
    """The sentences of a treebank in the form that a metric needs; each has the attribute `ids`."""

    sentences: tuple[Any, ...]
    summary: dict[str, Any]


def encode(tokenizer: "Tokenizer", limits: Limits, source: Source) -> EncodedTreebank:
    """Read and encode a treebank, or its first `source.limit` sentences, once for all metrics. Raises CorpusError.

    Decoders, which the paper does not evaluate, read the sentences as written if the treebank records their spaces.
    """
    return _encode(tokenizer, limits, replace(source, options={}), source.options.get(AS_WRITTEN.name, False))


@lru_cache(maxsize=2)
def _encode(tokenizer: "Tokenizer", limits: Limits, source: Source, as_written: bool) -> EncodedTreebank:
    """Encode a treebank; `source` has no options, so that metrics with different ones share the cached result."""
    sentences, too_long = [], 0
    examples = read_treebank(source.path)
    has_blanks = any(example.blanks for example in examples)
    if as_written and not has_blanks:
        raise CorpusError(
            f"{source.path} does not say where no blank follows a word (SpaceAfter=No in CoNLL-U); leave out "
            f"--{AS_WRITTEN.name}."
        )
    as_written = as_written or (limits.decoder and has_blanks)
    first = len(tokenizer.begin)
    for number, example in enumerate(examples[: source.limit]):
        if as_written:
            encoding = tokenizer.encode_written(example.words, example.blanks)
        else:
            encoding = tokenizer.encode_words(example.words)
        ids = tokenizer.surround(encoding.ids)
        if len(ids) > limits.positions:
            too_long += 1
        elif len(encoding.ids):
            sentences.append(Sentence(number, example, ids, first, encoding.word_of_piece, encoding.spans))
    if not sentences:
        raise CorpusError(
            f"{source.path} has no sentence of at most {limits.positions} pieces; "
            "give another treebank or a higher --limit."
        )
    return EncodedTreebank(tuple(sentences), too_long, as_written)


# === Words ===


@dataclass(frozen=True, eq=False)
class TreebankWords:
    """Encoded sentences, and the n words to be scored in them."""

    sentences: list[np.ndarray]  # ids with special tokens, one array per sentence
    sentence: np.ndarray  # [n] index of each word's sentence
    start: np.ndarray  # [n] position of its first piece in the sentence
    end: np.ndarray  # [n] position after its last piece
    words: list[str]  # as written in the treebank
    tags: list[str]
    bands: list[str | None]  # the frequency band of each word, if any
    groups: dict[str, np.ndarray]  # members of each group that has words, bool [n]
    summary: dict[str, Any]


class WordMetric(Metric):
    """Base of the metrics that score each word of a treebank as right or wrong."""

    page = "tokens"
    source = "treebank"
    form = TREEBANK_FORM
    needs = frozenset({"masked_words"})
    options = (AS_WRITTEN,)

    @abstractmethod
    def judge(self, model: "Model", data: TreebankWords) -> np.ndarray:
        """Return whether each word is right: bool [n]."""

    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> TreebankWords:
        return read_treebank_words(tokenizer, limits, source)

    def compute(self, model: "Model", data: TreebankWords) -> Findings:
        return findings(self.name, data, self.judge(model, data))


@lru_cache(maxsize=1)
def read_treebank_words(tokenizer: "Tokenizer", limits: Limits, source: Source) -> TreebankWords:
    """Read the words of a treebank, once per evaluation for all metrics that score them. Raises CorpusError.

    For a decoder, words at position 0 are left out and counted, since nothing precedes them.
    """
    treebank = encode(tokenizer, limits, source)
    sentences = [sentence.ids for sentence in treebank.sentences]
    rows = [(number, *row) for number, sentence in enumerate(treebank.sentences) for row in _targets(sentence)]
    without_context = sum(start == 0 for _, start, *_ in rows) if limits.decoder else 0
    rows = [row for row in rows if row[1] or not limits.decoder]
    if not rows and not any(sentence.example.targets for sentence in treebank.sentences):
        raise CorpusError(f"{source.path} has no part-of-speech tag; give a treebank with Penn or universal tags.")
    if not rows:
        raise CorpusError(
            f"{source.path} has no tagged word in a sentence of at most {limits.positions} pieces; "
            "give another treebank or a higher --limit."
        )
    sentence, start, end, words, tags = zip(*rows, strict=True)
    bands = _bands(words, tokenizer, limits.frequencies)
    groups = _groups(tags, bands)
    note = f"{quantity(len(rows), 'word')} in {quantity(len(sentences), 'sentence')} of {source.path.name}"
    note += treebank.reading
    if treebank.too_long:
        note += f"; {treebank.too_long:,} longer than {limits.positions} pieces were left out"
    if without_context:
        note += f"; {quantity(without_context, 'word')} without a context were left out: the first of a sentence"
    summary = {"sentences": len(sentences), "words": len(rows), "too_long": treebank.too_long, "note": note}
    positions = np.array(sentence), np.array(start), np.array(end)
    return TreebankWords(sentences, *positions, list(words), list(tags), bands, groups, summary)


def findings(metric: str, treebank: TreebankWords, correct: np.ndarray) -> Findings:
    """Return the accuracy of each group, and the counts of each word with its tag and band; `correct` is bool [n]."""
    groups = {**treebank.groups, ALL: np.ones(len(correct), bool)}
    scores = [
        Score(metric, float(correct[members].mean()), int(members.sum()), group) for group, members in groups.items()
    ]
    counts: dict[tuple[str, str, str | None], list[int]] = {}
    for tag, word, band, hit in zip(treebank.tags, treebank.words, treebank.bands, correct, strict=True):
        count = counts.setdefault((tag, word, band), [0, 0])
        count[0] += 1
        count[1] += bool(hit)
    words = [WordCount(metric, tag, word, n, hits, band) for (tag, word, band), (n, hits) in counts.items()]
    return Findings(scores=scores, words=words)


def _targets(sentence: Sentence) -> Iterator[tuple[int, int, str, str]]:
    """Yield start and end position of each tagged word, the word, and its tag."""
    for target in sentence.example.targets:
        first_word, end_word = target.span1
        start, end = sentence.first + sentence.spans[first_word, 0], sentence.first + sentence.spans[end_word - 1, 1]
        if end > start:
            yield int(start), int(end), " ".join(sentence.example.words[first_word:end_word]), target.label


def _groups(tags: tuple[str, ...], bands: list[str | None]) -> dict[str, np.ndarray]:
    """Return the members, bool [n], of each non-empty group and frequency band. Raises CorpusError for unknown tags."""
    if not (groups := groups_of_tags(tags)):
        raise CorpusError(
            "The treebank's tags are neither Penn's nor universal parts of speech (received "
            f"{', '.join(sorted(set(tags))[:5])}); give one with tags such as NN, VBD and IN, or NOUN, VERB and ADP."
        )
    by_tag = {group: np.isin(tags, members) for group, members in groups.items()}
    by_band = {name: np.array([band == name for band in bands]) for name in BANDS}
    return {group: members for group, members in {**by_tag, **by_band}.items() if members.any()}


def _bands(words: tuple[str, ...], tokenizer: "Tokenizer", frequencies: Path | None) -> list[str | None]:
    """Return the frequency band of each word, or None; None for all words if pretraining did not count words."""
    ranks = {} if frequencies is None else runs.read_ranks(frequencies)
    # pretraining counted words as the tokenizer normalises and splits them; one that is split into parts has no count
    parts_of_words = [tokenizer.split_words(word) for word in (words if ranks else ())]
    counted_words = [parts[0] if len(parts) == 1 else word for word, parts in zip(words, parts_of_words, strict=False)]
    return [band_of(ranks.get(word)) for word in counted_words] or [None] * len(words)
