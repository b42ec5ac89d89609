"""Tasks as training takes them: encoded, with targets; and what a model's outputs for them are worth, as findings."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from scipy import special

from embryo_core.finetune import span_scores
from embryo_core.finetune.questions import Question, QuestionTask
from embryo_core.finetune.scores import control, score, scores
from embryo_core.finetune.sequences import Sequences, encode
from embryo_core.finetune.tasks import TextTask
from embryo_core.finetune.windows import Windows, cut_windows, read_spans, spans
from embryo_core.tokenizers.tokenizer import Tokenizer
from embryo_core.types import Answer, Findings, SpanAnswer, TaskScore


class Trainee(Protocol):
    """An encoded task; with `score`, `loss` and `findings` for outputs of the model for `validation`."""

    name: str
    kind: str  # classes | value | span
    outputs: int  # of the head
    train: Sequences
    targets: np.ndarray  # [n] labels or values, [n, 2] first and last piece of a span
    validation: Sequences

    def score(self, outputs: np.ndarray) -> float:
        """The task's first metric of outputs [m, outputs], or of a span's logits [m, 2, L]."""

    def loss(self, outputs: np.ndarray) -> float:
        """The mean of what training minimises, of the same outputs."""

    def findings(self, outputs: np.ndarray, seed: int) -> Findings:
        """Scores of the model and of the control, and every answer."""


@dataclass(frozen=True, eq=False)
class TextTrainee:
    """A task over one or two texts. Values are learned less their mean and divided by their deviation in training.

    Gold values and answers that are scored are float32, as they are stored.
    """

    name: str
    labels: tuple[str, ...]
    metrics: tuple[str, ...]
    train: Sequences
    validation: Sequences
    train_gold: np.ndarray
    gold: np.ndarray

    @property
    def kind(self) -> str:
        return "classes" if self.labels else "value"

    @property
    def outputs(self) -> int:
        return len(self.labels) or 1

    @property
    def targets(self) -> np.ndarray:
        return self.train_gold if self.labels else self._scaled(self.train_gold)

    def _scaled(self, values: np.ndarray) -> np.ndarray:
        return (values - self.train_gold.mean()) / self._deviation

    @property
    def _deviation(self) -> float:
        return float(self.train_gold.std()) or 1.0

    def score(self, outputs: np.ndarray) -> float:
        return score(self.metrics[0], self.gold, self._answers(outputs))

    def loss(self, outputs: np.ndarray) -> float:
        if self.labels:
            return _cross_entropy(outputs, self.gold)
        return float(np.mean((outputs[:, 0] - self._scaled(self.gold)) ** 2))

    def findings(self, outputs: np.ndarray, seed: int) -> Findings:
        answers, n = self._answers(outputs), len(self.gold)
        predictor, guesses = control(self.labels, self.train_gold, n)
        found = {"model": scores(self.metrics, self.gold, answers), predictor: scores(self.metrics, self.gold, guesses)}
        return Findings(
            task_scores=_task_scores(self.name, seed, found, n),
            answers=[
                Answer(self.name, seed, i, float(gold), float(answer))
                for i, (gold, answer) in enumerate(zip(self.gold, answers, strict=True))
            ],
        )

    def _answers(self, outputs: np.ndarray) -> np.ndarray:
        if self.labels:
            return outputs.argmax(1)
        return (outputs[:, 0].astype(np.float64) * self._deviation + self.train_gold.mean()).astype(np.float32)


@dataclass(frozen=True, eq=False)
class SpanTrainee:
    """SQuAD."""

    task: QuestionTask
    windows: Windows
    targets: np.ndarray
    train: Sequences
    kind: str = "span"
    outputs: int = 2

    @property
    def name(self) -> str:
        return self.task.name

    @property
    def validation(self) -> Sequences:
        return self.windows.sequences

    def score(self, outputs: np.ndarray) -> float:
        return float(np.mean([answer.f1 for answer in self._answers(outputs, seed=0)]))

    def loss(self, outputs: np.ndarray) -> float:
        targets = spans(self.windows, self.task.validation)
        return float(np.mean([_cross_entropy(outputs[:, end], targets[:, end]) for end in (0, 1)]))

    def findings(self, outputs: np.ndarray, seed: int) -> Findings:
        answers = self._answers(outputs, seed)
        nothing = [self._exact_and_f1("", question) for question in self.task.validation]
        found = {
            "model": _means([(answer.exact, answer.f1) for answer in answers]),
            "no answer": _means(nothing),
        }
        return Findings(task_scores=_task_scores(self.name, seed, found, len(answers)), spans=answers)

    def _answers(self, outputs: np.ndarray, seed: int) -> list[SpanAnswer]:
        characters = read_spans(self.windows, outputs, self.task.unanswerable)
        answers = []
        for question, (start, end) in zip(self.task.validation, characters.tolist(), strict=True):
            exact, f1 = self._exact_and_f1(question.context[start:end], question)
            stored = float(np.float32(f1))  # the mean is that of what is stored
            answers.append(SpanAnswer(self.name, seed, question.id, start, end, exact, stored))
        return answers

    def _exact_and_f1(self, answer: str, question: Question) -> tuple[float, float]:
        return span_scores.exact_and_f1(answer, question.answers, self.task.unanswerable)


def make_trainee(task: TextTask | QuestionTask, tokenizer: Tokenizer, length: int) -> TextTrainee | SpanTrainee:
    """Encode a task in sequences of at most `length` pieces."""
    if isinstance(task, QuestionTask):
        cut = partial(cut_windows, tokenizer=tokenizer, length=length)
        train = cut(task.train)
        return SpanTrainee(task, cut(task.validation), spans(train, task.train), train.sequences)
    train, validation = (encode(split.texts, tokenizer, length) for split in (task.train, task.validation))
    gold = task.validation.gold if task.labels else task.validation.gold.astype(np.float32)
    return TextTrainee(task.name, task.labels, task.metrics, train, validation, task.train.gold, gold)


def _cross_entropy(logits: np.ndarray, targets: np.ndarray) -> float:
    """The mean over rows of logits [n, classes] for targets [n]."""
    logs = special.log_softmax(logits.astype(np.float64), axis=1)
    return float(-logs[np.arange(len(targets)), targets].mean())


def _means(pairs: list[tuple[float, float]]) -> dict[str, float]:
    exact, f1 = np.mean(pairs, axis=0).tolist()
    return {"f1": f1, "exact": exact}


def _task_scores(task: str, seed: int, found: Mapping[str, Mapping[str, float]], n: int) -> list[TaskScore]:
    return [
        TaskScore(task, seed, predictor, metric, value, n)
        for predictor, by_metric in found.items()
        for metric, value in by_metric.items()
    ]
