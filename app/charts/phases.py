"""The table of a run's phases: where each begins, and what changes in it."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from app.charts.patterns import PREFIX, WEIGHTS
from embryo_core.corpora.word_groups import ALL
from embryo_core.curves.phases import Phase

ACCURACIES = {
    "Reconstruction": "token_reconstruction",
    "Mask prediction": "mask_prediction",
    "Facts": "world_knowledge",
}


def changes(phases: Sequence[Phase], scores: pd.DataFrame) -> pd.DataFrame:
    """A row per phase: its name, steps, interval, the fall of the loss, and accuracies and heads from end to end."""
    rows = []
    for number, phase in enumerate(phases):
        row = {
            "Phase": phase.name,
            "Steps": f"{phase.start:,} to {phase.end:,}",
            "Begins between": f"{phase.earliest:,} and {phase.latest:,}" if number else "",
            "Loss, nats per doubling": f"{-phase.fall:+.2f}",
        }
        for title, metric in ACCURACIES.items():
            row[title] = _accuracy(scores[(scores["metric"] == metric) & (scores["group"] == ALL)], phase)
        rows.append(row | {"Head that changes most": _head(scores, phase)})
    return pd.DataFrame(rows)


def cases(scores: pd.DataFrame) -> dict[str, int]:
    """How many cases are behind each accuracy of `changes`, at the last step that has it."""
    found = {}
    for title, metric in ACCURACIES.items():
        rows = scores[(scores["metric"] == metric) & (scores["group"] == ALL)]
        if len(rows):
            found[title] = int(rows.sort_values("step")["n"].iloc[-1])
    return found


def _ends(rows: pd.DataFrame, phase: Phase) -> tuple[int, int] | None:
    """The last evaluated steps up to the beginning and the end of a phase; None where they are no two."""
    steps = np.unique(rows["step"])
    first, last = (steps[steps <= step].max(initial=-1) for step in (phase.start, phase.end))
    return (int(first), int(last)) if 0 <= first < last else None


def _accuracy(rows: pd.DataFrame, phase: Phase) -> str:
    ends = _ends(rows, phase)
    if ends is None:
        return ""
    first, last = (rows.loc[rows["step"] == step, "value"].iloc[0] for step in ends)
    return f"{100 * first:.1f} → {100 * last:.1f} %"


def _head(scores: pd.DataFrame, phase: Phase) -> str:
    """The head and fixed place whose attention weight changes most: "2.5 previous: 0.05 → 0.41"."""
    rows = scores[scores["metric"].isin([PREFIX + what for what in WEIGHTS])]
    ends = _ends(rows, phase)
    if ends is None:
        return ""
    table = rows[rows["step"].isin(ends)].pivot(index=["metric", "layer", "group"], columns="step", values="value")
    first, last = (table[step] for step in ends)
    metric, layer, head = at = (last - first).abs().idxmax()
    return f"{int(layer)}.{head} {metric.removeprefix(PREFIX)}: {first[at]:.2f} → {last[at]:.2f}"
