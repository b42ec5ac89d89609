"""How probable words are after the word before them in a text, each without its own occurrence."""

import math
from collections import Counter
from collections.abc import Iterable

from embryo_core.corpora.word_list import PART

START = ""  # before the first word of a sentence


class WordBigrams:
    """Counts of words and of pairs of neighbours in sentences, whatever their case.

    Smoothed as those of n-gram divergence: after a word with c occurrences and t different followers, these share
    c / (c + t) by their counts, and the rest follows single words with one added to each count (Witten and Bell, 1991).
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
        """Return the surprisal (bits) of the words between two characters of one of the sentences."""
        before, inside = split(sentence[:start]), split(sentence[start:end])
        previous = [before[-1] if before else START, *inside]
        return -sum(math.log2(self._probability(*pair)) for pair in zip(previous, inside, strict=False))

    def single_bits(self, words: str) -> float:
        """Return the surprisal (bits) of words of the sentences by their frequency, without one occurrence."""
        return -sum(math.log2(self._single(word)) for word in split(words))

    def _single(self, word: str) -> float:
        return self.words[word] / (self.total - 1 + len(self.words))

    def _probability(self, first: str, second: str) -> float:
        """Return how probable a word is after another, as if it had not occurred there once."""
        pair = self.pairs[first, second] - 1
        single = self._single(second)
        occurrences, different = self.before[first] - 1, self.followers[first] - (pair == 0)
        return (pair + different * single) / (occurrences + different) if occurrences + different else single


def split(text: str) -> list[str]:
    """Return the words of a text as a list of words writes them, in small letters."""
    return [part.casefold() for part in PART.findall(text)]
