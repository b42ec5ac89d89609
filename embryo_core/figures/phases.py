"""The table of a run's phases: when each begins, and what changes in it."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from embryo_core import results
from embryo_core.curves.phases import MIN_SPEED_RATIO, RESAMPLE_COUNT, Phase
from embryo_core.figures.figure import Caption, sentences
from embryo_core.figures.overview import training_phases
from embryo_core.figures.patterns import PREFIX, WEIGHTS
from embryo_core.figures.positions import COSINE, DEVIATION, POSITIONS, WORDS
from embryo_core.groups import ALL
from embryo_core.types import Run, StepUnit
from embryo_core.words import name_step_range

ACCURACIES = {
    "Reconstruction": "token_reconstruction",
    "Mask prediction": "mask_prediction",
    "Next-word prediction": "next_word_prediction",
    "Facts": "world_knowledge",
}
# metrics that the table needs
PHASE_METRICS = (*ACCURACIES.values(), DEVIATION, COSINE, *(PREFIX + pattern for pattern in WEIGHTS))
RATIO, SIMILARITY, HEAD = "Positions / words", "Cosine, last layer", "Head that changes most"
NO_PHASES = Caption("No phases can be distinguished: the loss on words does not turn, or has too few measurements.")


def phase_changes(run: Run) -> tuple[pd.DataFrame, Caption]:
    """Return the table of a run's phases and the changes in each, and its caption. Raises ResultsError."""
    phases = training_phases(run)
    if not phases:
        return pd.DataFrame(), NO_PHASES
    scores = results.read_scores(run, PHASE_METRICS, categories=True)
    return change_rows(phases, scores, run.step_unit), describe_phases(phases, cases(scores))


def describe_phases(phases: Sequence[Phase], cases: Mapping[str, int]) -> Caption:
    """Return the caption: how phases are found, and the columns with n of each."""
    return Caption(
        "Phases are the stretches between breakpoints of lines fitted to the loss on words over the logarithm of "
        "the step.",
        sentences(
            f"“Begins between” is the 95 % interval of a breakpoint, from {RESAMPLE_COUNT} fits with random signs of "
            "the residuals (wild bootstrap), widened to the measured steps on both sides. It does not cover other "
            f"seeds. In falls and take-offs the loss falls by over {MIN_SPEED_RATIO:g} times as much per doubling as "
            "over the whole run; in the other phases it falls by less. Each change is between two evaluated steps: "
            "the last one up to the beginning of the phase and the last one up to its end; if they are far from "
            f"these, they are named. “{HEAD}” is the one whose weight changed most. “{RATIO}” is the standard "
            f"deviation of the position embeddings divided by that of the words; “{SIMILARITY}” is the mean cosine "
            "between the states of two pieces of a sentence.",
            ""
            if any(phase.name == "take-off" for phase in phases)
            else "Nothing takes off in this run: no fast fall follows a plateau.",
            "docs/metrics.md has the rules.",
        ),
        " ".join(f"{title}: n = {n:,}." for title, n in cases.items()),
    )


def change_rows(phases: Sequence[Phase], scores: pd.DataFrame, unit: StepUnit) -> pd.DataFrame:
    """Return a row for each phase: name, steps, interval, fall of the loss, and changes from its start to its end.

    These are the changes of accuracies, of the head that changes most and, if measured, of two more quantities: the
    deviation of position embeddings divided by the deviation of word embeddings, and the mean cosine between the last
    layer's states of a sentence.
    """
    rows, measures, head_rows = [], _read_measures(scores), _select_weights(scores)
    for number, phase in enumerate(phases):
        row = {
            "Phase": phase.name,
            "Steps" if unit == StepUnit.UPDATES else unit.capitalize(): f"{phase.start:,} to {phase.end:,}",
            "Begins between": f"{phase.earliest:,} and {phase.latest:,}" if number else "",
            "Loss, nats per doubling": f"{-phase.fall:+.2f}",
        }
        for title, table in measures.items():
            row[title] = _at_ends(
                table.index, phase, unit, partial(_format_change, table["value"], title in ACCURACIES)
            )
        rows.append(row | {HEAD: _at_ends(head_rows["step"], phase, unit, partial(_describe_head, head_rows))})
    return pd.DataFrame(rows)


def cases(scores: pd.DataFrame) -> dict[str, int]:
    """Return n of each column of `changes`, at the last step at which it was measured."""
    counts = {title: table["n"] for title, table in _read_measures(scores).items()}
    counts[HEAD] = _select_weights(scores).set_index("step")["n"].sort_index()
    return {title: int(n.iloc[-1]) for title, n in counts.items() if len(n)}


def _read_measures(scores: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return value and n by step of each quantity.

    Accuracies that apply to the kind of model are kept even if they are empty; the ratio and the cosine only if
    measured.
    """
    overall_scores = scores[scores["group"] == ALL]
    measures = {
        title: _by_step(overall_scores[overall_scores["metric"] == metric]) for title, metric in ACCURACIES.items()
    }
    is_decoder = len(measures["Next-word prediction"]) > 0
    for title in ("Reconstruction", "Mask prediction") if is_decoder else ("Next-word prediction",):
        if measures[title].empty:
            del measures[title]
    deviations, cosines = (scores[scores["metric"] == metric] for metric in (DEVIATION, COSINE))
    positions, words = (_by_step(deviations[deviations["group"] == group]) for group in (POSITIONS, WORDS))
    if len(positions):
        measures[RATIO] = positions.assign(value=positions["value"] / words["value"])
    if len(cosines):
        measures[SIMILARITY] = _by_step(cosines[cosines["layer"] == cosines["layer"].max()])
    return measures


def _by_step(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.set_index("step")[["value", "n"]].sort_index()


def _ends(steps: ArrayLike, phase: Phase) -> tuple[int, int] | None:
    """Return the last evaluated steps up to the start and up to the end of a phase; None if they are the same.

    If the first of them is less than half as far in training as the start, the first evaluated step after the start
    replaces it.
    """
    steps = np.unique(steps)
    first, last = (steps[steps <= step].max(initial=-1) for step in (phase.start, phase.end))
    if not _is_near(first, phase.start):
        first = steps[steps >= phase.start].min(initial=np.iinfo(np.int64).max)
    return (int(first), int(last)) if 0 <= first < last else None


def _is_near(reference: int, step: int) -> bool:
    """Return whether `reference`, which is -1 or a step up to `step`, is at least half as far in training."""
    return reference >= 0 and 2 * (reference + 1) >= step + 1


def _at_ends(steps: ArrayLike, phase: Phase, unit: StepUnit, describe: Callable[[int, int], str]) -> str:
    """Return `describe` of the evaluated steps of a phase (see `_ends`); "" if it does not have two.

    The text names the steps if they are far from the ends of the phase.
    """
    ends = _ends(steps, phase)
    if ends is None:
        return ""
    starts_near = ends[0] <= phase.start and _is_near(ends[1], phase.end)
    return describe(*ends) + ("" if starts_near else f" ({name_step_range(*ends, unit)})")


def _format_change(values: pd.Series, is_percent: bool, first: int, last: int) -> str:
    """Return the change of a quantity between two steps: "0.05 → 0.41", or "5.0 → 41.0 %"."""
    if is_percent:
        return f"{100 * values[first]:.1f} → {100 * values[last]:.1f} %"
    return f"{values[first]:.2f} → {values[last]:.2f}"


def _select_weights(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the attention weights of every head in the patterns WEIGHTS."""
    return scores[scores["metric"].isin([PREFIX + pattern for pattern in WEIGHTS])]


def _describe_head(rows: pd.DataFrame, first: int, last: int) -> str:
    """Return the head and pattern whose attention weight changes most, as "2.5 previous: 0.05 → 0.41"."""
    ends = rows[rows["step"].isin((first, last))]
    table = ends.pivot(index=["metric", "layer", "group"], columns="step", values="value")
    metric, layer, head = index = (table[last] - table[first]).abs().idxmax()
    return f"{int(layer)}.{head} {metric.removeprefix(PREFIX)}: {_format_change(table.loc[index], False, first, last)}"
