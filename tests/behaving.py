"""Stored scores of four attention heads at four steps."""

import pandas as pd

STEPS = [0, 8, 16, 700]
PREVIOUS = {  # of each layer and head, at each step
    (1, 1): [0.10, 0.10, 0.12, 0.11],
    (1, 2): [0.10, 0.20, 0.10, 0.40],  # rises, falls back, and rises permanently
    (2, 1): [0.02, 0.07, 0.30, 0.30],
    (2, 2): [0.50, 0.40, 0.30, 0.20],
}


def behaviour_scores() -> pd.DataFrame:
    """Return scores as the store reads them: the weight on the previous token, entropy, one link, and the baseline."""
    rows = []
    for (layer, head), values in PREVIOUS.items():
        for step, value in zip(STEPS, values):
            here = {"step": step, "layer": layer, "group": str(head), "n": 50}
            rows.append(here | {"metric": "head_behaviour_previous", "value": value})
            rows.append(here | {"metric": "head_behaviour_entropy", "value": 3 - 2 * value})
            rows.append(here | {"metric": "head_behaviour_dependent_to_head", "value": value, "n": 40})
    for step in STEPS:
        rows.append({"metric": "head_behaviour_fixed_offset", "step": step, "group": "+1", "value": 0.3, "n": 40})
    return pd.DataFrame(rows).astype({"layer": "Int64", "metric": "category", "group": "category"})
