"""The vocabulary of the project: runs, checkpoints, examples, facts, and the findings of a metric."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

# === Output of pretraining ===


class StepUnit(StrEnum):
    """The unit in which the steps of a run count."""

    UPDATES = "updates"
    SEQUENCES = "sequences"
    TOKENS = "tokens"
    WORDS = "words"


@dataclass(frozen=True)
class Change:
    """A change in training from `step` on: other text, longer sequences, a falling learning rate."""

    step: int
    what: str  # a few words, such as "sequences of 128 tokens"


@dataclass(frozen=True)
class Origin:
    """Where a continued run began: a checkpoint of another run, with the sequences and tokens seen (0: unknown).

    `text_tokens` is the size of the first run's text, whose words frequencies.tsv counts (0: unknown).
    """

    run: str
    step: int
    sequences: int
    tokens: int
    weights_sha256: str
    changes: tuple[Change, ...] = ()  # changes of that run up to the step, except a change of text at it
    text_tokens: int = 0


@dataclass(frozen=True)
class SpecialTokens:
    """The special tokens of a tokenizer, None for missing ones; `unk` is None if it can encode every text."""

    mask: str | None = "[MASK]"
    cls: str | None = "[CLS]"  # before every text
    sep: str | None = "[SEP]"  # after every text
    pad: str | None = "[PAD]"
    unk: str | None = "[UNK]"


@dataclass(frozen=True)
class Run:
    """One pretraining: `<root>/runs/<name>/`, described by its run.json (a Run is read by `runs.open_run`)."""

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
    origin: Origin | None = None  # of a continued run, whose steps up to the origin are those of the first run
    special_tokens: SpecialTokens | None = None  # None: those of pretrain's own tokenizers
    step_unit: StepUnit = StepUnit.UPDATES

    @property
    def results(self) -> Path:
        """Return the folder of this run's results: `<root>/results/<name>/`, next to `<root>/runs/`."""
        return self.path.parent.parent / "results" / self.name

    @property
    def tokenizer(self) -> Path:
        """Return the folder of the tokenizer, which is the same from pretraining to queries."""
        return self.path / "tokenizer"

    @property
    def frequencies(self) -> Path:
        """Return the file with the word counts of the training text; a run may lack it."""
        return self.path / "frequencies.tsv"


@dataclass(frozen=True)
class Pointer:
    """The place of weights that were added without copying: a file on this machine, or in a Hub repository."""

    file: str  # absolute path, or name in a repository
    repository: str = ""  # owner/name; "" means this machine
    commit: str = ""  # of the repository
    parts: tuple[str, ...] = ()  # the other files, if the weights are in several files

    @property
    def files(self) -> list["Pointer"]:
        """Return a pointer to each file of the weights."""
        return [Pointer(file, self.repository, self.commit) for file in (self.file, *self.parts)]


@dataclass(frozen=True)
class Checkpoint:
    """One step of a run. `step` comes from the manifest, never from a file's position; its unit is `Run.step_unit`.

    A checkpoint may have lost its weights (`runs --thin`); its results stay.
    """

    run: Run
    step: int
    path: Path
    sequences: int | None  # training sequences seen so far; None if unknown
    tokens: int | None  # training tokens seen so far, padding excluded
    written: int  # manifest mtime (ns); changes if the step is retrained
    has_weights: bool = True
    pointer: Pointer | None = None  # None: the weights are in `path`


# === Annotated corpora ===


@dataclass(frozen=True)
class Target:
    """A labelled span, or pair of spans, over an example's words; the end is excluded."""

    span1: tuple[int, int]
    label: str
    span2: tuple[int, int] | None = None


@dataclass(frozen=True)
class Example:
    """Words with labelled spans, as in edge probing; every annotated corpus is converted to it."""

    words: tuple[str, ...]
    targets: tuple[Target, ...]
    heads: tuple[int | None, ...] = ()  # index of each word's syntactic head, None at a root; empty: not annotated
    blanks: tuple[bool, ...] = ()  # whether a space follows each word in the text; empty: always


@dataclass(frozen=True)
class Fact:
    """One LAMA fact: relation P19, template "[X] was born in [Y] .", subject and object labels.

    `question` is asked of a model that fills masks, `prompt` of one that continues a text.
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
        """Return the text before the object, "Allan Peiper was born in"; None if its template continues after it."""
        before, _, after = self.template.partition("[Y]")
        if "[X]" not in before or after.strip(" ."):
            return None
        return before.replace("[X]", self.subject).rstrip()


@dataclass(frozen=True)
class MinimalPair:
    """Two sentences that differ in one point of grammar; speakers accept only the good one."""

    paradigm: str  # set/phenomenon/paradigm, such as "zorro/case/case-subjective_pronoun"
    number: int  # index in its paradigm, from 0
    good: str
    bad: str


@dataclass(frozen=True)
class ListedWord:
    """A word of a list, with its properties, such as the age in months at which half of the children say it."""

    word: str
    category: str | None = None  # "nouns", "predicates", "function words", ...
    age: float | None = None
    concreteness: float | None = None


# === Findings of a metric; results add run and step ===


@dataclass(frozen=True)
class Score:
    """One number: `value` in the metric's unit over `n` cases, for a group (part of speech, relation, ...) or all."""

    metric: str
    value: float
    n: int
    group: str | None = None
    layer: int | None = None


@dataclass(frozen=True)
class WordCount:
    """How often one word type with one tag was predicted correctly."""

    metric: str
    tag: str  # Penn part-of-speech tag as in the treebank
    word: str
    n: int
    correct: int
    band: str | None = None  # band of frequency ranks in the training corpus (corpora.groups.BANDS)


@dataclass(frozen=True)
class ClozeAnswer:
    """The answer to one fact: rank (1 is best) and probability of the true object, and the model's top word."""

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
    """The answer to one variant of a right fact: rank of the true object, and the top word."""

    fact: str
    relation: str
    kind: str  # paraphrased, negated, or the kind of the wrong word before it: high, low, random
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
    """The surprisal (bits) of a word of a list: the mean over n occurrences, and that of each, rounded to float16."""

    word: str
    n: int
    surprisal: float
    chance: float  # the mean number of pieces times log2 of the size of the vocabulary
    occurrences: bytes  # float16 [n], in the same order at every step
    pieces: float  # mean number of pieces of an occurrence
    category: str | None = None
    age: float | None = None  # months
    concreteness: float | None = None


@dataclass(frozen=True)
class StateProducts:
    """Products of a layer's states of n words, for similarities: `curves.geometry.gram` below the diagonal, by row."""

    layer: int  # 0 is the embeddings
    n: int
    products: bytes  # float16 [n * (n - 1) / 2]


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """Attention of one head averaged over `sentences`: weights [L, L], row = from, column = to; entry NaN-free."""

    layer: int  # 1 is the lowest layer
    head: int  # 1 is the first head
    weights: "np.ndarray"
    sentences: int


@dataclass(frozen=True)
class ProbeCurve:
    """One point of a probe's training curve: training loss and development F1 after some iterations."""

    task: str
    layer: int  # 0 is the embeddings
    control: bool  # trained on the control task's random labels
    iteration: int  # iteration of the probe's optimizer
    train_loss: float  # mean cross-entropy in nats
    dev_f1: float  # micro-averaged, in [0, 1]


@dataclass(frozen=True)
class TaskScore:
    """One score on a task's development set: of the fine-tuned checkpoint, or of a control that reads no text."""

    task: str
    seed: int
    predictor: str  # model, or the control: majority, mean, no answer
    metric: str  # matthews, accuracy, f1, spearman, pearson, exact
    value: float  # in [-1, 1]
    n: int  # development examples


@dataclass(frozen=True)
class TuningPoint:
    """One point of a fine-tuning's curve: training loss and development score after some updates."""

    task: str
    seed: int
    update: int
    train_loss: float  # mean over the updates since the previous point
    dev_score: float  # in the task's first metric


@dataclass(frozen=True)
class TaskAnswer:
    """The answer of a fine-tuned checkpoint to one development example, given by its row in the validation file."""

    task: str
    seed: int
    example: int
    gold: float  # index of the label, or the value of a regression
    answer: float


@dataclass(frozen=True)
class SpanAnswer:
    """The answer to one question about a paragraph, as characters of the paragraph; start = end means no answer."""

    task: str
    seed: int
    question: str  # id of the question
    start: int
    end: int  # exclusive
    exact: float  # 1 if it is one of the gold answers
    f1: float  # over words, with the nearest gold answer


@dataclass
class Findings:
    """All that one metric found at one checkpoint; most metrics fill one or two of the lists."""

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
    """One candidate for a masked position."""

    token: str
    probability: float
    rank: int
    exact: bool = True  # False: a joint answer, whose rank is a lower bound


# === Views of results ===


@dataclass(frozen=True, eq=False)
class RightAnswers:
    """Whether each fact was answered right at each step: steps [S], correct [F, S] bool.

    Rows are those of `results.read_histories`. A step at which a fact was not asked counts as wrong.
    """

    steps: "np.ndarray"
    correct: "np.ndarray"
