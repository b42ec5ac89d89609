"""Tests of the early signals figure: its headline, the tasks drawn first, and the three runs that it needs."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from embryo_core import comparison, results
from embryo_core.errors import FigureError
from embryo_core.figures import acquisition, tokens
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.early_signals import _read_values, clearest_tasks, common_measures, early_signals
from embryo_core.measurements import Findings, Score
from embryo_core.types import Run, StepUnit
from tests.conftest import checkpoint_at, copy_run

STEPS = (0, 8, 16)


def scored_copy(run: Run, root: Path, *values: float) -> Run:
    """Return a copy of a run with accuracies of mask prediction at STEPS."""
    own = replace(copy_run(run, root), name=root.name)
    for step, value in zip(STEPS, values, strict=True):
        results.write(
            checkpoint_at(own, step), "mask_prediction", Findings(scores=[Score("mask_prediction", value, 50, "all")])
        )
    return own


def test_headline_names_the_step_where_the_order_settles(tiny_run: Run, tmp_path: Path):
    """The order settles at step 8 in the first set of runs; in the second it is reversed at step 8."""
    early = [(0.1, 0.2, 0.3), (0.1, 0.3, 0.4), (0.2, 0.4, 0.5), (0.0, 0.5, 0.6)]
    runs = [scored_copy(tiny_run, tmp_path / f"e{i}", *values) for i, values in enumerate(early)]
    assert "mask prediction" in common_measures(runs) and common_measures(runs[:2]) == []
    figure = early_signals(runs, AxisChoice(), "mask prediction")
    assert "step 8" in figure.headline and "6 pairs" in figure.headline
    assert figure.table["n"].unique().tolist() == [4]
    late = [(0.1, 0.5, 0.3), (0.1, 0.4, 0.4), (0.2, 0.3, 0.5)]
    runs = [scored_copy(tiny_run, tmp_path / f"l{i}", *values) for i, values in enumerate(late)]
    headline = early_signals(runs, AxisChoice(), "mask prediction").headline
    assert "step 8" in headline and "-1.00" in headline


def test_steps_of_three_runs_have_no_band(tiny_run: Run, tmp_path: Path):
    """Four runs have an interval where all of them were evaluated, and none at a step that one of them lacks."""
    values = [(0.1, 0.2, 0.3), (0.1, 0.3, 0.4), (0.2, 0.4, 0.5), (0.3, 0.5, 0.6)]
    runs = [scored_copy(tiny_run, tmp_path / f"r{i}", *values[i]) for i in range(4)]
    table = comparison.early_signals({run.name: _read_values(run) for run in runs}, "mask prediction")
    table.loc[table["step"] == 0, "n"] = 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "early_signals", lambda *_: table)
        plot = early_signals(runs, AxisChoice("linear"), "mask prediction").plot
    (band,) = [trace for trace in plot.data if trace.fill]
    assert 0 not in list(band.x) and 8 in list(band.x)


def test_run_that_counts_other_steps_is_missing(tiny_run: Run, tmp_path: Path):
    """Curves and orders draw the runs whose steps are those of the first; a rank needs three such runs."""
    runs = [scored_copy(tiny_run, tmp_path / f"u{i}", 0.1, 0.2 + i / 10, 0.3 + i / 10) for i in range(4)]
    runs[3] = replace(runs[3], step_unit=StepUnit.TOKENS)
    options = {"metric": "mask_prediction", "groups": ["all"]}
    for figure in (
        early_signals(runs, AxisChoice(), "mask prediction"),
        tokens.accuracy(runs, AxisChoice(), **options),
        acquisition.acquisition(runs, AxisChoice(), **options),
    ):
        assert figure.missing == ("u3",) and figure.runs == ("u0", "u1", "u2")
    with pytest.raises(FigureError):
        early_signals(runs[1:], AxisChoice(), "mask prediction")


def test_tasks_are_sorted_by_how_early_they_rank_runs():
    """The measure itself comes first, and tasks whose curve repeats an earlier one come last."""
    rho = {"late": [0.0, 0.0, 1.0], "never": [1.0, 1.0, 0.0], "early": [0.0, 1.0, 1.0], "own": [0.0, 0.0, 0.0]}
    rho["same"] = rho["early"]
    rows = [(task, step, value) for task, values in rho.items() for step, value in zip(STEPS, values, strict=True)]
    table = pd.DataFrame(rows, columns=["task", "step", "rho"])
    assert clearest_tasks(table, "own") == ["own", "early", "late", "never", "same"]


def test_two_runs_are_too_few_for_early_signals(tiny_run: Run, tmp_path: Path):
    """The error names the measure."""
    runs = [scored_copy(tiny_run, tmp_path / str(i), 0.1, 0.2, i / 10) for i in range(2)]
    with pytest.raises(FigureError, match="mask prediction"):
        early_signals(runs, AxisChoice(), "mask prediction")
