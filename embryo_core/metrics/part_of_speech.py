"""Words of a treebank as a model reads them, and their results by part of speech and word frequency (Section 3).

As in the paper's evaluation, each word is tokenized on its own and its pieces are joined between [CLS] and [SEP]; a
word is correct when all its pieces are. Sentences with more pieces than the model has positions are left out
and counted; words without a single piece (nothing but characters that the tokenizer drops) are left out.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embryo_core import runs
from embryo_core.corpora import TREEBANK
from embryo_core.corpora.word_groups import ALL, BANDS, PARTS_OF_SPEECH, TAGS, band_of
from embryo_core.errors import CorpusError
from embryo_core.metric import Limits, Metric, Source
from embryo_core.metrics.treebank import encode
from embryo_core.types import Example, Findings, Score, WordCount
from embryo_core.words import quantity

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class Treebank:
    """Encoded sentences and the words to be judged in them; arrays over the n words."""

    sentences: list[np.ndarray]  # ids with [CLS] and [SEP], one array per sentence
    sentence: np.ndarray  # [n] the sentence of each word
    start: np.ndarray  # [n] position of its first piece in the sentence
    end: np.ndarray  # [n] position after its last piece
    words: list[str]  # as written in the treebank
    tags: list[str]
    bands: list[str | None]  # the band of frequency ranks of each word; None: in none
    groups: dict[str, np.ndarray]  # bool [n] for each group that has words
    summary: dict[str, Any]


class WordMetric(Metric):
    """Base of the metrics that judge a treebank's words, each as right or wrong."""

    page = "tokens"
    source = "treebank"
    form = TREEBANK
    needs = frozenset({"masked_words"})

    @abstractmethod
    def judge(self, model: "Model", data: Treebank) -> np.ndarray:
        """Whether each word is right: bool [n]."""

    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> Treebank:
        return read(tokenizer, limits, source)

    def compute(self, model: "Model", data: Treebank) -> Findings:
        return findings(self.name, data, self.judge(model, data))


@lru_cache(maxsize=1)
def read(tokenizer: "Tokenizer", limits: Limits, source: Source) -> Treebank:
    """The treebank for all metrics that judge words, read once per evaluation. Raises CorpusError."""
    encoded = encode(tokenizer, limits, source)
    sentences = [sentence.ids for sentence in encoded.sentences]
    rows = [
        (number, *row)
        for number, sentence in enumerate(encoded.sentences)
        for row in _targets(sentence.example, sentence.word_of_piece)
    ]
    if not rows:
        raise CorpusError(
            f"{source.path} has no tagged word in a sentence of at most {limits.positions} pieces; "
            "give another treebank or a higher --limit."
        )
    sentence, start, end, words, tags = zip(*rows, strict=True)
    bands = _bands(words, tokenizer, limits.frequencies)
    groups = _groups(tags, bands)
    note = f"{quantity(len(rows), 'word')} in {quantity(len(sentences), 'sentence')} of {source.path.name}"
    left_out = f"; {encoded.too_long:,} longer than {limits.positions} pieces were left out" if encoded.too_long else ""
    summary = {"sentences": len(sentences), "words": len(rows), "too_long": encoded.too_long, "note": note + left_out}
    positions = np.array(sentence), np.array(start), np.array(end)
    return Treebank(sentences, *positions, list(words), list(tags), bands, groups, summary)


def findings(metric: str, treebank: Treebank, correct: np.ndarray) -> Findings:
    """Accuracy of each group and of all words, and the counts of each word with each tag; `correct` is bool [n].

    The words of a group, by their tag or band, sum to its score: a word as written has one band.
    """
    everything = {**treebank.groups, ALL: np.ones(len(correct), bool)}
    scores = [
        Score(metric, float(correct[members].mean()), int(members.sum()), group)
        for group, members in everything.items()
    ]
    counts: dict[tuple[str, str, str | None], list[int]] = {}
    for *word, hit in zip(treebank.tags, treebank.words, treebank.bands, correct, strict=True):
        count = counts.setdefault(tuple(word), [0, 0])
        count[0] += 1
        count[1] += bool(hit)
    words = [WordCount(metric, tag, word, n, hits, band) for (tag, word, band), (n, hits) in counts.items()]
    return Findings(scores=scores, words=words)


def _targets(example: Example, word_of_piece: np.ndarray) -> Iterator[tuple[int, int, str, str]]:
    """First and last position (after [CLS]) of each tagged word, the word, and its tag."""
    for target in example.targets:
        first, last = target.span1
        start, end = np.searchsorted(word_of_piece, [first, last]) + 1
        if end > start:
            yield int(start), int(end), " ".join(example.words[first:last]), target.label


def _groups(tags: tuple[str, ...], bands: list[str | None]) -> dict[str, np.ndarray]:
    """Members of each group and frequency band; one that has none is left out. Raises CorpusError for other tags."""
    by_tag = {group: np.isin(tags, members) for group, members in TAGS.items()}
    if not any(by_tag[group].any() for group in PARTS_OF_SPEECH):
        raise CorpusError(
            f"The treebank's tags are not Penn part-of-speech tags (received {', '.join(sorted(set(tags))[:5])}); "
            "give one with tags such as NN, VBD and IN."
        )
    by_band = {name: np.array([band == name for band in bands]) for name in BANDS}
    return {group: members for group, members in {**by_tag, **by_band}.items() if members.any()}


def _bands(words: tuple[str, ...], tokenizer: "Tokenizer", frequencies: Path | None) -> list[str | None]:
    """The band of each word; all None where pretraining did not count its words."""
    ranks = {} if frequencies is None else runs.read_ranks(frequencies)
    return [band_of(ranks.get(_as_counted(word, tokenizer))) if ranks else None for word in words]


def _as_counted(word: str, tokenizer: "Tokenizer") -> str:
    """A treebank word as pretraining counted it; one that the tokenizer cuts into several was counted as its parts."""
    cut = tokenizer.cut(word)
    return cut[0] if len(cut) == 1 else word
