"""Opening sentences name the values of their tables, whatever the run."""

import pandas as pd

from embryo_core.figures.captions import openings
from embryo_core.types import StepUnit


def test_probing_names_the_tasks_that_gain_most_and_least() -> None:
    """A single task is named alone."""
    best = pd.DataFrame({"task": ["pos", "pos", "my_task", "my_task"], "step": [0, 16] * 2, "f1": [0.5, 0.9, 0.6, 0.7]})
    sentence = openings.probing(best, {"pos": "part of speech"}, StepUnit.UPDATES)
    assert sentence.endswith("most for part of speech (0.50 to 0.90) and least for my\\_task (0.60 to 0.70).")
    assert openings.probing(best[best["task"] == "pos"], {}, StepUnit.UPDATES).endswith(
        "layer changes for pos (0.50 to 0.90)."
    )
    one = openings.probing(best[best["step"] == 16], {}, StepUnit.UPDATES)
    assert one == "At step 16, F1 in the best layer is highest for pos (0.90) and lowest for my\\_task (0.70)."


def test_compare_tells_the_agreement_of_its_run() -> None:
    """With interval and n: with another run before the paper, of others only without it; nothing where none is told."""
    ends = {"low": 0.2, "high": 0.97, "n": 9}
    pairs = [("one", "two", 0.5), ("one", "the paper", 0.8), ("two", "the paper", 0.9)]
    rows = pd.DataFrame([{"first": first, "second": second, "rho": rho, **ends} for first, second, rho in pairs])
    said = openings.compare(rows, "one")
    assert "one and two" in said and "rank correlation of 0.50 (95 % interval 0.20 to 0.97, n = 9)" in said
    assert "one and the paper" in openings.compare(rows[1:], "one")
    assert "two and the paper" in openings.compare(rows[2:], "one")
    assert openings.compare(rows.assign(rho=None), "one") == ""
