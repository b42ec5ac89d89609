"""Tests of bigram surprisal, which is computed from a text without the occurrence itself."""

import math
import re

import pytest

from embryo_core.metrics.word_surprisal import SENTENCE_START, WordBigrams

SENTENCES = ["The dog sees the cat.", "the dog runs", "A cat, the cat runs", "ice cream", "Ice cream", "the ice"]


def plain(number: int, place: int) -> float:
    """Return the surprisal in bits of a pair of neighbours by the definition, counting all pairs but this one."""
    pairs = []
    for i, sentence in enumerate(SENTENCES):
        words = [SENTENCE_START, *re.findall(r"\w+", sentence.lower())]
        pairs += [(words[j], words[j + 1]) for j in range(len(words) - 1) if (i, j) != (number, place)]
    words = [SENTENCE_START, *re.findall(r"\w+", SENTENCES[number].lower())]
    first, second = words[place : place + 2]
    kinds = {word for sentence in SENTENCES for word in re.findall(r"\w+", sentence.lower())}
    single = (sum(after == second for _, after in pairs) + 1) / (len(pairs) + len(kinds))
    after = [word for before, word in pairs if before == first]
    if not after:
        return -math.log2(single)
    return -math.log2((after.count(second) + len({*after}) * single) / (len(after) + len({*after})))


def test_bigram_surprisal_excludes_the_occurrence_itself():
    """Every word is compared, after SENTENCE_START at the beginning of a sentence; bits of two words are summed."""
    counts = WordBigrams(SENTENCES)
    for number, sentence in enumerate(SENTENCES):
        for i, part in enumerate(re.finditer(r"\w+", sentence)):
            assert counts.bits(sentence, *part.span()) == pytest.approx(plain(number, i))
    single = [word.lower() for sentence in SENTENCES for word in re.findall(r"\w+", sentence)]
    assert counts.single_bits("the") == pytest.approx(
        -math.log2(single.count("the") / (len(single) - 1 + len({*single})))
    )
    assert counts.bits("ice cream", 0, 9) == pytest.approx(plain(3, 0) + plain(3, 1))
