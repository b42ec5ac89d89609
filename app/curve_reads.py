"""Cached tables of what the curves of a page show, made of a run's scores; the chosen step changes none of them."""

import pandas as pd

from app import results
from app.caching import cached, log_state, results_state
from embryo_core.figures import probing_scores
from embryo_core.types import Run


@cached(results_state, 32)
def probes_of_layer(run: Run, layer: str | int) -> pd.DataFrame:
    """What the probes find in one layer (see `charts.probing_scores.of_layer`). Raises ResultsError."""
    return probing_scores.of_layer(results.probe_scores(run), layer)


@cached(lambda run: results_state(run) + log_state(run), 32)
def task_curves(run: Run, layer: str | int, rescaled: bool) -> pd.DataFrame:
    """The tasks in one layer over the steps (see `charts.probing_scores.task_curves`); none of a run without probes.

    Raises ResultsError.
    """
    rows = probes_of_layer(run, layer)
    return rows if rows.empty else probing_scores.task_curves(rows, results.log(run), rescaled)
