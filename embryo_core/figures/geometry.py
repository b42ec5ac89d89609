"""Geometry of states over pretraining: the dimensions and the shape of a sample of words in each layer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from embryo_core import results
from embryo_core.curves.turns import Stretch, stretches
from embryo_core.errors import FigureError
from embryo_core.figures import cells, similarity
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.curves import by_layer, curves_figure
from embryo_core.figures.figure import Caption, Figure, data_note, sentences
from embryo_core.types import Run
from embryo_core.words import count_range, layer_name, name_step

METRIC = "geometry"


@dataclass(frozen=True)
class Measure:
    """A measure of states: its name, what it means, and how its values are written."""

    label: str
    definition: str
    details: str
    form: str  # Python's format of a value


MEASURES = {
    "rank_me": Measure(
        "Effective rank",
        "Effective rank: the number of dimensions over which the states spread (RankMe; Garrido et al., 2023).",
        "The exponential of the entropy of their singular values. It is at most the number of words or of dimensions.",
        ".1f",
    ),
    "participation": Measure(
        "Participation ratio",
        "Participation ratio: the number of directions with a large part of the variance (Gao et al., 2017).",
        "The squared sum of the eigenvalues of the covariance, divided by the sum of their squares.",
        ".1f",
    ),
    "alpha": Measure(
        "Alpha",
        "Alpha: how fast the eigenvalues of the covariance decay (alpha-ReQ; Agrawal et al., 2022).",
        "The i-th eigenvalue is about proportional to i^−alpha, fitted from rank 11 to 100. High: few "
        "directions have all the variance. States with fewer than 20 directions have none.",
        ".2f",
    ),
    "anisotropy": Measure(
        "Anisotropy",
        "Anisotropy: the mean cosine between the states of two different words (Ethayarajh, 2019).",
        "Near 1, all states point in one direction; at 0, in all.",
        ".3f",
    ),
    "dimension": Measure(
        "Intrinsic dimension",
        "Intrinsic dimension: that of the surface on which the states are (TwoNN; Facco et al., 2017).",
        "Estimated from the distances to the two nearest states. Of equal states one is kept; n counts distinct ones.",
        ".1f",
    ),
    "cka_below": Measure(
        "Similarity to the layer below",
        "Similarity to the layer below: linear CKA of the states of the same words, debiased (Murphy et al., 2024).",
        "1: the layer only rotates and scales the states; about 0: nothing of their arrangement is left.",
        ".3f",
    ),
    "cka_step": Measure(
        "Similarity to a step",
        "Similarity to a step: each layer compared with itself at that step, on the same words.",
        similarity.DETAILS,
        ".3f",
    ),
}


def measure_table(run: Run, measure: str, to: int | None = None) -> pd.DataFrame:
    """Return layer, step, value, n of a measure, sorted; "cka_step" compares with step `to`. Raises ResultsError."""
    if measure == "cka_step":
        return similarity.to_step(run, to)
    scores = results.read_scores(run, f"{METRIC}_{measure}")
    rows = scores[["layer", "step", "value", "n"]].astype({"layer": int})
    return rows.sort_values(["layer", "step"], ignore_index=True)


def measured(run: Run) -> list[str]:
    """Return the names of the MEASURES in the results of a run; none is computed. Raises ResultsError."""
    stored = {name: len(results.read_scores(run, f"{METRIC}_{name}")) for name in MEASURES if name != "cka_step"}
    stored["cka_step"] = len(similarity.steps(run))
    return [name for name in MEASURES if stored[name]]


def layers(
    runs: Sequence[Run], axis: AxisChoice, measure: str, bold: int | None = None, to: int | None = None
) -> Figure:
    """Return the figure of a measure over the steps, a curve for each layer; the layer `bold` is thick."""
    run, spec = runs[0], MEASURES[measure]

    def caption(rows: pd.DataFrame) -> Caption:
        n = (rows["n"] / rows.get("seeds", 1)).astype(int)  # the n of a mean over seeds is a sum
        emphasis_note = "" if bold is None else f"; thick: {layer_name(bold)}"
        return Caption(
            spec.definition,
            sentences(
                spec.details,
                f"A line for each layer, embeddings included{emphasis_note}.",
                similarity.describe_steps(runs, to) if measure == "cka_step" else "",
            ),
            f"Words: {data_note(run, METRIC, 'a sample')}, the same at every step; n = {count_range(n)}.",
            "Click a point for its layer and step.",
        )

    figure = curves_figure(
        runs,
        axis,
        lambda line_run: measure_table(line_run, measure, to if line_run.step_unit == run.step_unit else None),
        by_layer(bold, y_title=spec.label.lower(), metric=METRIC, decimals=spec.form, unit="words"),
        f"geometry-{measure}",
        f"{_name_measure(run, measure, to)}, layer by layer",
        caption,
    )
    if measure != "rank_me":
        return figure
    return replace(figure, headline=headline(figure.first_table, axis.for_run(run, runs)))


def _name_measure(run: Run, measure: str, to: int | None) -> str:
    """Return the name of a measure, with the step to which it compares."""
    if measure != "cka_step":
        return MEASURES[measure].label
    step = None if to is None else similarity.step_up_to(run, to)
    return f"Similarity to {'the last step' if step is None else name_step(step, run.step_unit)}"


def rank_stretches(run: Run) -> list[Stretch]:
    """Return where the effective rank of the last layer grows and "compresses" (Li et al., 2025, arXiv 2509.23024)."""
    return _find_stretches(_last_layer(measure_table(run, "rank_me")))


def _last_layer(rows: pd.DataFrame) -> pd.Series:
    """Return the values of the highest layer by step."""
    return rows[rows["layer"] == rows["layer"].max()].set_index("step")["value"].sort_index()


def _find_stretches(ranks: pd.Series) -> list[Stretch]:
    return stretches([int(step) for step in ranks.index], ranks.to_numpy())


def headline(rows: pd.DataFrame, axis: StepAxis) -> str:
    """Return a sentence on how the effective rank of the last layer grows and shrinks."""
    ranks = _last_layer(rows)
    start = f"The effective rank of the last layer is {ranks.iloc[0]:.0f} at {axis.step_in_unit(int(ranks.index[0]))}"
    if len(ranks) == 1:
        return f"{start}, the only evaluated one."
    verbs = {"grows": "grows", "compresses": "falls"}
    moves = [
        f"{verbs[stretch.name]} to {ranks[stretch.end]:.0f} by {axis.step_in_unit(stretch.end)}"
        for stretch in _find_stretches(ranks)
    ]
    if not moves:
        return f"{start} and changes by less than a tenth."
    return f"{start}, {', '.join(moves[:-1])}{' and ' if len(moves) > 1 else ''}{moves[-1]}."


def heat_map(runs: Sequence[Run], axis: AxisChoice, measure: str, layer: int, to: int | None = None) -> Figure:
    """Return the heat map of a measure of the first run, layer by step; `layer` at the chosen step is outlined."""
    run, spec = runs[0], MEASURES[measure]
    rows = measure_table(run, measure, to)
    if rows.empty:
        raise FigureError(f"Run '{run.name}' has no {spec.label.lower()} of its states.")
    name, title = f"{run.name}-geometry-{measure}-map", f"{_name_measure(run, measure, to)}, layer by step"
    curves = by_layer(y_title=spec.label, metric=METRIC, decimals=spec.form, unit="words")
    return cells.layer_map(runs, axis, rows, layer, curves, name, title)
