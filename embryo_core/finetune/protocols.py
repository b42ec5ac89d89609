"""How a checkpoint is fine-tuned: the paper's settings of every task, and quick ones for small models on a CPU."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from embryo_core.errors import ConfigError


@dataclass(frozen=True)
class Settings:
    """One task's settings. AdamW; the learning rate rises along a line during warm-up and falls along one to 0."""

    learning_rate: float  # at its highest
    batch: int  # examples
    updates: int
    warmup: int  # updates
    length: int  # pieces of a sequence; longer ones are cut
    dropout: float = 0.0  # in the encoder, on states and on attention weights
    classifier_dropout: float = 0.1


# Table 14 of Lan et al. (2020, https://arxiv.org/abs/1909.11942), compared in every number with two reprints (the
# docstring of FLAML's `get_albert_space`, and a later paper that fine-tunes ALBERT); GLUE's learning rates, batches,
# updates, warm-ups and lengths also with run_glue.sh of google-research/albert (commit 557c37b). Table 7 of Chiang,
# Huang and Lee was not at hand. SQuAD's updates are two epochs of its 87,599 examples in version 1.1, three of the
# 130,319 in 2.0.
PAPER = {
    "cola": Settings(1e-5, 16, 5336, 320, 512),
    "stsb": Settings(2e-5, 16, 3598, 214, 512),
    "sst2": Settings(1e-5, 32, 20935, 1256, 512),
    "mnli": Settings(3e-5, 128, 10000, 1000, 512),
    "qnli": Settings(1e-5, 32, 33112, 1986, 512),
    "qqp": Settings(5e-5, 128, 14000, 1000, 512, dropout=0.1),
    "rte": Settings(3e-5, 32, 800, 200, 512, dropout=0.1),
    "mrpc": Settings(2e-5, 32, 800, 200, 512),
    "squad": Settings(5e-5, 48, 3649, 365, 384),
}
PAPER_UNANSWERABLE = Settings(3e-5, 48, 8144, 814, 512)  # of SQuAD 2.0

QUICK_BATCH = 32
QUICK_EPOCHS = 2
QUICK_UPDATES = 2000  # at most: tasks of over 32,000 examples are seen less than twice
QUICK_PIECES = 4_000_000  # that all updates together read, at most: half as many updates for texts of 128 pieces
QUICK_LENGTH = 128
QUICK_RATES = (1e-4, 2e-4, 4e-4, 8e-4)  # small models need larger ones than the paper's
PROTOCOLS = ("quick", "paper")


def paper(task: str, unanswerable: bool = False) -> Settings:
    """The paper's settings of a task; `unanswerable` for SQuAD 2.0. Raises ConfigError for a task it does not have."""
    if task not in PAPER:
        raise ConfigError(
            f"Protocol 'paper' has no settings for the task '{task}', only for {', '.join(PAPER)}; use --protocol "
            "quick."
        )
    return PAPER_UNANSWERABLE if unanswerable else PAPER[task]


def quick(lengths: np.ndarray, learning_rate: float) -> Settings:
    """The quick settings for training sequences of these lengths [n], in pieces."""
    affordable = int(QUICK_PIECES / (QUICK_BATCH * lengths.mean()))
    updates = min(QUICK_EPOCHS * -(-len(lengths) // QUICK_BATCH), QUICK_UPDATES, affordable)
    return Settings(learning_rate, QUICK_BATCH, updates, updates // 10, QUICK_LENGTH)


# === The learning rate of the quick protocol ===


@dataclass(frozen=True)
class Choice:
    """The learning rate of a task, and what each came to that was tried at that step, on training data held out."""

    learning_rate: float
    step: int
    tried: dict[float, float]  # scores
    losses: dict[float, float] = field(default_factory=dict)  # where training did not diverge

    @property
    def is_tied(self) -> bool:
        """Whether several learning rates have the best score."""
        return [*self.tried.values()].count(max(self.tried.values())) > 1

    @property
    def summary(self) -> dict[str, Any]:
        """What sources.json notes of it."""
        noted = {"rate_step": self.step, "rates": _by_name(self.tried)}
        return noted | ({"rate_losses": _by_name(self.losses)} if self.losses else {})

    @classmethod
    def of(cls, noted: Mapping[str, Any]) -> Self | None:
        """The choice that sources.json notes; None where it notes none."""
        try:
            tried, losses = _by_rate(noted["rates"]), _by_rate(noted.get("rate_losses", {}))
            return cls(float(noted["learning_rate"]), noted["rate_step"], tried, losses) if tried else None
        except (KeyError, TypeError, ValueError, AttributeError):
            return None


def _by_rate(noted: Mapping[str, Any]) -> dict[float, float]:
    return {float(rate): float(value) for rate, value in noted.items()}


def _by_name(values: Mapping[float, float]) -> dict[str, float]:
    return {f"{rate:g}": value for rate, value in values.items()}
