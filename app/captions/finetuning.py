"""What the captions of the Finetuning page say: what was trained and scored, and beside what."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from app.captions.markdown import literal
from app.charts.finetuning import METRICS, label

CURVE = (
    "Each line is one fine-tuning of this checkpoint: its mean loss in training since the point before, and its score "
    "in development after every epoch."
)
ASSOCIATIONS = (
    "Spearman's correlation, over the steps, of each task's score with the accuracy on masked words of held-out text: "
    "near 1, the pretraining number tells which step does better at the task."
)


def scores(frame: pd.DataFrame, sources: Mapping[str, Mapping[str, Any]]) -> str:
    """What the curves are: metrics, development examples, seeds, controls, and how the models were tuned."""
    counted = "; ".join(
        f"{literal(label(task))}: {METRICS[rows['metric'].iloc[0]]} on {rows['n'].max():,} examples"
        for task, rows in frame.groupby("task", sort=False)
    )
    most = int(frame["seeds"].max())
    seeds = f"Bands span up to {most} seeds, lines are their mean" if most > 1 else "A single seed: no spread is known"
    own = [noted for name, noted in sources.items() if _is_of(name, frame)]
    protocols = " and ".join(sorted({str(noted.get("protocol", "unknown")) for noted in own}))
    return (
        f"The whole model of each checkpoint, fine-tuned and scored in development (protocol {literal(protocols)}). "
        f"{counted}. {seeds}. The large marker is the best step. Dashed: a control that reads no text; step 0, random "
        "weights fine-tuned the same way, is the other."
    )


def _is_of(name: str, frame: pd.DataFrame) -> bool:
    return name.startswith("finetuning:") and name.split(":")[1] in set(frame["task"])


def table(average: pd.DataFrame) -> str:
    """How to read the table, and the average over GLUE's tasks with which they are."""
    words = (
        "95 % and 99 %: the first step at which the score is at least that share of its last value, with a 95 % "
        "interval from 400 draws of the development examples. Click a row to look behind a task."
    )
    if average.empty:
        return words
    last = average.iloc[-1]
    return f"{words} GLUE average at step {last['step']:,}: {last['value']:.3f}, over {last['tasks']}."


def examples(table: pd.DataFrame, listed: pd.DataFrame, seed: int) -> str:
    """How many examples had which history, and what the table shows."""
    counted = ", ".join(f"{count:,} {name}" for name, count in table["history"].value_counts().items())
    return (
        f"Development examples by their row in the validation file, with what each step answered (seed {seed}); labels "
        f"are counted from 0. Of {len(table):,}: {counted}; {len(listed):,} are listed. Learned: right from some step "
        "on; forgotten: right over one stretch of steps only, then wrong; oscillating: right over several stretches."
    )
