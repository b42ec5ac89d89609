"""What the captions of the Fine-tuning page say: what was trained and scored, and the controls."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from app.captions.markdown import literal
from app.charts.finetuning import COLUMNS, METRICS, label, published
from embryo_core.finetune.forms import GLUE, SQUAD

CURVE = (
    "One line per fine-tuning of this checkpoint: the mean training loss since the point before, and the score on the "
    "development set after every epoch."
)
ASSOCIATIONS = (
    "Spearman's correlation, over the steps, of each task's score with the accuracy on masked words of held-out text: "
    "near 1, steps with a higher accuracy on masked words also score higher on the task."
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
    lines = any(published(task, rows) is not None for task, rows in frame.groupby("task"))
    albert = " Dashes and dots: ALBERT-base, version 1, as google-research/albert published it." if lines else ""
    return (
        f"Each checkpoint, fine-tuned as a whole and scored on the development set (protocol {literal(protocols)}). "
        f"{counted}. {seeds}. The large marker is the best step. Dashed: a control that reads no text. Step 0, "
        f"random weights fine-tuned in the same way, is another control.{albert}"
    )


def _is_of(name: str, frame: pd.DataFrame) -> bool:
    return name.startswith("finetuning:") and name.split(":")[1] in set(frame["task"])


def table(average: pd.DataFrame) -> str:
    """How to read the table; the average over GLUE's tasks, and which tasks these are."""
    words = (
        "95 % and 99 %: the first step at which the score is at least that share of its last value, with a 95 % "
        "interval from 400 bootstrap samples of the development examples. Click a row to see a task in detail."
    )
    if average.empty:
        return words
    last = average.iloc[-1]
    return f"{words} GLUE average at step {last['step']:,}: {last['value']:.3f}, over {last['tasks']}."


def examples(task: str, table: pd.DataFrame, listed: pd.DataFrame, seed: int, with_texts: bool) -> str:
    """What the table shows, how many examples had which history, and where their texts are."""
    by = "the id of their question" if task == SQUAD else "their row in the validation file"
    steps = sum(not isinstance(column, str) for column in table)
    which = "each step" if steps <= COLUMNS else f"the chosen step and {COLUMNS} of the {steps:,} steps"
    words = f"Development examples by {by}, with what {which} answered (seed {seed})."
    if "history" in table:
        counted = ", ".join(f"{count:,} {name}" for name, count in table["history"].value_counts().items())
        words += (
            f" Of {len(table):,}: {counted}; {len(listed):,} are listed. Learned: right from some step on; forgotten: "
            "right over one stretch of steps only, then wrong; oscillating: right over several stretches."
        )
    if task == SQUAD:
        words += " Right is an exact match" + (
            "." if with_texts else "; each step's column holds F1, as the paragraphs are not at hand."
        )
    return words if with_texts else f"{words} {_where_texts(task)}"


def _where_texts(task: str) -> str:
    """Where the texts are searched for; the results do not hold them."""
    folder = f"corpora/glue/{task}" if task in GLUE else f"corpora/{task}"
    fetched = "`python -m embryo_core fetch {}`".format("glue" if task in GLUE else SQUAD)
    how = f"{fetched} brings them" if task in (*GLUE, SQUAD) else "put them there"
    return (
        "Their texts are not in the results: they are shown where the data that they were scored on are in "
        f"{literal(folder)} of a data folder; {how}."
    )
