"""What the captions of the Overview say: what was counted, and what has been computed."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from embryo_core.types import Run
from embryo_core.words import quantity

EMBRYO = (
    "This dashboard follows one masked language model through its pretraining. Drag the time bar above, or press play: "
    "every page then shows the model at that step. This page has its losses and accuracies, and the phases of training."
)
FINDINGS = "Findings of the paper (Chiang, Huang and Lee, 2020), tested on this run:"


def training_curve(about: str, counted: str, data: pd.DataFrame) -> str:
    """The caption of one quantity of the log; `data` has the columns split, step and n of what is `counted`."""
    words = f"{about} Training: mean over the batches since the point before."
    heldout = data.loc[data["split"] == "heldout", "n"].dropna()
    if heldout.empty:
        return words
    return f"{words} Held-out: the same {int(heldout.iloc[-1]):,} {counted}, never trained on, at every checkpoint."


WEIGHTS = {  # of losses in what training minimizes, by the name of the setting
    "sentence_order_weight": "the sentence-order loss",
    "generator_weight": "the generator's loss",
    "discriminator_weight": "the discriminator's loss",
}


def weighted(config: Mapping[str, Any]) -> str:
    """The losses that training multiplies by another number than 1: "the sentence-order loss × 0.5"."""
    return ", ".join(f"{loss} × {config[name]:g}" for name, loss in WEIGHTS.items() if config.get(name, 1) != 1)


def total_loss(config: Mapping[str, Any]) -> str:
    """What the total loss sums up, and what training minimizes where that is another sum."""
    if weights := weighted(config):
        return f"Plain sum of the losses of all objectives; training minimizes it with {weights}."
    return "Sum of the losses of all objectives, which training minimizes."


def coverage(run: Run, steps: int, thinned: int, with_results: int, missing: Iterable[str]) -> str:
    """How many checkpoints there are, how many of them without weights, and whether any metric is missing at one.

    `with_results` is how many of the `thinned` ones have results.
    """
    words = f"{quantity(steps, 'checkpoint')} of {len(run.planned_steps):,} planned."
    every = "every checkpoint"
    if thinned:
        kept = "none" if not with_results else "all" if with_results == thinned else f"{with_results}"
        words += f" Without weights, hollow on the time bar: {thinned}, {kept} of them with results."
        every = "every checkpoint with weights"
    return f"{words} " + ("To compute what is missing:" if missing else f"Computed at {every}: all metrics.")


def command(run: Run, missing: Mapping[str, str]) -> str:
    """The command that computes the missing metrics, given the data that each reads: {"attention": "treebank"}."""
    data = " ".join(f"--{source} PATH" for source in dict.fromkeys(missing.values()))
    return f"python -m embryo_core evaluate {run.name} --metrics {' '.join(missing)} {data}"
