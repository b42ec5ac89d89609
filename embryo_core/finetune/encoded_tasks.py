"""Encoded tasks: the inputs of training, and the conversion of a model's outputs into scores and answers."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special, stats
from sklearn import metrics

from embryo_core.finetune import squad
from embryo_core.finetune.sequences import Sequences, encode
from embryo_core.finetune.tasks import TextTask
from embryo_core.measurements import Findings, SpanAnswer, TaskAnswer, TaskScore
from embryo_core.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class EncodedTextTask:
    """A classification or regression task over one or two texts, as sequences of pieces.

    Regression targets are standardised by the mean and standard deviation of the training values. Answers and gold
    values are scored as float32, the precision in which they are stored.
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
        """Return the kind of prediction: "classes" or "value"; for questions "span"."""
        return "classes" if self.labels else "value"

    @property
    def output_count(self) -> int:
        """Return the number of outputs of the head: one per label, or one value."""
        return len(self.labels) or 1

    @property
    def targets(self) -> np.ndarray:
        """Return the training targets: label indices or standardised values [n]; for questions, spans [n, 2]."""
        return self.train_gold if self.labels else self._standardised(self.train_gold)

    def score(self, outputs: np.ndarray) -> float:
        """Compute the first metric from the outputs [m, outputs] for `validation`; for questions, logits [m, 2, L]."""
        return score(self.metrics[0], self.gold, self._answers(outputs))

    def loss(self, outputs: np.ndarray) -> float:
        """Compute the mean loss of the outputs for `validation`."""
        if self.labels:
            return _cross_entropy(outputs, self.gold)
        return float(np.mean((outputs[:, 0] - self._standardised(self.gold)) ** 2))

    def findings(self, outputs: np.ndarray, seed: int) -> Findings:
        """Return the scores of the model and of the control, and the model's answer to every validation example."""
        answers, n = self._answers(outputs), len(self.gold)
        predictor, guesses = control(self.labels, self.train_gold, n)
        given = {"model": answers, predictor: guesses}
        by_name = {name: scores(self.metrics, self.gold, values) for name, values in given.items()}
        pairs = enumerate(zip(self.gold, answers, strict=True))
        rows = [TaskAnswer(self.name, seed, i, float(gold), float(answer)) for i, (gold, answer) in pairs]
        return Findings(task_scores=_task_scores(self.name, seed, by_name, n), answers=rows)

    def _standardised(self, values: np.ndarray) -> np.ndarray:
        return (values - self.train_gold.mean()) / self._deviation

    @property
    def _deviation(self) -> float:
        return float(self.train_gold.std()) or 1.0

    def _answers(self, outputs: np.ndarray) -> np.ndarray:
        if self.labels:
            return outputs.argmax(1)
        return (outputs[:, 0].astype(np.float64) * self._deviation + self.train_gold.mean()).astype(np.float32)


@dataclass(frozen=True, eq=False)
class EncodedQuestions:
    """SQuAD, encoded in windows, with the same methods as `EncodedTextTask`."""

    task: squad.QuestionTask
    windows: squad.Windows
    targets: np.ndarray
    train: Sequences
    kind: str = "span"
    output_count: int = 2

    @property
    def name(self) -> str:
        return self.task.name

    @property
    def validation(self) -> Sequences:
        return self.windows.sequences

    def score(self, outputs: np.ndarray) -> float:
        return float(np.mean([answer.f1 for answer in self._answers(outputs, seed=0)]))

    def loss(self, outputs: np.ndarray) -> float:
        targets = squad.gold_spans(self.windows, self.task.validation)
        return float(np.mean([_cross_entropy(outputs[:, end], targets[:, end]) for end in (0, 1)]))

    def findings(self, outputs: np.ndarray, seed: int) -> Findings:
        answers = self._answers(outputs, seed)
        pairs = {
            "model": [(answer.f1, answer.exact) for answer in answers],
            "no answer": [self._exact_and_f1("", question)[::-1] for question in self.task.validation],
        }
        mean_scores = {
            name: dict(zip(self.task.metrics, np.mean(values, axis=0).tolist())) for name, values in pairs.items()
        }
        return Findings(task_scores=_task_scores(self.name, seed, mean_scores, len(answers)), spans=answers)

    def _answers(self, outputs: np.ndarray, seed: int) -> list[SpanAnswer]:
        characters = squad.predicted_spans(self.windows, outputs, self.task.unanswerable)
        answers = []
        for question, (start, end) in zip(self.task.validation, characters.tolist(), strict=True):
            exact, f1 = self._exact_and_f1(question.context[start:end], question)
            stored_f1 = float(np.float32(f1))  # so that the task's score equals the mean of the stored values
            answers.append(SpanAnswer(self.name, seed, question.id, start, end, exact, stored_f1))
        return answers

    def _exact_and_f1(self, answer: str, question: squad.SquadQuestion) -> tuple[float, float]:
        return squad.exact_and_f1(answer, question.answers, self.task.unanswerable)


EncodedTask = EncodedTextTask | EncodedQuestions


def encode_task(task: TextTask | squad.QuestionTask, tokenizer: Tokenizer, length: int) -> EncodedTask:
    """Encode a task in sequences of at most `length` pieces."""
    if isinstance(task, squad.QuestionTask):
        windows, train_windows = (squad.cut_windows(part, tokenizer, length) for part in (task.validation, task.train))
        return EncodedQuestions(task, windows, squad.gold_spans(train_windows, task.train), train_windows.sequences)
    train, validation = (encode(split.texts, tokenizer, length) for split in (task.train, task.validation))
    gold = task.validation.gold if task.labels else task.validation.gold.astype(np.float32)
    return EncodedTextTask(task.name, task.labels, task.metrics, train, validation, task.train.gold, gold)


# === Scores by scikit-learn and scipy ===


def score(metric: str, gold: np.ndarray, answers: np.ndarray) -> float:
    """Compute one metric, in [-1, 1], of answers [n] against gold answers [n].

    A correlation with a constant is undefined and counts as 0, as scikit-learn defines Matthews'. Correlations are
    computed in float64.
    """
    with warnings.catch_warnings(action="ignore", category=stats.ConstantInputWarning):
        value = float(METRIC_FUNCTIONS[metric](gold, answers))
    return 0.0 if np.isnan(value) else min(max(value, -1.0), 1.0)  # rounding may exceed the interval


def scores(names: Sequence[str], gold: np.ndarray, answers: np.ndarray) -> dict[str, float]:
    """Compute several metrics, by name."""
    return {name: score(name, gold, answers) for name in names}


def control(labels: Sequence[str], train: np.ndarray, n: int) -> tuple[str, np.ndarray]:
    """Return the name and n answers of the control: the most frequent label or the mean value in training."""
    if labels:
        return "majority", np.full(n, np.bincount(train).argmax())
    return "mean", np.full(n, train.mean())


METRIC_FUNCTIONS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "matthews": metrics.matthews_corrcoef,
    "accuracy": metrics.accuracy_score,
    "f1": metrics.f1_score,  # the F1 of label 1
    "spearman": lambda gold, answers: stats.spearmanr(gold, answers).statistic,
    "pearson": lambda gold, answers: stats.pearsonr(gold.astype(float), answers.astype(float)).statistic,
}


def _cross_entropy(logits: np.ndarray, targets: np.ndarray) -> float:
    """Compute the mean cross-entropy of logits [n, classes] against target classes [n], in float64."""
    logs = special.log_softmax(logits.astype(np.float64), axis=1)
    return float(-logs[np.arange(len(targets)), targets].mean())


def _task_scores(task: str, seed: int, by_predictor: Mapping[str, Mapping[str, float]], n: int) -> list[TaskScore]:
    return [
        TaskScore(task, seed, predictor, metric, value, n)
        for predictor, by_metric in by_predictor.items()
        for metric, value in by_metric.items()
    ]
