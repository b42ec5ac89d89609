"""Exact match and F1 of answers that are text, by the rules of SQuAD's official evaluation (version 2.0)."""

import re
import string
from collections import Counter
from collections.abc import Sequence

ARTICLES = re.compile(r"\b(a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> list[str]:
    """The words of an answer that count: small letters, no ASCII punctuation, no articles."""
    return ARTICLES.sub(" ", text.lower().translate(NO_PUNCTUATION)).split()


def exact_and_f1(answer: str, gold: Sequence[str]) -> tuple[float, float]:
    """The best exact match (0 or 1) and the best F1 over the gold answers, any of which is right.

    Gold answers of no words are left out; a question that has no other is answered rightly by an answer of no words.
    """
    words = normalise(answer)
    right = [found for found in map(normalise, gold) if found] or [[]]
    return max(float(words == one) for one in right), max(_f1(words, one) for one in right)


def _f1(words: list[str], gold: list[str]) -> float:
    """F1 over words, each as often as it occurs; of no words it is 1 where both have none, else 0."""
    if not (words and gold):
        return float(words == gold)
    shared = (Counter(words) & Counter(gold)).total()
    return 2 * shared / (len(words) + len(gold))
