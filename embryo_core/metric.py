"""The base classes of metrics: how a metric reads its data, which options it has, and how it computes findings."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from embryo_core.measurements import Findings

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.tokenizer import Tokenizer

Page = Literal["overview", "tokens", "attention", "probing", "knowledge", "grammar", "words", "geometry"]


@dataclass(frozen=True)
class Limits:
    """Properties of a run's models on which reading the data depends; they are the same at every step."""

    positions: int  # pieces in a sequence, including [CLS] and [SEP]
    frequencies: Path | None = None  # frequencies.tsv, if pretraining counted words
    decoder: bool = False  # whether the models predict next words instead of masked ones

    @classmethod
    def for_model(cls, model: "Model") -> "Limits":
        """Return the limits of the run to which a model belongs."""
        frequencies = model.checkpoint.run.frequencies
        return cls(
            model.max_positions, frequencies if frequencies.is_file() else None, "next_words" in model.capabilities
        )


@dataclass(frozen=True)
class Source:
    """The data of a metric, and the part of the data that the metric reads; made by `corpora.open_source`."""

    path: Path
    sha256: str  # SHA-256 of the content, independent of file names and compression
    limit: int | None = None  # number of sentences, facts of each relation, or examples of each split; None for all
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)  # values of the metric's options
    second: "Source | None" = None  # the second source of a metric that reads two


@dataclass(frozen=True)
class Option:
    """An option of a metric, --NAME on the command line; its values have the type of the default."""

    name: str
    default: Any
    help: str
    choices: tuple[Any, ...] | None = None
    identifies: bool = False  # whether results with different values must not be mixed


class MetricData(Protocol):
    """The data of a metric, read and encoded once for all checkpoints; each metric defines its own class."""

    @property
    def summary(self) -> dict[str, Any]:
        """Return counts for captions ("sentences", "facts", "tasks", ...) and a sentence, "note"."""


class Metric(ABC):
    """Base of all metrics. A new metric needs a file in metrics/ and an entry in METRICS."""

    name: str
    page: Page  # page that shows the metric
    source: str  # name of the data that it reads: --data SOURCE=PATH, or --SOURCE PATH
    form: str  # expected form of PATH, for --help
    second: str | None = None  # a second source, such as the text in which words are searched
    second_form: str = ""
    needs: frozenset[str]  # required capabilities of a model (engine/capabilities.py)
    limited: bool = True  # whether --limit applies
    options: tuple[Option, ...] = ()
    variants: str | None = None  # option --VARIANTS NAME=PATH, which computes a variant on the user's data
    # Function that computes all metrics which have it, and read the same source, in one pass.
    shared_pass: ClassVar["staticmethod[[Model, Sequence[tuple[Metric, Any]]], list[Findings]] | None"] = None

    @property
    def sources(self) -> list[str]:
        """Return the names of the data that the metric reads: one or two."""
        return [self.source, *([self.second] if self.second else [])]

    @abstractmethod
    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> MetricData:
        """Read and encode the data; called once per evaluation. Raises CorpusError."""

    @abstractmethod
    def compute(self, model: "Model", data: Any) -> Findings:
        """Evaluate one loaded checkpoint on the data that `read` returned."""

    def variant(self, name: str) -> "Metric":
        """Return the variant of this metric for the user's data `name`, if it has `variants`. Raises CorpusError."""
        raise TypeError(f"{self.name} has no variants")
