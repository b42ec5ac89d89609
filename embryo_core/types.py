"""The vocabulary of the project: runs, checkpoints, annotated data, and the findings of a metric."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

# === Output of pretraining ===


class StepUnit(StrEnum):
    """The unit in which a run counts its steps."""

    UPDATES = "updates"
    SEQUENCES = "sequences"
    TOKENS = "tokens"
    WORDS = "words"


@dataclass(frozen=True)
class Change:
    """A change in training from `step` on, such as other text, longer sequences or a falling learning rate."""

    step: int
    what: str  # a few words, such as "sequences of 128 tokens"


@dataclass(frozen=True)
class Origin:
    """Where a continued run began: a checkpoint of another run. Counts are 0 if unknown."""

    run: str
    step: int
    sequences: int  # seen up to this step
    tokens: int  # seen up to this step
    weights_sha256: str
    changes: tuple[Change, ...] = ()  # changes of the other run up to the step, except a change of text at the step
    text_tokens: int = 0  # size of the first run's text, whose words frequencies.tsv counts


@dataclass(frozen=True)
class SpecialTokens:
    """The special tokens of a tokenizer, None if missing; `unk` is None if the tokenizer can encode every text."""

    mask: str | None = "[MASK]"
    cls: str | None = "[CLS]"  # before every text
    sep: str | None = "[SEP]"  # after every text
    pad: str | None = "[PAD]"
    unk: str | None = "[UNK]"


@dataclass(frozen=True)
class Run:
    """One pretraining run, `<root>/runs/<name>/`, as described by its run.json; `runs.open_run` reads it."""

    name: str
    path: Path
    family: str  # model_type in config.json: albert, bert, electra, roberta, ...
    objective: str
    config: dict[str, Any] = field(hash=False)  # every setting of the pretraining, as given
    tokenizer_sha256: str
    corpus: dict[str, Any] = field(hash=False)  # fingerprint: sources, documents, tokens, sha256, held-out part
    planned_steps: tuple[int, ...]
    code_version: str
    note: str = ""  # further information for users of the checkpoints
    origin: Origin | None = None  # of a continued run; its steps up to the origin belong to the other run
    special_tokens: SpecialTokens | None = None  # None for the defaults, which pretrain's tokenizers have
    step_unit: StepUnit = StepUnit.UPDATES

    @property
    def results(self) -> Path:
        """Return the folder of this run's results: `<root>/results/<name>/`, next to `<root>/runs/`."""
        return self.path.parent.parent / "results" / self.name

    @property
    def first_step(self) -> int:
        """Return the step from which the settings count updates: 0, or the origin of a continued run."""
        return self.origin.step if self.origin else 0

    @property
    def tokenizer(self) -> Path:
        """Return the folder of the tokenizer, which is the same from pretraining to queries."""
        return self.path / "tokenizer"

    @property
    def frequencies(self) -> Path:
        """Return the path of the word counts of the training text, which may not exist."""
        return self.path / "frequencies.tsv"


@dataclass(frozen=True)
class Pointer:
    """The location of weights that were added without copying: on this machine, or in a Hub repository."""

    file: str  # absolute path, or path in the repository
    repository: str = ""  # owner/name; "" for this machine
    commit: str = ""  # commit of the repository
    parts: tuple[str, ...] = ()  # the further files, if the weights are in several files

    @property
    def files(self) -> list["Pointer"]:
        """Return a pointer to each file of the weights."""
        return [Pointer(file, self.repository, self.commit) for file in (self.file, *self.parts)]


@dataclass(frozen=True)
class Checkpoint:
    """One step of a run. `step` is read from the manifest, never derived from a file's position or name.

    A checkpoint may have lost its weights (`runs --thin`), while its results remain.
    """

    run: Run
    step: int  # in `Run.step_unit`
    path: Path
    sequences: int | None  # training sequences seen so far; None if unknown
    tokens: int | None  # training tokens seen so far, padding excluded
    manifest_mtime: int  # in ns; changes if the step is retrained
    has_weights: bool = True
    pointer: Pointer | None = None  # None if the weights are in `path`


# === Annotated corpora ===


@dataclass(frozen=True)
class Target:
    """A labelled span, or pair of spans, of an example's words, each [start, end)."""

    span1: tuple[int, int]
    label: str
    span2: tuple[int, int] | None = None


@dataclass(frozen=True)
class Example:
    """Words with labelled spans, as in edge probing; every annotated corpus is converted to such examples."""

    words: tuple[str, ...]
    targets: tuple[Target, ...]
    heads: tuple[int | None, ...] = ()  # index of each word's syntactic head, None for a root; () if not annotated
    blanks: tuple[bool, ...] = ()  # whether a space follows each word in the text; () if always


@dataclass(frozen=True)
class Fact:
    """A fact of LAMA: a relation such as P19, its template "[X] was born in [Y] .", and labels of subject and object.

    Models that fill masks are asked the `question`, models that continue a text the `prompt`.
    """

    id: str
    relation: str
    template: str
    subject: str
    object: str

    @property
    def question(self) -> str:
        """Return the cloze text that asks for the object: "Allan Peiper was born in [MASK] ."."""
        return self.template.replace("[Y]", "[MASK]").replace("[X]", self.subject)

    @property
    def prompt(self) -> str | None:
        """Return the text before the object, "Allan Peiper was born in"; None if the template goes on after [Y]."""
        before, _, after = self.template.partition("[Y]")
        if "[X]" not in before or after.strip(" ."):
            return None
        return before.replace("[X]", self.subject).rstrip()


@dataclass(frozen=True)
class MinimalPair:
    """Two sentences that differ in one point of grammar, of which speakers accept only the good one."""

    paradigm: str  # set/phenomenon/paradigm, such as "zorro/case/case-subjective_pronoun"
    number: int  # index in the paradigm, from 0
    good: str
    bad: str


@dataclass(frozen=True)
class ListedWord:
    """A word of a word list, with its properties; None if unknown."""

    word: str
    category: str | None = None  # "nouns", "predicates", "function words", ...
    age: float | None = None  # months, at which half of the children say the word
    concreteness: float | None = None


# === Findings of a metric; results add run and step ===


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
class WordSurprise:
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
    surprisals: list[WordSurprise] = field(default_factory=list)
    grams: list[StateProducts] = field(default_factory=list)
    attention: list[AttentionMap] = field(default_factory=list)
    probes: list[ProbeCurve] = field(default_factory=list)
    task_scores: list[TaskScore] = field(default_factory=list)
    tuning: list[TuningPoint] = field(default_factory=list)
    answers: list[TaskAnswer] = field(default_factory=list)
    spans: list[SpanAnswer] = field(default_factory=list)


@dataclass(frozen=True)
class Prediction:
    """A candidate for a masked position."""

    token: str
    probability: float
    rank: int
    exact: bool = True  # False for a joint answer, whose rank is a lower bound


# === Views of results ===


@dataclass(frozen=True, eq=False)
class RightAnswers:
    """The answers to facts over the steps: steps [S], and whether each fact was answered right, correct [F, S] bool.

    Rows are the facts of `results.read_histories`, in its order. A step at which a fact was not asked counts as wrong.
    """

    steps: "np.ndarray"
    correct: "np.ndarray"
