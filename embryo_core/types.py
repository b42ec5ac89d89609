"""The vocabulary of the project: what a run, a checkpoint, an example, a metric and its results are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np

    from embryo_core.engine.model import Model

# === What pretraining wrote ===


@dataclass(frozen=True)
class Run:
    """One pretraining: `<root>/runs/<name>/`, described by its run.json (a Run is read by `runs.open_run`)."""

    name: str
    path: Path
    family: str  # albert | bert | electra
    objective: str
    config: dict[str, Any] = field(hash=False)  # every setting of the pretraining, as given
    tokenizer_sha256: str
    corpus: dict[str, Any] = field(hash=False)  # fingerprint: sources, documents, tokens, sha256, held-out part
    planned_steps: tuple[int, ...]
    code_version: str

    @property
    def results(self) -> Path:
        """Where this run's results are written: `<root>/results/<name>/`, beside `<root>/runs/`."""
        return self.path.parent.parent / "results" / self.name

    @property
    def tokenizer(self) -> Path:
        """Folder of the one tokenizer used from pretraining to query."""
        return self.path / "tokenizer"


@dataclass(frozen=True)
class Checkpoint:
    """One step of a run. `step` counts optimizer updates and comes from the manifest, never from a file's position."""

    run: Run
    step: int
    path: Path
    sequences: int  # training sequences seen so far
    tokens: int  # training tokens seen so far, padding excluded
    written: int  # when its manifest was, in nanoseconds: a step that was trained again is another checkpoint


# === What annotated corpora hold ===


@dataclass(frozen=True)
class Target:
    """A labelled span, or pair of spans, over an example's words; the end is excluded."""

    span1: tuple[int, int]
    label: str
    span2: tuple[int, int] | None = None


@dataclass(frozen=True)
class Example:
    """Words with labelled spans: the form of edge probing, to which every annotated corpus is read.

    `heads` holds the index of each word's syntactic head, None at a root; it is empty where the corpus has no heads.
    """

    words: tuple[str, ...]
    targets: tuple[Target, ...]
    heads: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class Fact:
    """One LAMA fact: relation P19, template "[X] was born in [Y] .", subject and object labels."""

    id: str
    relation: str
    template: str
    subject: str
    object: str

    @property
    def question(self) -> str:
        """The cloze text that asks for the object: "Allan Peiper was born in [MASK] ."."""
        return self.template.replace("[Y]", "[MASK]").replace("[X]", self.subject)


# === What evaluation finds ===


@dataclass(frozen=True)
class Score:
    """One number: `value` in the metric's unit over `n` cases, for a group (part of speech, relation, ...) or all."""

    run: str
    step: int
    metric: str
    value: float
    n: int
    group: str | None = None
    layer: int | None = None


@dataclass(frozen=True)
class WordCount:
    """How often one word type with one tag was predicted correctly at one step."""

    run: str
    step: int
    metric: str
    tag: str  # Penn part-of-speech tag as in the treebank
    word: str
    n: int
    correct: int


@dataclass(frozen=True)
class ClozeAnswer:
    """What a checkpoint answered to one fact: rank (1 is best) and probability of the true object, and its top word."""

    run: str
    step: int
    fact: str
    relation: str
    subject: str
    object: str
    rank: int
    probability: float
    prediction: str
    prediction_probability: float


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """Attention of one head averaged over `sentences`: weights [L, L], row = from, column = to; entry NaN-free."""

    run: str
    step: int
    layer: int  # 1 is the lowest layer
    head: int  # 1 is the first head
    weights: "np.ndarray"
    sentences: int


@dataclass(frozen=True)
class ProbeCurve:
    """One point of a probe's own training curve: after so many iterations, its loss in training and F1 in development."""

    run: str
    step: int  # of the checkpoint
    task: str
    layer: int  # 0 is the embeddings
    control: bool  # trained on the control task's random labels
    iteration: int  # of the probe's optimizer
    train_loss: float  # mean cross-entropy in nats
    dev_f1: float  # micro-averaged, in [0, 1]


@dataclass(frozen=True)
class Prediction:
    """One candidate for a masked position."""

    token: str
    probability: float
    rank: int
    exact: bool = True  # False: a joint answer, whose true rank is at least this


@dataclass
class Findings:
    """All that one metric found at one checkpoint; most metrics fill one or two of the lists."""

    scores: list[Score] = field(default_factory=list)
    words: list[WordCount] = field(default_factory=list)
    cloze: list[ClozeAnswer] = field(default_factory=list)
    attention: list[AttentionMap] = field(default_factory=list)
    probes: list[ProbeCurve] = field(default_factory=list)


# === What turns the one into the other ===


@dataclass(frozen=True)
class Sources:
    """The annotated data an evaluation was given, how much of it to use, and how probes are trained on it."""

    treebank: Path | None = None
    lama: Path | None = None
    probing: Path | None = None  # folder of the four edge-probing tasks
    probes: Mapping[str, Path] = field(default_factory=dict)  # folders of the user's own tasks, by name
    limit: int | None = None  # the first sentences, facts of each relation, and examples of each split; None: all
    protocol: Literal["fast", "paper"] = "fast"  # of the probes' training
    probe_memory: int = 2048  # MiB of spans' features; more than that are mapped from disk


class Metric(Protocol):
    """Turns one checkpoint into findings. Adding one: its own file in metrics/ and one entry in METRICS."""

    name: str
    family: str  # the page that shows it: tokens, knowledge, attention, ...
    every: int  # default grid: 1 evaluates every checkpoint, 2 every second, ...
    source: str  # the field of Sources that it reads: treebank, lama or probing

    def supports(self, run: Run) -> bool:
        """Whether the metric has a meaning for this run (a family without a masked language model head has none)."""

    def read(self, model: "Model", sources: Sources) -> "Data":
        """Read and encode the data once per evaluation; errors: CorpusError with what is at fault.

        `model` gives the tokenizer and limits (vocabulary, positions), which are the same at every step of a run.
        """

    def compute(self, model: "Model", checkpoint: Checkpoint, data: Any) -> Findings:
        """Evaluate one loaded checkpoint on what `read` returned."""


class Data(Protocol):
    """What a metric reads and encodes once for all checkpoints, in a form of its own."""

    facts: dict[str, Any]  # what captions say of it: "sentences" and/or "facts", "tasks", and "note", one sentence


def spans_of_words(words: Sequence[str], labels: Sequence[str]) -> Example:
    """An example with one single-word target per word, as in part-of-speech tagging."""
    return Example(tuple(words), tuple(Target((i, i + 1), label) for i, label in enumerate(labels)))
