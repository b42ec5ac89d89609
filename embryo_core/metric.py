"""What turns a checkpoint into findings: a metric, the data that it is given, and its options."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from embryo_core.types import Findings

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True)
class Limits:
    """What the models of a run read, and the words they were trained on; the same at every step."""

    positions: int  # pieces in a sequence, [CLS] and [SEP] included
    frequencies: Path | None = None  # frequencies.tsv, where pretraining counted its words


@dataclass(frozen=True)
class Source:
    """Data that a metric is given, and how much of them it uses; made by `corpora.open_source`."""

    path: Path
    sha256: str  # of the content, whatever the names of files and their compression
    limit: int | None = None  # the first sentences, facts of each relation, examples of each split; None: all
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)  # values of the metric's own options


@dataclass(frozen=True)
class Option:
    """A setting of a metric: --NAME on the command line; the type is that of the default."""

    name: str
    default: Any
    help: str
    choices: tuple[Any, ...] | None = None
    identifies: bool = False  # results under different values never mix


class Data(Protocol):
    """What a metric reads and encodes once for all checkpoints, in a form of its own."""

    summary: dict[str, Any]  # for captions: "sentences" and/or "facts", "tasks", ..., and "note", one sentence


SharedPass = Callable[["Model", "Sequence[tuple[Metric, Any]]"], list[Findings]]


class Metric(ABC):
    """Base of all metrics. Adding one: its own file in metrics/ and one entry in METRICS."""

    name: str
    page: str  # that shows it: tokens, knowledge, attention or probing
    source: str  # the data it reads: --data SOURCE=PATH, or --SOURCE PATH
    form: str  # what PATH has to be, for --help
    needs: frozenset[str]  # of what a model gives: masked_words, replaced_tokens, states, attentions, trainable
    every: int = 1  # default grid: 1 evaluates every checkpoint, 2 every second, ...
    options: tuple[Option, ...] = ()
    variants: str | None = None  # --VARIANTS NAME=PATH computes a variant on data of the user's own
    shared_pass: ClassVar[SharedPass | None] = None  # computes all metrics that have it, on one source, in one pass

    @abstractmethod
    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> Data:
        """Read and encode the data, once per evaluation. Raises CorpusError with what is at fault."""

    @abstractmethod
    def compute(self, model: "Model", data: Any) -> Findings:
        """Evaluate one loaded checkpoint on what `read` returned."""

    def variant(self, name: str) -> "Metric":
        """The metric of this name on data of the user's own, for metrics with `variants`. Raises CorpusError."""
        raise TypeError(f"{self.name} has no variants")
