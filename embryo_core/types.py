"""The vocabulary of the project: runs, checkpoints, annotated data, and views of results."""

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
    # seen up to this step
    sequences: int
    tokens: int
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


# === Views of results ===


@dataclass(frozen=True)
class Prediction:
    """A candidate for a masked position."""

    token: str
    probability: float
    rank: int
    exact: bool = True  # False for a joint answer, whose rank is a lower bound


@dataclass(frozen=True, eq=False)
class RightAnswers:
    """The answers to facts over the steps: steps [S], and whether each fact was answered right, correct [F, S] bool.

    Rows are the facts of `results.read_histories`, in its order. A step at which a fact was not asked counts as wrong.
    """

    steps: "np.ndarray"
    correct: "np.ndarray"
