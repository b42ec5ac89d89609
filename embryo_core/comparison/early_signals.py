"""Early signals: how well a measure at an early step predicts the final ranking of several runs on a task.

Magnusson et al. (2025), "DataDecide: How to Predict Best Pretraining Data with Small Experiments", ask this question
of small runs, and count the pairs of runs in the right order.
"""

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pandas as pd

from embryo_core.curves.agreement import MIN_ITEMS, rank_agreement, spearman

MIN_RUNS = 3  # fewest runs whose ranking is compared
COLUMNS = "task step rho low high n agree pairs".split()
Values = Mapping[str, pd.Series]  # measure -> a run's values by step


def early_signals(runs: Mapping[str, Values], measure: str) -> pd.DataFrame:
    """Compare the ranking of `runs` by a measure at each step with their ranking by the last value of each task.

    Columns: task, step, rho (Spearman's) with its 95 % interval low to high, n (runs), agree (the share of pairs of
    runs in the same order; a pair tied at this step counts as half), pairs (of runs with different last values). A task
    has rows if at least three runs have the task, and the measure at common steps. Runs without the task are left out,
    and so are steps at which all runs are equal. With three runs, the interval of rho is -1 to 1.
    """
    rows = []
    for task in dict.fromkeys(name for values in runs.values() for name in values):
        run_values = [values for values in runs.values() if measure in values and task in values]
        if len(run_values) < MIN_RUNS:
            continue
        last = [float(values[task].iloc[-1]) for values in run_values]
        for step in sorted(set.intersection(*(set(values[measure].index) for values in run_values))):
            current = [float(values[measure][step]) for values in run_values]
            agreement = rank_agreement(current, last) if len(run_values) >= MIN_ITEMS else None
            rho = agreement.rho if agreement else spearman(current, last)
            if rho is not None:
                ends = (agreement.low, agreement.high) if agreement else (-1.0, 1.0)
                pairs = [(i, j) for i, j in combinations(range(len(last)), 2) if last[i] != last[j]]
                agree = [(np.sign(current[i] - current[j]) * np.sign(last[i] - last[j]) + 1) / 2 for i, j in pairs]
                rows.append((task, step, rho, *ends, len(run_values), float(np.mean(agree)), len(pairs)))
    return pd.DataFrame(rows, columns=COLUMNS)
