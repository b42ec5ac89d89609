"""SQuAD read from its folder: questions about paragraphs, each with its gold answers, or with none (2.0)."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from embryo_core.errors import CorpusError
from embryo_core.finetune.forms import SQUAD
from embryo_core.finetune.tasks import HELD_OUT_ONE_IN, SHUFFLE, Columns, check_count, column, read_split

COLUMNS = ("id", "context", "question", "answers")


@dataclass(frozen=True)
class Question:
    """A question about a paragraph, and its gold answers with the characters at which each begins."""

    id: str
    context: str
    text: str
    answers: tuple[str, ...]  # none: it cannot be answered
    starts: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class QuestionTask:
    """SQuAD: questions to train on and to be scored on."""

    train: list[Question]
    validation: list[Question]
    name: str = SQUAD
    metrics: tuple[str, ...] = ("f1", "exact")
    remark: str = ""

    @cached_property
    def unanswerable(self) -> bool:
        """Whether some questions have no answer, as in SQuAD 2.0."""
        return any(not question.answers for question in self.validation)

    def held_out(self) -> "QuestionTask":
        """The same task on the training data alone, a tenth of which is now the validation."""
        order = np.random.default_rng(SHUFFLE).permutation(len(self.train))
        size = max(1, len(order) // HELD_OUT_ONE_IN)
        train, held = ([self.train[i] for i in rows] for rows in (order[size:], order[:size]))
        return replace(self, train=train, validation=held)


def read_questions(folder: Path) -> QuestionTask:
    """SQuAD 1.1 or 2.0 from train and validation parquet files. Raises CorpusError with what is at fault."""
    train = _questions(f"The training data of {folder}", read_split(folder, "train"))
    validation = _questions(f"The validation data of {folder}", read_split(folder, "validation"))
    check_count(f"The training data of {folder}", len(train), "question", least=2)
    task = QuestionTask(train, validation)
    if task.unanswerable and all(question.answers for question in train):
        raise CorpusError(
            f"The validation data of {folder} have questions without an answer, and the training data have none; "
            "give both of one version of SQuAD."
        )
    return task


def _questions(named: str, columns: Columns) -> list[Question]:
    rows = zip(*(column(named, columns, name) for name in COLUMNS), strict=True)
    questions = [_question(f"{named}, row {row}", *values) for row, values in enumerate(rows)]
    check_count(named, len(questions), "question")
    if len({question.id for question in questions}) < len(questions):
        raise CorpusError(f"{named} have an id twice; ids have to be unique.")
    return questions


def _question(line: str, id: Any, context: Any, text: Any, answers: Any) -> Question:
    try:
        golds, starts = tuple(answers["text"]), tuple(answers["answer_start"])
    except (KeyError, TypeError):
        raise CorpusError(f"{line}: answers have text and answer_start, received {str(answers)[:60]}.") from None
    if not all(isinstance(one, str) for one in (id, context, text, *golds)) or len(golds) != len(starts):
        raise CorpusError(f"{line}: id, context, question and answers are texts, each answer with its start.")
    for gold, start in zip(golds, starts, strict=True):
        if context[start : start + len(gold)] != gold:
            raise CorpusError(f"{line}: the answer {gold[:40]!r} does not stand at character {start} of its context.")
    return Question(id, context, text, golds, starts)
