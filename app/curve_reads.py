"""Cached tables of what the curves of a page show, made of a run's scores; the chosen step changes none of them."""

import pandas as pd

from app import results
from app.caching import cached, log_state, results_state
from embryo_core.compare import Rule, acquisition
from embryo_core.figures import patterns, probing_scores, tokens
from embryo_core.figures.smoothing import with_smoothed
from embryo_core.types import Run

WORDS_PREDICTED = ("mask_prediction", "token_reconstruction")  # the most frequent word is a baseline of these alone


@cached(results_state, 64)
def token_curves(run: Run, metric: str, groups: tuple[str, ...], rescaled: bool) -> pd.DataFrame:
    """A metric's accuracy in some categories over the steps (see `charts.tokens.curves`). Raises ResultsError."""
    return tokens.curves(results.scores(run, metric), groups, rescaled)


@cached(results_state, 64)
def token_curves_drawn(
    run: Run, metric: str, groups: tuple[str, ...], rescaled: bool, window: int = 1
) -> pd.DataFrame:
    """`token_curves` smoothed over a window, with baselines where the metric predicts words. Raises ResultsError."""
    data = with_smoothed(token_curves(run, metric, groups, rescaled), "shown", window, ["group"])
    if data.empty or metric not in WORDS_PREDICTED:
        return data
    return tokens.with_baselines(data, results.baselines_of_words(run, metric), rescaled)


@cached(results_state, 64)
def token_order(run: Run, metric: str, groups: tuple[str, ...], rule: Rule = "half") -> pd.DataFrame:
    """When these categories were acquired (see `compare.acquisition`). Raises ResultsError."""
    return acquisition(token_curves(run, metric, groups, rescaled=False), rule)


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


@cached(results_state, 16)
def head_curve(run: Run, what: str, layer: int, head: int) -> pd.DataFrame:
    """How clearly a head shows a pattern over the steps (see `charts.patterns.of_pattern`). Raises ResultsError."""
    rows = patterns.of_pattern(results.head_scores(run), what)
    return rows[(rows["layer"] == layer) & (rows["head"] == head)]
