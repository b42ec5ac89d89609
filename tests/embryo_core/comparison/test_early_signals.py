"""Tests of early signals: ranks of runs at a step against their final ranks, computed in pairs and by scipy."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from embryo_core.comparison import early_signals

STEPS = [0, 8, 16]


def runs(by_step: np.ndarray, last: list[float]) -> dict[str, dict[str, pd.Series]]:
    """Return runs with a measure at STEPS, [runs, steps], and a task that ends at `last`."""
    return {
        f"run{i}": {"accuracy": pd.Series(row, STEPS), "task": pd.Series([0.0, end], [0, 99])}
        for i, (row, end) in enumerate(zip(by_step, last, strict=True))
    }


def test_correlation_compares_early_with_final_ranks():
    """The final ranks are those of a task or of the measure itself, which agrees perfectly at its last step."""
    values = np.random.default_rng(2).random((6, 3))
    last = values[:, 1].round(1).tolist()
    table = early_signals(runs(values, last), "accuracy").set_index(["task", "step"])
    for i, step in enumerate(STEPS):
        row = table.loc["task", step]
        assert row["rho"] == pytest.approx(spearmanr(values[:, i], last)[0])
        assert row["low"] < row["rho"] < row["high"] and row["n"] == 6
        pairs = [(a, b) for a, b in combinations(range(6), 2) if last[a] != last[b]]
        right = [(values[a, i] < values[b, i]) == (last[a] < last[b]) for a, b in pairs]
        assert (row["agree"], row["pairs"]) == (pytest.approx(np.mean(right)), len(pairs))
    assert table.loc[("accuracy", 16), ["rho", "agree"]].tolist() == pytest.approx([1, 1])


def test_three_runs_have_the_widest_interval_and_two_none():
    """Steps at which all runs are equal are left out, and a pair that ties at the end does not count."""
    three = runs(np.array([[0.1, 0.1, 0.1], [0.1, 0.2, 0.3], [0.1, 0.3, 0.4]]), [0.5, 0.5, 0.6])
    table = early_signals(three, "accuracy").set_index(["task", "step"])
    assert table.loc[("task", 8), ["low", "high", "n", "pairs"]].tolist() == [-1, 1, 3, 2]
    assert 0 not in table.loc["task"].index  # all runs are equal there
    assert early_signals(dict([*three.items()][:2]), "accuracy").empty


def test_runs_without_the_task_are_left_out():
    """The remaining runs are compared at the steps that all of them have."""
    four = runs(np.random.default_rng(4).random((5, 3)), [0.1, 0.2, 0.3, 0.4, 0.5])
    del four["run0"]["task"]
    four["run1"]["accuracy"] = four["run1"]["accuracy"][[0, 16]]
    rows = early_signals(four, "accuracy")
    assert rows[rows["task"] == "task"]["step"].tolist() == [0, 16]
    assert set(rows[rows["task"] == "task"]["n"]) == {4} and set(rows[rows["task"] == "accuracy"]["n"]) == {5}
