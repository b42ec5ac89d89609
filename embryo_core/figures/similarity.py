"""Similarity of states between steps or between runs: debiased linear CKA on the same words."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from embryo_core import results
from embryo_core.curves import geometry
from embryo_core.curves.scores import Floats
from embryo_core.errors import FigureError
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.curves import by_layer, curves_figure
from embryo_core.figures.figure import Caption, Figure
from embryo_core.types import Run
from embryo_core.words import count_range, name_step

METRIC = "geometry"
MIN_WORDS = 20  # least number of words that two compared runs share
MAX_STEP_RATIO = 1.25  # largest ratio of two steps that are compared
MAX_NAMED_PAIRS = 6  # largest number of pairs of steps in a caption
COLUMNS = ["layer", "step", "value", "n", "low", "high"]
DETAILS = (
    "Linear CKA is 1 if one set of states is the other one rotated and scaled, and about 0 if they have nothing in "
    "common (Kornblith et al., 2019). It is debiased, so that many dimensions do not raise it (Murphy et al., 2024). "
    "Bands: 95 % intervals of a jackknife over the words."
)
Compare = Callable[[pd.DataFrame, Floats], tuple[np.ndarray, Floats, Floats]]


def steps(run: Run) -> list[int]:
    """Return the steps whose states can be compared. Raises ResultsError."""
    return sorted(int(step) for step in results.read_gram_matrices(run, 0)["step"])


def step_up_to(run: Run, step: int) -> int | None:
    """Return the last step up to `step` whose states can be compared, or else the first one; None if there is none."""
    evaluated = steps(run)
    return max((candidate for candidate in evaluated if candidate <= step), default=min(evaluated, default=None))


def describe_steps(runs: Sequence[Run], step: int | None) -> str:
    """Return a sentence on the runs that are compared with another step than the first run; "" without any.

    A run that counts its steps in another unit is compared with its last step.
    """
    if step is None:
        return ""
    first, *others = (
        (run, step_up_to(run, step) if run.step_unit == runs[0].step_unit else max(steps(run), default=None))
        for run in runs
    )
    differing = [
        f"{run.name} with {name_step(compared, run.step_unit)}"
        for run, compared in others
        if compared is not None and (compared, run.step_unit) != (first[1], first[0].step_unit)
    ]
    return f"Compared with another step: {', '.join(differing)}." if differing else ""


def to_step(run: Run, step: int | None = None) -> pd.DataFrame:
    """Return the similarity of every layer at every step to the same layer at one step.

    That step is the last evaluated one, or `step_up_to` the given one. Columns: layer, step, value, n (words), low,
    high (95 %). Raises ResultsError.
    """

    def compare(rows: pd.DataFrame, grams: Floats) -> tuple[np.ndarray, Floats, Floats]:
        up_to = len(rows) if step is None else np.searchsorted(rows["step"], step, "right")
        return rows.index.to_numpy(), grams, grams[max(0, int(up_to) - 1)]

    return _compare_layers(run, compare)


def to_run(run: Run, other: Run) -> pd.DataFrame:
    """Return the similarity of every layer of a run to the same layer of another at the nearest step.

    Columns are those of `to_step`, and other_step (see `nearest_steps`). Empty if no steps are near. Raises FigureError
    if the runs were measured on different words or count steps in different units, and ResultsError.
    """
    word_indices, other_indices = shared_words(run, other)
    nearest = nearest_steps(steps(run), steps(other))

    def compare(rows: pd.DataFrame, grams: Floats) -> tuple[np.ndarray, Floats, Floats]:
        other_rows = results.read_gram_matrices(other, int(rows["layer"].iloc[0]))
        row_indices = {step: i for i, step in enumerate(other_rows["step"])}
        pairs = [
            (i, row_indices[nearest[step]]) for i, step in enumerate(rows["step"]) if nearest.get(step) in row_indices
        ]
        if not pairs:
            return np.zeros(0, int), grams[:0], grams[:0]
        own_rows, their_rows = map(list, zip(*pairs, strict=True))
        other_grams = geometry.unpack(other_rows["products"].iloc[their_rows].tolist(), int(other_rows["n"].iloc[0]))
        return (
            rows.index.to_numpy()[own_rows],
            _grams_of_words(grams[own_rows], word_indices),
            _grams_of_words(other_grams, other_indices),
        )

    table = _compare_layers(run, compare)
    return table.assign(other_step=table["step"].map(nearest))


def nearest_steps(first: Sequence[int], second: Sequence[int]) -> dict[int, int]:
    """Match the steps of two runs: each of a pair is nearest to the other, with a ratio below MAX_STEP_RATIO."""
    if not first or not second:
        return {}
    own_steps, other_steps = (np.array(run_steps, float) + 1 for run_steps in (first, second))
    distances = np.abs(np.log(own_steps[:, None] / other_steps))  # [first, second]
    pairs = zip(first, distances.argmin(axis=1), strict=True)
    return {
        step: second[j]
        for i, (step, j) in enumerate(pairs)
        if distances[:, j].argmin() == i and distances[i, j] < np.log(MAX_STEP_RATIO)
    }


def _compare_layers(run: Run, compare: Compare) -> pd.DataFrame:
    """Return the similarities of all layers.

    `compare` returns which rows of a layer are compared, and the Gram matrices of both sides.
    """
    tables = []
    for _, rows in results.read_gram_matrices(run).groupby("layer"):
        grams = geometry.unpack(rows["products"].tolist(), int(rows["n"].iloc[0]))
        compared_rows, first, second = compare(rows, grams)
        value, low, high = geometry.cka_interval(first, second)
        table = rows.loc[compared_rows, ["layer", "step"]].assign(value=value, n=first.shape[-1], low=low, high=high)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)[COLUMNS] if tables else pd.DataFrame(columns=COLUMNS)


def shared_words(run: Run, other: Run) -> tuple[list[int], list[int]]:
    """Return the indices of the common words in two runs' samples.

    Raises FigureError if the runs count steps in different units or share fewer than MIN_WORDS words, and ResultsError.
    """
    if run.step_unit != other.step_unit:
        raise FigureError(
            f"Run '{run.name}' counts steps in {run.step_unit}, and '{other.name}' in {other.step_unit}; compare runs "
            "with the same unit."
        )
    ours, theirs = (results.read_sources(each_run).get(METRIC, {}) for each_run in (run, other))
    if not theirs:
        raise FigureError(f"The geometry of the states of run '{other.name}' has not been measured yet.")
    words = [[tuple(word) for word in record.get("compared", [])] for record in (ours, theirs)]
    other_indices = {word: i for i, word in enumerate(words[1])} if ours.get("sha256") == theirs.get("sha256") else {}
    index_pairs = [(i, other_indices[word]) for i, word in enumerate(words[0]) if word in other_indices]
    if len(index_pairs) < MIN_WORDS:
        raise FigureError(
            f"Runs '{run.name}' and '{other.name}' were measured on different words; evaluate the geometry of both on "
            "the same treebank."
        )
    return [own for own, _ in index_pairs], [their for _, their in index_pairs]


def _grams_of_words(grams: Floats, word_indices: list[int]) -> Floats:
    """Return the Gram matrices of some of the words, U-centred over these words."""
    selected_grams = grams[:, word_indices][:, :, word_indices]
    if len(word_indices) == grams.shape[-1]:
        return selected_grams
    return np.stack([geometry.u_centre(gram) for gram in selected_grams])


def between(runs: Sequence[Run], axis: AxisChoice, other: str) -> Figure:
    """Return the figure of the similarity of the first run's layers to those of run `other`, at the nearest steps."""
    run, second = runs[0], next(candidate for candidate in runs if candidate.name == other)

    def caption(rows: pd.DataFrame) -> Caption:
        return Caption(
            f"Each layer of {run.name} compared with the same layer of {other}, on the same words.",
            f"{_name_steps(rows, other)} {DETAILS} A line for each layer of both; n = {count_range(rows['n'])} words.",
            hint="Click a point for its layer and step.",
        )

    return curves_figure(
        [run],
        axis,
        lambda candidate: to_run(candidate, second),
        by_layer(y_title="CKA", metric=METRIC, decimals=".3f", unit="words"),
        f"geometry-{other}",
        f"Similarity of the states of {run.name} and {other}",
        caption,
    )


def _name_steps(rows: pd.DataFrame, other: str) -> str:
    """Return a sentence on the compared steps, which names those that differ."""
    pairs = rows[["step", "other_step"]].drop_duplicates().itertuples(index=False)
    differing = [f"{their:,} instead of {ours:,}" for ours, their in pairs if ours != their]
    if not differing:
        return "At the steps of both."
    more = f" and {len(differing) - MAX_NAMED_PAIRS} more" if len(differing) > MAX_NAMED_PAIRS else ""
    return (
        f"At the nearest steps of both; those of {other} that differ: {', '.join(differing[:MAX_NAMED_PAIRS])}{more}."
    )
