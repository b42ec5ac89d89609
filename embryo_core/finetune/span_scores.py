"""Exact match and F1 of answers that are text, by the rules of SQuAD's official evaluations, one for each version.

They differ where nothing is left of an answer once it is normalised, as of "the": version 2.0 leaves such gold answers
out, and F1 of no words is 1 where both have none; version 1.1 keeps them, and its F1 is 0 wherever no word is shared.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence

ARTICLES = re.compile(r"\b(a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> list[str]:
    """The words of an answer that count: small letters, no ASCII punctuation, no articles."""
    return ARTICLES.sub(" ", text.lower().translate(NO_PUNCTUATION)).split()


def exact_and_f1(answer: str, gold: Sequence[str], unanswerable: bool) -> tuple[float, float]:
    """The best exact match (0 or 1) and the best F1 over the gold answers, any of which is right.

    By version 2.0 where some questions of the data are `unanswerable`: a question without a gold answer that has words
    is answered rightly by an answer of no words. Else by version 1.1, whose questions all have one gold answer at
    least.
    """
    words, right = normalise(answer), [*map(normalise, gold)]
    if unanswerable:
        right = [found for found in right if found] or [[]]
    return max(float(words == one) for one in right), max(_f1(words, one, unanswerable) for one in right)


def _f1(words: list[str], gold: list[str], unanswerable: bool) -> float:
    """F1 over words, each as often as it occurs; where both have none, 1 by version 2.0 and 0 by 1.1."""
    if not (words and gold):
        return float(unanswerable and words == gold)
    shared = (Counter(words) & Counter(gold)).total()
    return 2 * shared / (len(words) + len(gold))
