"""What the captions of the Overview say: what was counted, and what has been computed."""

from collections.abc import Iterable, Mapping

import pandas as pd

from embryo_core.types import Run

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


def coverage(run: Run, steps: int, thinned: int, missing: Iterable[str]) -> str:
    """How many checkpoints there are, how many of them without weights, and whether any metric is missing at one."""
    words = f"{steps} checkpoints of {len(run.planned_steps)} planned."
    every = "every checkpoint"
    if thinned:
        words += f" {thinned} have lost their weights and kept their results: they are hollow on the time bar."
        every = "every checkpoint with weights"
    return f"{words} " + ("To compute what is missing:" if missing else f"Computed at {every}: all metrics.")


def command(run: Run, missing: Mapping[str, str]) -> str:
    """The command that computes the missing metrics, given the data that each reads: {"attention": "treebank"}."""
    data = " ".join(f"--{source} PATH" for source in dict.fromkeys(missing.values()))
    return f"python -m embryo_core evaluate {run.name} --metrics {' '.join(missing)} {data}"
