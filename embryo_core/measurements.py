"""The measurements of a metric at a checkpoint, as rows of the result tables; results add run and step."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Score:
    """A score: `value` in the metric's unit over `n` cases, for a group (part of speech, relation, ...) or for all."""

    metric: str
    value: float
    n: int
    group: str | None = None
    layer: int | None = None


@dataclass(frozen=True)
class WordCount:
    """How often a word type with a tag was predicted correctly."""

    metric: str
    tag: str  # Penn part-of-speech tag as in the treebank
    word: str
    n: int
    correct: int
    band: str | None = None  # band of frequency ranks in the training corpus (groups.BANDS)


@dataclass(frozen=True)
class ClozeAnswer:
    """The answer to a fact: rank (1 is best) and probability of the true object, and the model's top word."""

    fact: str
    relation: str
    subject: str
    object: str
    rank: int
    probability: float
    prediction: str
    prediction_probability: float


@dataclass(frozen=True)
class VariantAnswer:
    """The answer to a variant of a fact that is answered right: rank of the true object, and the top word."""

    fact: str
    relation: str
    kind: str  # paraphrased, negated, or the kind of wrong word put before the question: high, low, random
    variant: str  # the template, or the wrong word
    rank: int
    prediction: str


@dataclass(frozen=True)
class PairScore:
    """The scores of both sentences of a minimal pair: log probabilities in nats, rounded to float32."""

    paradigm: str  # set/phenomenon/paradigm
    pair: int  # index in the paradigm
    good: float
    bad: float


@dataclass(frozen=True)
class ListedWordSurprisal:
    """The surprisal of a listed word in bits: the mean over n occurrences, and the value of each occurrence."""

    word: str
    n: int
    surprisal: float
    chance: float  # mean number of pieces times log2 of the vocabulary size
    occurrences: bytes  # float16 [n], in the same order at every step
    pieces: float  # mean number of pieces of an occurrence
    category: str | None = None
    age: float | None = None  # months
    concreteness: float | None = None


@dataclass(frozen=True)
class StateProducts:
    """Inner products of a layer's states of n words, from which the similarity of two models' states is computed.

    They are the rows of `curves.geometry.gram` below the diagonal.
    """

    layer: int  # 0 is the embeddings
    n: int
    products: bytes  # float16 [n * (n - 1) / 2]


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """Attention of one head averaged over `sentences`: weights [L, L] without NaN, row = from, column = to."""

    layer: int  # 1 is the lowest layer
    head: int  # 1 is the first head
    weights: "np.ndarray"
    sentences: int


@dataclass(frozen=True)
class ProbeCurve:
    """A point of a probe's training curve: training loss and development F1 after some iterations."""

    task: str
    layer: int  # 0 is the embeddings
    control: bool  # whether the probe was trained on the control task's random labels
    iteration: int  # iteration of the probe's optimizer
    train_loss: float  # mean cross-entropy in nats
    dev_f1: float  # micro-averaged, in [0, 1]


@dataclass(frozen=True)
class TaskScore:
    """A score on a task's development set, of the fine-tuned checkpoint or of a control that reads no text."""

    task: str
    seed: int
    predictor: str  # "model", or a control: "majority", "mean", "no answer"
    metric: str  # matthews, accuracy, f1, spearman, pearson, exact
    value: float  # in [-1, 1]
    n: int  # development examples


@dataclass(frozen=True)
class TuningPoint:
    """A point of a fine-tuning curve: training loss and development score after some updates."""

    task: str
    seed: int
    update: int
    train_loss: float  # mean over the updates since the previous point
    dev_score: float  # in the task's first metric


@dataclass(frozen=True)
class TaskAnswer:
    """The answer of a fine-tuned checkpoint to a development example."""

    task: str
    seed: int
    example: int  # row in the validation file
    gold: float  # index of the label, or the value of a regression
    answer: float


@dataclass(frozen=True)
class SpanAnswer:
    """The answer to a question about a paragraph, as a span of characters; start = end means no answer."""

    task: str
    seed: int
    question: str  # id of the question
    start: int
    end: int  # exclusive
    exact: float  # 1 if the answer is one of the gold answers, else 0
    f1: float  # over words, the best over the gold answers


@dataclass
class Findings:
    """The results of a metric at a checkpoint; most metrics fill one or two of the lists."""

    scores: list[Score] = field(default_factory=list)
    words: list[WordCount] = field(default_factory=list)
    cloze: list[ClozeAnswer] = field(default_factory=list)
    variants: list[VariantAnswer] = field(default_factory=list)
    pairs: list[PairScore] = field(default_factory=list)
    surprisals: list[ListedWordSurprisal] = field(default_factory=list)
    grams: list[StateProducts] = field(default_factory=list)
    attention: list[AttentionMap] = field(default_factory=list)
    probes: list[ProbeCurve] = field(default_factory=list)
    task_scores: list[TaskScore] = field(default_factory=list)
    tuning: list[TuningPoint] = field(default_factory=list)
    answers: list[TaskAnswer] = field(default_factory=list)
    spans: list[SpanAnswer] = field(default_factory=list)
