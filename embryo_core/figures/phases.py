"""The table of a run's phases: where each begins, and what changes in it."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from embryo_core.corpora.word_groups import ALL
from embryo_core.curves.phases import Phase
from embryo_core.figures.patterns import PREFIX, WEIGHTS
from embryo_core.figures.positions import COSINE, DEVIATION, POSITIONS, WORDS
from embryo_core.types import StepUnit
from embryo_core.words import points

ACCURACIES = {
    "Reconstruction": "token_reconstruction",
    "Mask prediction": "mask_prediction",
    "Facts": "world_knowledge",
}
METRICS = (*ACCURACIES.values(), DEVIATION, COSINE, *(PREFIX + what for what in WEIGHTS))  # whose scores are needed
RATIO, SIMILARITY, HEAD = "Positions / words", "Cosine, last layer", "Head that changes most"


def changes(phases: Sequence[Phase], scores: pd.DataFrame, unit: StepUnit) -> pd.DataFrame:
    """A row per phase: its name, steps, interval, fall of the loss, and what it changes, from one end to the other.

    The latter are accuracies, the deviation of position embeddings in that of words, the mean cosine between the last
    layer's states of a sentence, the last two where they were measured, and the head that changes most.
    """
    rows, measured = [], _measured(scores)
    for number, phase in enumerate(phases):
        row = {
            "Phase": phase.name,
            "Steps" if unit == StepUnit.UPDATES else unit.capitalize(): f"{phase.start:,} to {phase.end:,}",
            "Begins between": f"{phase.earliest:,} and {phase.latest:,}" if number else "",
            "Loss, nats per doubling": f"{-phase.fall:+.2f}",
        }
        for title, table in measured.items():
            row[title] = _change(table["value"], phase, title in ACCURACIES, unit)
        rows.append(row | {HEAD: _head(scores, phase, unit)})
    return pd.DataFrame(rows)


def cases(scores: pd.DataFrame) -> dict[str, int]:
    """How many cases are behind each column of `changes`, at the last step that has it."""
    counts = {title: table["n"] for title, table in _measured(scores).items()}
    counts[HEAD] = _fixed_places(scores).set_index("step")["n"].sort_index()
    return {title: int(n.iloc[-1]) for title, n in counts.items() if len(n)}


def _measured(scores: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Value and n by step of each quantity; of accuracies also those that were not measured."""
    overall = scores[scores["group"] == ALL]
    found = {title: _by_step(overall[overall["metric"] == metric]) for title, metric in ACCURACIES.items()}
    deviations, cosines = (scores[scores["metric"] == metric] for metric in (DEVIATION, COSINE))
    positions, words = (_by_step(deviations[deviations["group"] == group]) for group in (POSITIONS, WORDS))
    if len(positions):
        found[RATIO] = positions.assign(value=positions["value"] / words["value"])
    if len(cosines):
        found[SIMILARITY] = _by_step(cosines[cosines["layer"] == cosines["layer"].max()])
    return found


def _by_step(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.set_index("step")[["value", "n"]].sort_index()


def _ends(steps: ArrayLike, phase: Phase) -> tuple[int, int] | None:
    """The evaluated steps that stand for the beginning and the end of a phase; None where they are no two.

    That is the last one up to each, or, where it is less than half as far, the first one in the phase.
    """
    steps = np.unique(steps)
    first, last = (steps[steps <= step].max(initial=-1) for step in (phase.start, phase.end))
    if not _is_near(first, phase.start):
        first = steps[steps >= phase.start].min(initial=np.iinfo(np.int64).max)
    return (int(first), int(last)) if 0 <= first < last else None


def _is_near(found: int, step: int) -> bool:
    """Whether an evaluated step up to another is at least half as far in training."""
    return found >= 0 and 2 * (found + 1) >= step + 1


def _told(ends: tuple[int, int], phase: Phase, unit: StepUnit) -> str:
    """The evaluated steps, where they are far from the ends of the phase."""
    if ends[0] <= phase.start and _is_near(ends[1], phase.end):
        return ""
    return f" ({points(*ends, unit)})"


def _change(values: pd.Series, phase: Phase, percent: bool, unit: StepUnit) -> str:
    """What a quantity, by step, is at both ends of a phase: "0.05 → 0.41", or "5.0 → 41.0 %"."""
    ends = _ends(values.index, phase)
    if ends is None:
        return ""
    first, last = (values[step] for step in ends)
    words = f"{100 * first:.1f} → {100 * last:.1f} %" if percent else f"{first:.2f} → {last:.2f}"
    return words + _told(ends, phase, unit)


def _fixed_places(scores: pd.DataFrame) -> pd.DataFrame:
    """The attention weights of every head on fixed places."""
    return scores[scores["metric"].isin([PREFIX + what for what in WEIGHTS])]


def _head(scores: pd.DataFrame, phase: Phase, unit: StepUnit) -> str:
    """The head and fixed place whose attention weight changes most: "2.5 previous: 0.05 → 0.41"."""
    rows = _fixed_places(scores)
    ends = _ends(rows["step"], phase)
    if ends is None:
        return ""
    table = rows[rows["step"].isin(ends)].pivot(index=["metric", "layer", "group"], columns="step", values="value")
    first, last = (table[step] for step in ends)
    metric, layer, head = at = (last - first).abs().idxmax()
    words = f"{int(layer)}.{head} {metric.removeprefix(PREFIX)}: {first[at]:.2f} → {last[at]:.2f}"
    return words + _told(ends, phase, unit)
