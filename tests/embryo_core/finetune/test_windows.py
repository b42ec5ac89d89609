"""Every answer is in a window, is learned where it stands, and is read off with its very characters."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from embryo_core.errors import CorpusError
from embryo_core.finetune.questions import Question, read_questions
from embryo_core.finetune.trainees import make_trainee
from embryo_core.finetune.windows import LONGEST, Windows, cut_windows, read_spans, spans
from embryo_core.tokenizers.tokenizer import load_tokenizer
from tests.embryo_core.finetune.conftest import write_squad


@pytest.fixture(scope="module")
def tokenizer(tiny_run):
    """The tiny run's."""
    return load_tokenizer(tiny_run)


def logits_for(targets: np.ndarray, length: int) -> np.ndarray:
    """Logits [w, 2, L] that are 1 at the first and last piece of each target, 0 elsewhere."""
    logits = np.zeros((len(targets), 2, length), np.float32)
    for window, pair in enumerate(targets):
        logits[window, [0, 1], pair] = 1
    return logits


@pytest.mark.parametrize("length", [40, 64])
def test_the_span_that_is_learned_reads_as_the_answer(tmp_path: Path, tokenizer, length: int):
    """Also of a paragraph longer than a window, where the answer is in its last part."""
    questions = read_questions(write_squad(tmp_path)).train
    windows = cut_windows(questions, tokenizer, length)
    assert windows.sequences.lengths.max() <= length and len(windows.question) > len(questions)
    targets = spans(windows, questions)
    answers = read_spans(windows, logits_for(targets, int(windows.sequences.lengths.max())), may_be_empty=False)
    read = [question.context[start:end] for question, (start, end) in zip(questions, answers, strict=True)]
    assert read == [question.answers[0] for question in questions]


@pytest.mark.parametrize("length", [16, 32])
def test_a_long_question_leaves_room_for_the_paragraph(tmp_path: Path, tokenizer, length: int):
    """Half of what a model of few positions reads."""
    questions = read_questions(write_squad(tmp_path)).train
    long = [replace(question, text=" ".join([question.text] * 20)) for question in questions]
    windows = cut_windows(long, tokenizer, length)
    assert windows.sequences.lengths.max() == length
    assert set(windows.offset) == {(length - 3) // 2 + 2}
    assert min(map(len, windows.characters)) >= (length - 3) // 2


def test_the_loss_falls_as_the_right_spans_are_likelier(tmp_path: Path, tokenizer):
    """By which learning rates of equal scores are told apart."""
    trainee = make_trainee(read_questions(write_squad(tmp_path, unanswerable=True)), tokenizer, 64)
    right = logits_for(trainee.targets, int(trainee.validation.lengths.max()))
    assert 0 < trainee.loss(9 * right) < trainee.loss(right) < trainee.loss(0 * right)


def test_one_question_cannot_be_trained_on(tmp_path: Path):
    """As one is held out where a learning rate is chosen."""
    write_squad(tmp_path)
    table = pq.read_table(tmp_path / "train.parquet")
    pq.write_table(table[:1], tmp_path / "train.parquet")
    with pytest.raises(CorpusError, match="hold one question; give at least two"):
        read_questions(tmp_path)


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
def test_faulty_questions_are_reported_in_one_sentence(tmp_path: Path, damaged: Callable, message: str):
    """Which begins with the data that are at fault, as for any other task."""
    write_squad(tmp_path)
    pq.write_table(damaged(pq.read_table(tmp_path / "validation.parquet")), tmp_path / "validation.parquet")
    with pytest.raises(CorpusError, match=message):
        read_questions(tmp_path)


def test_windows_cover_the_whole_paragraph(tmp_path: Path, tokenizer):
    """From its first character to its last, each beginning inside the one before."""
    questions = read_questions(write_squad(tmp_path)).train
    windows = cut_windows(questions, tokenizer, 40)
    for owner, question in enumerate(questions):
        own = [windows.characters[i] for i in np.flatnonzero(windows.question == owner)]
        assert own[0][0, 0] == 0 and own[-1][-1, 1] == len(question.context)
        assert all(later[0, 0] <= earlier[-1, 1] for earlier, later in pairwise(own))


def test_a_window_without_the_answer_points_at_cls(tmp_path: Path, tokenizer):
    """So does every window of a question that has no answer."""
    questions = read_questions(write_squad(tmp_path, unanswerable=True)).train
    windows = cut_windows(questions, tokenizer, 40)
    targets = spans(windows, questions)
    long = targets[windows.question == 2]
    assert (long == 0).all(1).sum() >= len(long) - 2 and (long > 0).any()
    assert (targets[windows.question == 1] == 0).all()


def test_no_answer_wins_where_it_may_and_is_likelier(tmp_path: Path, tokenizer):
    """[CLS] against the best span: only in SQuAD 2.0."""
    questions = read_questions(write_squad(tmp_path, unanswerable=True)).train
    windows = cut_windows(questions, tokenizer, 40)
    logits = logits_for(spans(windows, questions), int(windows.sequences.lengths.max()))
    logits[:, :, 0] += 2
    assert (read_spans(windows, logits, may_be_empty=True) == 0).all()
    assert (read_spans(windows, logits, may_be_empty=False)[:, 1] > 0).all()


def test_right_answers_score_one_and_the_control_what_is_unanswerable(tmp_path: Path, tokenizer):
    """Exact match and F1 over all questions; the control answers none."""
    trainee = make_trainee(read_questions(write_squad(tmp_path, unanswerable=True)), tokenizer, 64)
    outputs = logits_for(trainee.targets, int(trainee.validation.lengths.max()))
    outputs[trainee.windows.question != 1, :, 0] = -1
    found = {(one.predictor, one.metric): one.value for one in trainee.findings(outputs, seed=1).task_scores}
    assert found == {
        ("model", "f1"): 1.0,
        ("model", "exact"): 1.0,
        ("no answer", "f1"): 0.25,
        ("no answer", "exact"): 0.25,
    }
    assert trainee.score(outputs) == 1.0


def test_training_data_of_another_version_are_reported(tmp_path: Path):
    """Validation of SQuAD 2.0 with training data of 1.1 would teach that every question has an answer."""
    write_squad(tmp_path)
    train = (tmp_path / "train.parquet").read_bytes()
    write_squad(tmp_path, unanswerable=True)
    (tmp_path / "train.parquet").write_bytes(train)
    with pytest.raises(CorpusError, match="give both of one version"):
        read_questions(tmp_path)


def one_window(pieces: int) -> Windows:
    """A window over pieces of two characters each, with a piece before them."""
    ends = 2 * np.arange(pieces)[:, None] + [0, 2]
    return Windows(None, np.array([0]), np.array([1]), [ends])


def test_an_answer_may_begin_and_end_with_its_window():
    """The pieces beside it are no part of it."""
    for answer, start, expected in (("aabb", 0, [1, 2]), ("bbcc", 2, [2, 3]), ("bb", 2, [2, 2])):
        assert spans(one_window(3), [Question("q", "aabbcc", "?", (answer,), (start,))]).tolist() == [expected]


def test_an_answer_has_no_more_pieces_than_are_allowed():
    """Nor need its first piece be the likeliest of all."""
    logits = np.zeros((1, 2, LONGEST + 3))
    logits[0, 1, LONGEST + 1] = 9
    logits[0, 0, 1], logits[0, 0, 2] = 5, 4
    assert read_spans(one_window(LONGEST + 2), logits, may_be_empty=False).tolist() == [[2, 2 * (LONGEST + 1)]]


def test_no_answer_wins_where_it_is_as_likely():
    """An answer has to be above it."""
    logits = np.array([[[2.0, 2.0, 0.0, 0.0]] * 2])
    assert read_spans(one_window(3), logits, may_be_empty=True).tolist() == [[0, 0]]
    assert read_spans(one_window(3), logits, may_be_empty=False).tolist() == [[0, 2]]
