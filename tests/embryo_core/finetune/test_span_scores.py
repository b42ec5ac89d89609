"""Exact match and F1 are those of SQuAD's official rules, computed here a second time from their description."""

import json
import random
import re
import string
from pathlib import Path

import numpy as np
import pytest

from embryo_core.finetune.questions import Question, QuestionTask
from embryo_core.finetune.span_scores import exact_and_f1, normalise
from embryo_core.finetune.trainees import make_trainee
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Run

GOLD = {
    "several": ["the Battle of Hastings", "Battle of Hastings", "Hastings"],
    "number": ["1,066"],
    "an article alone": ["The"],
    "an article and a word": ["the", "the A"],
    "punctuation alone": ["..."],
    "nothing among others": ["!", "Rome"],
    "accents": ["Café Müller's"],
    "hyphen": ["state-of-the-art"],
}
NONE: dict[str, list[str]] = {"none": []}  # in version 2.0
ANSWERS = [
    "", "the battle of hastings.", "battle", "1066", "A", "?!", "the Rome", "cafe muller", "Café Müller’s", "of of",
    "stateoftheart",
]  # fmt: skip


def words(text: str) -> list[str]:
    """What both versions compare, character by character."""
    kept = "".join(character for character in text.lower() if character not in set(string.punctuation))
    return [word for word in re.split(r"\s+", re.sub(r"\b(a|an|the)\b", " ", kept)) if word]


def overlap(given: list[str], right: list[str]) -> float:
    """F1 in percent by precision and recall over words; 0 where none is shared."""
    left, shared = list(right), 0
    for word in given:
        if word in left:
            left.remove(word)
            shared += 1
    if not shared:
        return 0.0
    precision, recall = shared / len(given), shared / len(right)
    return 100.0 * 2 * precision * recall / (precision + recall)


def official(answer: str, gold: list[str], unanswerable: bool) -> tuple[float, float]:
    """Exact match and F1 in percent over one question, by version 2.0 or, without unanswerable ones, by 1.1."""
    golds = list(gold)
    if unanswerable:
        golds = [one for one in gold if words(one)] or [""]
    exact, f1 = [], []
    for one in golds:
        given, right = words(answer), words(one)
        exact.append(100.0 if " ".join(given) == " ".join(right) else 0.0)
        if unanswerable and not (given and right):
            f1.append(100.0 if given == right else 0.0)
        else:
            f1.append(overlap(given, right))
    return max(exact), max(f1)


@pytest.mark.parametrize("unanswerable", [True, False])
def test_a_file_of_predictions_scores_as_by_the_official_rules(unanswerable: bool, tmp_path: Path):
    """Every answer to every question, written as the official script reads them: id to text."""
    golds = GOLD | NONE if unanswerable else GOLD
    predictions = {f"{name}/{i}": answer for name in golds for i, answer in enumerate(ANSWERS)}
    (tmp_path / "predictions.json").write_text(json.dumps(predictions), encoding="utf-8")
    read = json.loads((tmp_path / "predictions.json").read_text(encoding="utf-8"))
    asked = [(answer, golds[question.split("/")[0]], unanswerable) for question, answer in read.items()]
    ours, theirs = [exact_and_f1(*one) for one in asked], [official(*one) for one in asked]
    for one in (0, 1):
        mean, expected = (sum(score[one] for score in scores) / len(scores) for scores in (ours, theirs))
        assert 100 * mean == pytest.approx(expected, rel=1e-12)
    assert [100 * exact for exact, _ in ours] == [exact for exact, _ in theirs]
    assert [100 * f1 for _, f1 in ours] == pytest.approx([f1 for _, f1 in theirs], rel=1e-12)


@pytest.mark.parametrize("unanswerable", [True, False])
def test_random_texts_score_as_by_the_official_rules(unanswerable: bool):
    """Articles, punctuation, blanks and repeated words in any order."""
    chance = random.Random(3)
    parts = ["a", "An", "THE", "cat", "Cat's", "dog", "-", "...", "  ", "\t", "1.5", "’", "anthem", "theatre"]
    for _ in range(500):
        answer, *gold = (" ".join(chance.choices(parts, k=chance.randrange(5))) for _ in range(3))
        exact, f1 = exact_and_f1(answer, gold, unanswerable)
        assert (100 * exact, 100 * f1) == pytest.approx(official(answer, gold, unanswerable), rel=1e-12)


@pytest.mark.parametrize(
    ("answer", "gold", "of_2", "of_1"),
    [
        ("the", ["The"], (1.0, 1.0), (1.0, 0.0)),  # F1 of no words
        ("...", ["the", "Rome"], (0.0, 0.0), (1.0, 0.0)),  # a gold answer of no words beside another
        ("Rome", ["the", "Rome"], (1.0, 1.0), (1.0, 1.0)),
        ("Rome", ["the"], (0.0, 0.0), (0.0, 0.0)),
    ],
)
def test_the_versions_differ_where_nothing_is_left_of_an_answer(
    answer: str, gold: list[str], of_2: tuple[float, float], of_1: tuple[float, float]
):
    """Counted by hand."""
    assert (exact_and_f1(answer, gold, True), exact_and_f1(answer, gold, False)) == (of_2, of_1)


@pytest.mark.parametrize(("unanswerable", "scores"), [(True, (1.0, 1.0)), (False, (0.75, 0.0))])
def test_data_are_scored_by_their_own_version(unanswerable: bool, scores: tuple[float, float], tiny_run: Run):
    """Three gold answers are articles, and one is a word or none at all: the model's answers, "the", and no answer."""
    context, last = "The king .", ((), ()) if unanswerable else (("king",), (4,))
    asked = [(("The",), (0,))] * 3 + [last]
    questions = [Question(f"q{i}", context, "What ?", *one) for i, one in enumerate(asked)]
    task = make_trainee(QuestionTask(questions, questions), load_tokenizer(tiny_run), 32)
    logits = np.zeros((len(questions), 2, 32), np.float32)
    logits[np.arange(4), :, task.windows.offset] = 9  # the first piece of the paragraph
    found = {(row.predictor, row.metric): row.value for row in task.findings(logits, 1).task_scores}
    for predictor in ("model", "no answer"):
        assert (found[predictor, "exact"], found[predictor, "f1"]) == scores


def test_articles_inside_words_stay():
    """Only whole words are articles."""
    assert normalise("The theatre, an anthem and a-b.") == ["theatre", "anthem", "and", "ab"]


@pytest.mark.parametrize(("answer", "score"), [("", (1.0, 1.0)), ("Rome", (0.0, 0.0))])
def test_a_question_without_an_answer_is_answered_rightly_by_none(answer: str, score: tuple[float, float]):
    """As in SQuAD 2.0."""
    assert exact_and_f1(answer, [], unanswerable=True) == score
