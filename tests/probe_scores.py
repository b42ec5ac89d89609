"""Stored scores of probes in three layers at four steps, and a training log."""

import pandas as pd

STEPS = [0, 1, 8, 700]
F1 = {  # two tasks of the paper and one of the user, three layers
    ("srl", 0): [0.30, 0.30, 0.40, 0.40],
    ("srl", 1): [0.30, 0.40, 0.60, 0.50],
    ("srl", 2): [0.30, 0.50, 0.50, 0.60],
    ("mine", 0): [0.20, 0.20, 0.20, 0.30],
    ("mine", 1): [0.10, 0.20, 0.30, 0.30],
    ("mine", 2): [0.20, 0.20, 0.40, 0.30],
    ("pos", 0): [0.50, 0.50, 0.60, 0.60],
    ("pos", 1): [0.50, 0.60, 0.80, 0.70],
    ("pos", 2): [0.40, 0.60, 0.70, 0.80],
}
N = {"pos": 400, "srl": 100, "mine": 50}
LOG = pd.DataFrame(
    {
        "split": ["heldout", "train", "heldout"],
        "step": [0, 4, 8],
        "masked_lm_accuracy": [0.0, 0.1, 0.2],
        "n_masked": [900, None, 900],
    }
)


def stored_scores() -> pd.DataFrame:
    """Return scores as the store gives them, among those of other metrics; the user's task has no control."""
    rows = [("mask_prediction", step, None, "noun", 0.5, 10) for step in STEPS]
    for (task, layer), values in F1.items():
        rows += [("edge_probing_f1", step, layer, task, value, N[task]) for step, value in zip(STEPS, values)]
        if task != "mine":
            rows += [("edge_probing_control", step, layer, task, 0.25, N[task]) for step in STEPS]
    rows += [("edge_probing_majority", step, None, task, 0.2, N[task]) for step in STEPS for task in N]
    frame = pd.DataFrame(rows, columns=["metric", "step", "layer", "group", "value", "n"])
    return frame.astype({"layer": "Int64"})
