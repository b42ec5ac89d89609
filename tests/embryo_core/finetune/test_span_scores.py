"""Exact match and F1 are those of SQuAD's official rules, computed here a second time from their description."""

import json
import random
import re
import string
from pathlib import Path

import pytest

from embryo_core.finetune.span_scores import exact_and_f1, normalise

GOLD = {
    "several": ["the Battle of Hastings", "Battle of Hastings", "Hastings"],
    "number": ["1,066"],
    "none": [],
    "an article alone": ["The"],
    "accents": ["Café Müller's"],
    "hyphen": ["state-of-the-art"],
}
ANSWERS = [
    "", "the battle of hastings.", "battle", "1066", "A", "cafe muller", "Café Müller’s", "of of", "stateoftheart",
]


def official(answer: str, gold: list[str]) -> tuple[float, float]:
    """Exact match and F1 in percent over one question, word by word and character by character."""

    def words(text: str) -> list[str]:
        kept = "".join(character for character in text.lower() if character not in set(string.punctuation))
        return [word for word in re.split(r"\s+", re.sub(r"\b(a|an|the)\b", " ", kept)) if word]

    golds = [one for one in gold if words(one)] or [""]
    exact, f1 = [], []
    for one in golds:
        given, right = words(answer), words(one)
        exact.append(100.0 if " ".join(given) == " ".join(right) else 0.0)
        left, shared = list(right), 0
        for word in given:
            if word in left:
                left.remove(word)
                shared += 1
        if not given or not right:
            f1.append(100.0 if given == right else 0.0)
        elif not shared:
            f1.append(0.0)
        else:
            precision, recall = shared / len(given), shared / len(right)
            f1.append(100.0 * 2 * precision * recall / (precision + recall))
    return max(exact), max(f1)


def test_a_file_of_predictions_scores_as_by_the_official_rules(tmp_path: Path):
    """Every answer to every question, written as the official script reads them: id to text."""
    predictions = {f"{name}/{i}": answer for name in GOLD for i, answer in enumerate(ANSWERS)}
    (tmp_path / "predictions.json").write_text(json.dumps(predictions), encoding="utf-8")
    read = json.loads((tmp_path / "predictions.json").read_text(encoding="utf-8"))
    ours = [exact_and_f1(answer, GOLD[question.split("/")[0]]) for question, answer in read.items()]
    theirs = [official(answer, GOLD[question.split("/")[0]]) for question, answer in read.items()]
    for one in (0, 1):
        mean, expected = (sum(score[one] for score in scores) / len(scores) for scores in (ours, theirs))
        assert 100 * mean == pytest.approx(expected, rel=1e-12)
    assert [100 * exact for exact, _ in ours] == [exact for exact, _ in theirs]
    assert [100 * f1 for _, f1 in ours] == pytest.approx([f1 for _, f1 in theirs], rel=1e-12)


def test_random_texts_score_as_by_the_official_rules():
    """Articles, punctuation, blanks and repeated words in any order."""
    chance = random.Random(3)
    parts = ["a", "An", "THE", "cat", "Cat's", "dog", "-", "...", "  ", "\t", "1.5", "’", "anthem", "theatre"]
    for _ in range(500):
        answer, *gold = (" ".join(chance.choices(parts, k=chance.randrange(5))) for _ in range(3))
        exact, f1 = exact_and_f1(answer, gold)
        assert (100 * exact, 100 * f1) == pytest.approx(official(answer, gold), rel=1e-12)


def test_articles_inside_words_stay():
    """Only whole words are articles."""
    assert normalise("The theatre, an anthem and a-b.") == ["theatre", "anthem", "and", "ab"]


@pytest.mark.parametrize(("answer", "score"), [("", (1.0, 1.0)), ("Rome", (0.0, 0.0))])
def test_a_question_without_an_answer_is_answered_rightly_by_none(answer: str, score: tuple[float, float]):
    """As in SQuAD 2.0."""
    assert exact_and_f1(answer, []) == score
