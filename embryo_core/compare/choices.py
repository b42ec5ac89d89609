"""What a choice of design changed: every accuracy of one run less that of another, at the last step that both have."""

from collections.abc import Iterator

import pandas as pd

from embryo_core import results, runs
from embryo_core.corpora.word_groups import ALL
from embryo_core.curves import difference_interval
from embryo_core.types import Run

MEASURES = {  # scores of all cases together
    "mask prediction": "mask_prediction",
    "token reconstruction": "token_reconstruction",
    "world knowledge": "world_knowledge",
}
PROBES = "edge_probing_f1"
COLUMNS = ["measure", "step", "first", "second", "difference", "low", "high", "n_first", "n_second"]


def differences(first: Run, second: Run) -> pd.DataFrame:
    """Each accuracy of `second` less that of `first`, with Newcombe's 95 % interval, at the last step of both.

    Columns: measure, step, first, second, difference, low, high, n_first, n_second; but for the measure all are missing
    where the runs have no step of it in common. Raises ResultsError, BrokenRun.
    """
    one, two = dict(_measures(first)), dict(_measures(second))
    rows = []
    for measure in dict.fromkeys([*one, *two]):
        steps = one[measure].index.intersection(two[measure].index) if measure in one and measure in two else []
        if not len(steps):
            rows.append((measure, *[None] * 8))
            continue
        (a, n), (b, m) = (one[measure].loc[steps.max()], two[measure].loc[steps.max()])
        low, high = difference_interval(b, a, m, n_second=n)
        rows.append((measure, int(steps.max()), a, b, b - a, float(low), float(high), int(n), int(m)))
    return pd.DataFrame(rows, columns=COLUMNS)


def _measures(run: Run) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each measure of a run: value and n by step; a probing task in the layer that is best at each step."""
    log = pd.DataFrame(runs.read_log(run))
    if {"masked_lm_accuracy", "n_masked"} <= set(log):
        heldout = log[(log["split"] == "heldout") & (log["n_masked"] > 0)]
        yield "masked accuracy", heldout.set_index("step")[["masked_lm_accuracy", "n_masked"]]
    scores = results.read_scores(run)
    for measure, metric in MEASURES.items():
        rows = scores[(scores["metric"] == metric) & (scores["group"] == ALL)]
        if len(rows):
            yield measure, rows.set_index("step")[["value", "n"]]
    probes = scores[scores["metric"] == PROBES]
    for task, rows in probes.groupby("group"):
        best = rows.loc[rows.groupby("step")["value"].idxmax()]
        yield f"probing: {task}", best.set_index("step")[["value", "n"]]
