"""Tests of SQuAD: windows contain every answer, spans decode to exact answers, and scores follow the official rules.

The official rules are implemented here a second time, from their description.
"""

import json
import random
import re
import string
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from embryo_core.errors import CorpusError
from embryo_core.finetune.encoded_tasks import encode_task
from embryo_core.finetune.squad import (
    MAX_ANSWER_PIECES,
    QuestionTask,
    SquadQuestion,
    Windows,
    cut_windows,
    exact_and_f1,
    gold_spans,
    normalise,
    predicted_spans,
    read_squad,
)
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Run
from tests.embryo_core.finetune.conftest import write_squad

# === Windows ===


@pytest.fixture(scope="module")
def tokenizer(tiny_run):
    """Return the tiny run's tokenizer."""
    return load_tokenizer(tiny_run)


def logits_for(targets: np.ndarray, length: int) -> np.ndarray:
    """Return logits [w, 2, L] that are 1 at the first and last token of each target, 0 elsewhere."""
    logits = np.zeros((len(targets), 2, length), np.float32)
    for window, pair in enumerate(targets):
        logits[window, [0, 1], pair] = 1
    return logits


@pytest.mark.parametrize("length", [40, 64])
def test_learned_span_decodes_to_the_answer(tmp_path: Path, tokenizer, length: int):
    """One paragraph is longer than a window, and its answers are in its last part."""
    questions = read_squad(write_squad(tmp_path)).train
    windows = cut_windows(questions, tokenizer, length)
    assert windows.sequences.lengths.max() <= length and len(windows.question) > len(questions)
    targets = gold_spans(windows, questions)
    answers = predicted_spans(windows, logits_for(targets, int(windows.sequences.lengths.max())), may_be_empty=False)
    read = [question.context[start:end] for question, (start, end) in zip(questions, answers, strict=True)]
    assert read == [question.answers[0] for question in questions]


@pytest.mark.parametrize("length", [16, 32])
def test_long_question_leaves_half_the_window_for_the_paragraph(tmp_path: Path, tokenizer, length: int):
    """A model of few positions would otherwise read only the question."""
    questions = read_squad(write_squad(tmp_path)).train
    long = [replace(question, text=" ".join([question.text] * 20)) for question in questions]
    windows = cut_windows(long, tokenizer, length)
    assert windows.sequences.lengths.max() == length
    assert set(windows.offset) == {(length - 3) // 2 + 2}
    assert min(map(len, windows.characters)) >= (length - 3) // 2


def test_loss_decreases_with_the_probability_of_right_spans(tmp_path: Path, tokenizer):
    """The loss decides between learning rates with equal scores."""
    task = encode_task(read_squad(write_squad(tmp_path, unanswerable=True)), tokenizer, 64)
    right = logits_for(task.targets, int(task.validation.lengths.max()))
    assert 0 < task.loss(9 * right) < task.loss(right) < task.loss(0 * right)


def test_single_training_question_is_refused(tmp_path: Path):
    """One question is held out when a learning rate is chosen."""
    write_squad(tmp_path)
    table = pq.read_table(tmp_path / "train.parquet")
    pq.write_table(table[:1], tmp_path / "train.parquet")
    with pytest.raises(CorpusError, match="hold one question; give at least two"):
        read_squad(tmp_path)


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (lambda table: table[:0], "^The validation data of .* hold no question; give files with rows"),
        (lambda table: table.drop(["id"]), "^The validation data of .* have no column 'id', only "),
        (
            lambda table: table.set_column(table.schema.get_field_index("answers"), "answers", [["x"] * len(table)]),
            "^The validation data of .*, row 0: answers have text and answer_start, received x",
        ),
    ],
    ids=("no row", "no column", "no answers"),
)
def test_faulty_questions_are_reported(tmp_path: Path, damaged: Callable, message: str):
    """The message begins with the faulty data, as for any other task."""
    write_squad(tmp_path)
    pq.write_table(damaged(pq.read_table(tmp_path / "validation.parquet")), tmp_path / "validation.parquet")
    with pytest.raises(CorpusError, match=message):
        read_squad(tmp_path)


def test_windows_cover_the_whole_paragraph(tmp_path: Path, tokenizer):
    """Windows span the first to the last character, and each begins within or directly after the one before."""
    questions = read_squad(write_squad(tmp_path)).train
    windows = cut_windows(questions, tokenizer, 40)
    for owner, question in enumerate(questions):
        own = [windows.characters[i] for i in np.flatnonzero(windows.question == owner)]
        assert own[0][0, 0] == 0 and own[-1][-1, 1] == len(question.context)
        assert all(later[0, 0] <= earlier[-1, 1] for earlier, later in pairwise(own))


def test_window_without_the_answer_points_at_cls(tmp_path: Path, tokenizer):
    """So does every window of a question that has no answer."""
    questions = read_squad(write_squad(tmp_path, unanswerable=True)).train
    windows = cut_windows(questions, tokenizer, 40)
    targets = gold_spans(windows, questions)
    long = targets[windows.question == 2]
    assert (long == 0).all(1).sum() >= len(long) - 2 and (long > 0).any()
    assert (targets[windows.question == 1] == 0).all()


def test_no_answer_is_chosen_if_allowed_and_likelier(tmp_path: Path, tokenizer):
    """[CLS] competes with the best span only in SQuAD 2.0."""
    questions = read_squad(write_squad(tmp_path, unanswerable=True)).train
    windows = cut_windows(questions, tokenizer, 40)
    logits = logits_for(gold_spans(windows, questions), int(windows.sequences.lengths.max()))
    logits[:, :, 0] += 2
    assert (predicted_spans(windows, logits, may_be_empty=True) == 0).all()
    assert (predicted_spans(windows, logits, may_be_empty=False)[:, 1] > 0).all()


def test_right_answers_score_1_and_control_the_unanswerable_share(tmp_path: Path, tokenizer):
    """Exact match and F1 are means over all questions; the control answers none, and one of four is unanswerable."""
    task = encode_task(read_squad(write_squad(tmp_path, unanswerable=True)), tokenizer, 64)
    outputs = logits_for(task.targets, int(task.validation.lengths.max()))
    outputs[task.windows.question != 1, :, 0] = -1
    scores = {(score.predictor, score.metric): score.value for score in task.findings(outputs, seed=1).task_scores}
    assert scores == {
        ("model", "f1"): 1.0,
        ("model", "exact"): 1.0,
        ("no answer", "f1"): 0.25,
        ("no answer", "exact"): 0.25,
    }
    assert task.score(outputs) == 1.0


def test_training_data_of_another_version_are_refused(tmp_path: Path):
    """With validation data of SQuAD 2.0, training data of 1.1 would teach that every question has an answer."""
    write_squad(tmp_path)
    train = (tmp_path / "train.parquet").read_bytes()
    write_squad(tmp_path, unanswerable=True)
    (tmp_path / "train.parquet").write_bytes(train)
    with pytest.raises(CorpusError, match="give both of one version"):
        read_squad(tmp_path)


def one_window(pieces: int) -> Windows:
    """Return a window over tokens of two characters each, after one other token."""
    ends = 2 * np.arange(pieces)[:, None] + [0, 2]
    return Windows(None, np.array([0]), np.array([1]), [ends])


def test_answer_may_be_at_the_edges_of_its_window():
    """The neighbouring tokens are not part of it."""
    for answer, start, expected in (("aabb", 0, [1, 2]), ("bbcc", 2, [2, 3]), ("bb", 2, [2, 2])):
        question = SquadQuestion("q", "aabbcc", "?", (answer,), (start,))
        assert gold_spans(one_window(3), [question]).tolist() == [expected]


def test_answer_has_at_most_the_allowed_number_of_tokens():
    """A span that starts at the most probable token would be too long, so it starts at the next one."""
    logits = np.zeros((1, 2, MAX_ANSWER_PIECES + 3))
    logits[0, 1, MAX_ANSWER_PIECES + 1] = 9
    logits[0, 0, 1], logits[0, 0, 2] = 5, 4
    window = one_window(MAX_ANSWER_PIECES + 2)
    assert predicted_spans(window, logits, may_be_empty=False).tolist() == [[2, 2 * (MAX_ANSWER_PIECES + 1)]]


def test_no_answer_is_chosen_on_a_tie():
    """A span must be more probable than [CLS]."""
    logits = np.array([[[2.0, 2.0, 0.0, 0.0]] * 2])
    assert predicted_spans(one_window(3), logits, may_be_empty=True).tolist() == [[0, 0]]
    assert predicted_spans(one_window(3), logits, may_be_empty=False).tolist() == [[0, 2]]


# === Exact match and F1 ===


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
    """Return the words that both versions compare, filtered character by character."""
    kept = "".join(character for character in text.lower() if character not in set(string.punctuation))
    return [word for word in re.split(r"\s+", re.sub(r"\b(a|an|the)\b", " ", kept)) if word]


def overlap(given: list[str], right: list[str]) -> float:
    """Return F1 in percent by precision and recall over words; 0 if no word is shared."""
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
    """Return exact match and F1 in percent of one question, by version 2.0 if `unanswerable`, else by 1.1."""
    golds = list(gold)
    if unanswerable:
        golds = [gold_answer for gold_answer in gold if words(gold_answer)] or [""]
    exact, f1 = [], []
    for gold_answer in golds:
        given, right = words(answer), words(gold_answer)
        exact.append(100.0 if " ".join(given) == " ".join(right) else 0.0)
        if unanswerable and not (given and right):
            f1.append(100.0 if given == right else 0.0)
        else:
            f1.append(overlap(given, right))
    return max(exact), max(f1)


@pytest.mark.parametrize("unanswerable", [True, False])
def test_file_of_predictions_is_scored_by_the_official_rules(unanswerable: bool, tmp_path: Path):
    """The file has every answer to every question, in the format of the official script: id to text."""
    golds = GOLD | NONE if unanswerable else GOLD
    predictions = {f"{name}/{i}": answer for name in golds for i, answer in enumerate(ANSWERS)}
    (tmp_path / "predictions.json").write_text(json.dumps(predictions), encoding="utf-8")
    read = json.loads((tmp_path / "predictions.json").read_text(encoding="utf-8"))
    asked = [(answer, golds[question.split("/")[0]], unanswerable) for question, answer in read.items()]
    ours, theirs = [exact_and_f1(*answer) for answer in asked], [official(*answer) for answer in asked]
    for i in (0, 1):
        mean, expected = (sum(score[i] for score in scores) / len(scores) for scores in (ours, theirs))
        assert 100 * mean == pytest.approx(expected, rel=1e-12)
    assert [100 * exact for exact, _ in ours] == [exact for exact, _ in theirs]
    assert [100 * f1 for _, f1 in ours] == pytest.approx([f1 for _, f1 in theirs], rel=1e-12)


@pytest.mark.parametrize("unanswerable", [True, False])
def test_random_texts_are_scored_by_the_official_rules(unanswerable: bool):
    """The texts combine articles, punctuation, blanks and repeated words in any order."""
    chance = random.Random(3)
    parts = ["a", "An", "THE", "cat", "Cat's", "dog", "-", "...", "  ", "\t", "1.5", "’", "anthem", "theatre"]
    for _ in range(500):
        answer, *gold = (" ".join(chance.choices(parts, k=chance.randrange(5))) for _ in range(3))
        exact, f1 = exact_and_f1(answer, gold, unanswerable)
        assert (100 * exact, 100 * f1) == pytest.approx(official(answer, gold, unanswerable), rel=1e-12)


@pytest.mark.parametrize(
    ("answer", "gold", "of_2", "of_1"),
    [
        ("the", ["The"], (1.0, 1.0), (1.0, 0.0)),  # F1 without words
        ("...", ["the", "Rome"], (0.0, 0.0), (1.0, 0.0)),  # a gold answer without words beside another
        ("Rome", ["the", "Rome"], (1.0, 1.0), (1.0, 1.0)),
        ("Rome", ["the"], (0.0, 0.0), (0.0, 0.0)),
    ],
)
def test_versions_differ_if_normalisation_leaves_no_word(
    answer: str, gold: list[str], of_2: tuple[float, float], of_1: tuple[float, float]
):
    """The expected scores are counted by hand."""
    assert (exact_and_f1(answer, gold, True), exact_and_f1(answer, gold, False)) == (of_2, of_1)


@pytest.mark.parametrize(("unanswerable", "scores"), [(True, (1.0, 1.0)), (False, (0.75, 0.0))])
def test_data_are_scored_by_their_own_version(unanswerable: bool, scores: tuple[float, float], tiny_run: Run):
    """Three gold answers are articles, one is a word or missing; the model answers "the", and the control nothing."""
    context, last = "The king .", ((), ()) if unanswerable else (("king",), (4,))
    asked = [(("The",), (0,))] * 3 + [last]
    questions = [SquadQuestion(f"q{i}", context, "What ?", *one) for i, one in enumerate(asked)]
    task = encode_task(QuestionTask(questions, questions), load_tokenizer(tiny_run), 32)
    logits = np.zeros((len(questions), 2, 32), np.float32)
    logits[np.arange(4), :, task.windows.offset] = 9  # the first piece of the paragraph
    task_scores = {(row.predictor, row.metric): row.value for row in task.findings(logits, 1).task_scores}
    for predictor in ("model", "no answer"):
        assert (task_scores[predictor, "exact"], task_scores[predictor, "f1"]) == scores


def test_articles_inside_words_are_kept():
    """Normalisation removes only whole words."""
    assert normalise("The theatre, an anthem and a-b.") == ["theatre", "anthem", "and", "ab"]


@pytest.mark.parametrize(("answer", "score"), [("", (1.0, 1.0)), ("Rome", (0.0, 0.0))])
def test_unanswerable_question_is_right_without_an_answer(answer: str, score: tuple[float, float]):
    """SQuAD 2.0 has such questions."""
    assert exact_and_f1(answer, [], unanswerable=True) == score
