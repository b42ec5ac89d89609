"""Similarity of states to those of another step or another run: debiased linear CKA on the same words."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from embryo_core import results
from embryo_core.curves import geometry
from embryo_core.curves.scores import Floats
from embryo_core.errors import FigureError
from embryo_core.figures import style
from embryo_core.figures.axis import Axis
from embryo_core.figures.curves import Curves, curves_figure
from embryo_core.figures.figure import Caption, Figure, sentences
from embryo_core.types import Run
from embryo_core.words import layer_name, span

METRIC = "geometry"
MIN_WORDS = 20  # that two runs share
COLUMNS = ["layer", "step", "value", "n", "low", "high"]
DETAILS = (
    "Linear CKA is 1 if one set of states is the other one turned and scaled, and about 0 if they have nothing in "
    "common (Kornblith et al., 2019). It is debiased, so that many dimensions do not raise it (Murphy et al., 2024). "
    "Bands: 95 % intervals of a jackknife over the words."
)
Compare = Callable[[pd.DataFrame, Floats], tuple[np.ndarray, Floats, Floats]]


def steps(run: Run) -> list[int]:
    """Return the steps whose states can be compared. Raises ResultsError."""
    return sorted(int(step) for step in results.read_grams(run, 0)["step"])


def to_step(run: Run, step: int | None = None) -> pd.DataFrame:
    """Return the similarity of every layer at every step to itself at one: the last up to `step`, by default the last.

    Columns: layer, step, value, n (words), low, high (95 %). Raises ResultsError.
    """

    def compare(rows: pd.DataFrame, grams: Floats) -> tuple[np.ndarray, Floats, Floats]:
        up_to = len(rows) if step is None else np.searchsorted(rows["step"], step, "right")
        return rows.index.to_numpy(), grams, grams[max(0, int(up_to) - 1)]

    return _table(run, compare)


def to_run(run: Run, other: Run) -> pd.DataFrame:
    """Return the similarity of every layer of a run to the same layer of another at the same step.

    Columns are those of `to_step`; there are none if the runs share no step. Raises FigureError if they were measured
    on other words, and ResultsError.
    """
    here, there = shared_words(run, other)

    def compare(rows: pd.DataFrame, grams: Floats) -> tuple[np.ndarray, Floats, Floats]:
        theirs = results.read_grams(other, int(rows["layer"].iloc[0]))
        both, own, their = np.intersect1d(rows["step"], theirs["step"], return_indices=True)
        if not len(both):
            return own, grams[:0], grams[:0]
        second = geometry.unpack(theirs["products"].iloc[their].tolist(), int(theirs["n"].iloc[0]))
        return rows.index.to_numpy()[own], _of_words(grams[own], here), _of_words(second, there)

    return _table(run, compare)


def _table(run: Run, compare: Compare) -> pd.DataFrame:
    """Return the rows of all layers; `compare` returns those of a layer that are compared, and both grams."""
    parts = []
    for _, rows in results.read_grams(run).groupby("layer"):
        grams = geometry.unpack(rows["products"].tolist(), int(rows["n"].iloc[0]))
        kept, first, second = compare(rows, grams)
        value, low, high = geometry.cka_interval(first, second)
        part = rows.loc[kept, ["layer", "step"]].assign(value=value, n=first.shape[-1], low=low, high=high)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)[COLUMNS] if parts else pd.DataFrame(columns=COLUMNS)


def shared_words(run: Run, other: Run) -> tuple[list[int], list[int]]:
    """Return the places in two runs' samples of the words that both compare. Raises FigureError, ResultsError."""
    ours, theirs = (results.read_sources(one).get(METRIC, {}) for one in (run, other))
    if not theirs:
        raise FigureError(f"The geometry of the states of run '{other.name}' has not been measured yet.")
    words = [[tuple(word) for word in one.get("compared", [])] for one in (ours, theirs)]
    known = {word: place for place, word in enumerate(words[1])} if ours.get("sha256") == theirs.get("sha256") else {}
    both = [(place, known[word]) for place, word in enumerate(words[0]) if word in known]
    if len(both) < MIN_WORDS:
        raise FigureError(
            f"Runs '{run.name}' and '{other.name}' were measured on other words; evaluate geometry of both on the same "
            "treebank."
        )
    return [own for own, _ in both], [their for _, their in both]


def _of_words(grams: Floats, places: list[int]) -> Floats:
    """Return the grams of some of the words, U-centred over these."""
    chosen = grams[:, places][:, :, places]
    return np.stack([geometry.u_centre(each) for each in chosen]) if len(places) < grams.shape[-1] else chosen


CURVES = Curves(
    by="layer",
    label=layer_name,
    styles=style.layer_styles,
    y_title="CKA",
    tickformat="",
    decimals=".3f",
    unit="words",
    height=420,
)


def between(runs: Sequence[Run], axis: Axis, other: str) -> Figure:
    """Return the similarity of the first run's layers to those of the run named `other`, at the steps of both.

    Raises FigureError if they share no words or no steps, and ResultsError.
    """
    run, second = runs[0], next(one for one in runs if one.name == other)
    return curves_figure(
        [run],
        axis,
        lambda one: to_run(one, second),
        CURVES,
        f"{run.name}-geometry-{other}",
        f"Similarity of the states of {run.name} and {other}",
        lambda rows: Caption(
            f"Each layer of {run.name} compared with the same layer of {other} at the same step, on the same words.",
            sentences(DETAILS, f"A line for each layer of both; n = {span(rows['n'])} words."),
            hint="Click a point for its layer and step.",
        ),
        METRIC,
    )
