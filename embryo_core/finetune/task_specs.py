"""Specifications of downstream tasks: the texts, labels and metrics of GLUE, and fine-tuning settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from embryo_core.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np

SQUAD = "squad"


def results_name(task: str, seed: int | str) -> str:
    """Return the name under which the results of a task and seed are stored, with one part per step."""
    return f"finetuning:{task}:{seed}"


def is_task_name(task: str) -> bool:
    """Return whether a task may have this name: letters, digits, "_" and "-" only, so that it is never a path."""
    return task.replace("-", "").replace("_", "").isalnum()


# === Tasks ===


@dataclass(frozen=True)
class TaskSpec:
    """A task over one or two texts, a regression if it has no labels. The first metric is the task's score."""

    texts: tuple[str, ...]  # columns of the texts
    metrics: tuple[str, ...]
    labels: tuple[str, ...] = ("0", "1")
    keys: tuple[int | str, ...] = ()  # values of the label column, one per label; () for 0, 1, ...
    validation: str = "validation"  # name of the split that is scored
    from_mnli: bool = False  # the paper starts from the checkpoint's own weights after MNLI


PAIR_COLUMNS = ("sentence1", "sentence2")
GLUE = {  # the tasks of the paper's Table 6, which leaves out WNLI
    "cola": TaskSpec(("sentence",), ("matthews",), ("unacceptable", "acceptable")),
    "sst2": TaskSpec(("sentence",), ("accuracy",), ("negative", "positive")),
    "mrpc": TaskSpec(PAIR_COLUMNS, ("f1", "accuracy"), ("not_equivalent", "equivalent"), from_mnli=True),
    "stsb": TaskSpec(PAIR_COLUMNS, ("spearman", "pearson"), labels=(), from_mnli=True),
    "qqp": TaskSpec(("question1", "question2"), ("f1", "accuracy"), ("not_duplicate", "duplicate")),
    "mnli": TaskSpec(
        ("premise", "hypothesis"),
        ("accuracy",),
        ("entailment", "neutral", "contradiction"),
        validation="validation_matched",
    ),
    "qnli": TaskSpec(("question", "sentence"), ("accuracy",), ("entailment", "not_entailment")),
    "rte": TaskSpec(PAIR_COLUMNS, ("accuracy",), ("entailment", "not_entailment"), from_mnli=True),
}
# Text columns that a user's task may have: pairs before single texts, each in the order of GLUE.
TEXT_COLUMNS = tuple(sorted(dict.fromkeys(spec.texts for spec in GLUE.values()), key=len, reverse=True))


def validation_split(task: str) -> str:
    """Return the name of the split of a task that is scored."""
    return GLUE[task].validation if task in GLUE else "validation"


# === Settings of the two protocols ===


@dataclass(frozen=True)
class TuningSettings:
    """Hyperparameters of AdamW for one task; the learning rate rises linearly in warm-up, then falls linearly to 0."""

    learning_rate: float  # at the peak
    batch: int  # examples per batch
    updates: int
    warmup: int  # updates
    length: int  # pieces of a sequence; longer ones are truncated
    dropout: float = 0.0  # of the encoder, on states and on attention weights
    classifier_dropout: float = 0.1


# Table 14 of Lan et al. (2020, https://arxiv.org/abs/1909.11942). Every number was checked against two reprints (the
# docstring of FLAML's `get_albert_space`, and a later paper that fine-tunes ALBERT); GLUE's learning rates, batches,
# updates, warm-ups and lengths also against run_glue.sh of google-research/albert (commit 557c37b). Table 7 of Chiang,
# Huang and Lee was not available. SQuAD is trained for two epochs of the 87,599 examples of version 1.1, or three of
# the 130,319 of version 2.0.
PAPER_SETTINGS = {
    "cola": TuningSettings(1e-5, 16, 5336, 320, 512),
    "stsb": TuningSettings(2e-5, 16, 3598, 214, 512),
    "sst2": TuningSettings(1e-5, 32, 20935, 1256, 512),
    "mnli": TuningSettings(3e-5, 128, 10000, 1000, 512),
    "qnli": TuningSettings(1e-5, 32, 33112, 1986, 512),
    "qqp": TuningSettings(5e-5, 128, 14000, 1000, 512, dropout=0.1),
    "rte": TuningSettings(3e-5, 32, 800, 200, 512, dropout=0.1),
    "mrpc": TuningSettings(2e-5, 32, 800, 200, 512),
    "squad": TuningSettings(5e-5, 48, 3649, 365, 384),
}
PAPER_UNANSWERABLE = TuningSettings(3e-5, 48, 8144, 814, 512)  # SQuAD 2.0

QUICK_BATCH = 32  # examples
QUICK_EPOCHS = 2  # at most, see the next two limits
QUICK_UPDATES = 2000  # at most; tasks with over 32,000 examples get less than two epochs
QUICK_PIECES = 4_000_000  # at most, over all updates; with sequences of 128 pieces, about 1,000 updates
QUICK_LENGTH = 128  # pieces of a sequence
QUICK_RATES = (1e-4, 2e-4, 4e-4, 8e-4)  # small models need larger rates than the paper's
PROTOCOLS = ("quick", "paper")


def paper_settings(task: str, unanswerable: bool = False) -> TuningSettings:
    """Return the paper's settings of a task, with `unanswerable` those of SQuAD 2.0.

    Raises ConfigError for tasks that the paper does not have.
    """
    if task not in PAPER_SETTINGS:
        raise ConfigError(
            f"Protocol 'paper' has no settings for the task '{task}', only for {', '.join(PAPER_SETTINGS)}; use "
            "--protocol quick."
        )
    return PAPER_UNANSWERABLE if unanswerable else PAPER_SETTINGS[task]


def quick_settings(lengths: "np.ndarray", learning_rate: float) -> TuningSettings:
    """Return the quick protocol's settings for training sequences of these lengths [n], in pieces."""
    affordable = int(QUICK_PIECES / (QUICK_BATCH * lengths.mean()))
    updates = min(QUICK_EPOCHS * -(-len(lengths) // QUICK_BATCH), QUICK_UPDATES, affordable)
    return TuningSettings(learning_rate, QUICK_BATCH, updates, updates // 10, QUICK_LENGTH)


@dataclass(frozen=True)
class RateChoice:
    """The quick protocol's learning rate of a task, and how each candidate scored on held-out training data."""

    learning_rate: float
    step: int  # step of the checkpoint on which the rates were tried
    tried: dict[float, float]  # learning rate -> score
    losses: dict[float, float] = field(default_factory=dict)  # learning rate -> loss, without diverged candidates

    @property
    def is_tied(self) -> bool:
        """Return whether several learning rates share the best score."""
        return [*self.tried.values()].count(max(self.tried.values())) > 1

    @property
    def summary(self) -> dict[str, Any]:
        """Return the choice as entries of sources.json."""
        entry = {"rate_step": self.step, "rates": _by_name(self.tried)}
        return entry | ({"rate_losses": _by_name(self.losses)} if self.losses else {})

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Self | None:
        """Read the choice from an entry of sources.json; None if it is missing or damaged."""
        try:
            scores, losses = _by_rate(entry["rates"]), _by_rate(entry.get("rate_losses", {}))
            return cls(float(entry["learning_rate"]), entry["rate_step"], scores, losses) if scores else None
        except (KeyError, TypeError, ValueError, AttributeError):
            return None


def _by_rate(entries: Mapping[str, Any]) -> dict[float, float]:
    return {float(rate): float(value) for rate, value in entries.items()}


def _by_name(values: Mapping[float, float]) -> dict[str, float]:
    return {f"{rate:g}": value for rate, value in values.items()}
