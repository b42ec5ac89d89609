"""The table of phases tells what stored scores were at both ends of each."""

import pandas as pd

from app.charts.phases import cases, changes
from embryo_core.curves.phases import Phase

PHASES = [Phase("start", 1, 1, 1, 10, 0.125), Phase("first fall", 10, 8, 12, 16, 0.5)]


def rows(metric: str, group: str, values: list[float], layer: int | None = None) -> pd.DataFrame:
    """Scores at the steps 0, 8 and 16."""
    return pd.DataFrame({"metric": metric, "group": group, "layer": layer, "step": [0, 8, 16], "value": values})


def test_changes_go_from_the_last_evaluated_step_before_each_end() -> None:
    """A phase from step 10 to 16 is told by the scores of steps 8 and 16; the head is the one that changed most."""
    heads = [
        rows("head_behaviour_previous", "1", [0.05, 0.05, 0.75], 2),
        rows("head_behaviour_next", "2", [0.05, 0.15, 0.1], 1),
        rows("head_behaviour_entropy", "1", [9.0, 5.0, 0.0], 1),
    ]
    table = changes(PHASES, pd.concat([rows("mask_prediction", "all", [0, 0.1, 0.25]), *heads]))
    assert table["Steps"].tolist() == ["1 to 10", "10 to 16"]
    assert table["Begins between"].tolist() == ["", "8 and 12"]
    assert table["Mask prediction"].tolist() == ["0.0 → 10.0 %", "10.0 → 25.0 %"]
    assert table["Head that changes most"].tolist() == ["1.2 next: 0.05 → 0.15", "2.1 previous: 0.05 → 0.75"]
    assert table["Facts"].tolist() == ["", ""]


def test_without_scores_a_phase_has_its_loss_alone() -> None:
    """Nothing is told of what was not evaluated."""
    table = changes(PHASES, pd.DataFrame(columns=["metric", "group", "layer", "step", "value"]))
    assert table["Loss, nats per doubling"].tolist() == ["-0.12", "-0.50"]
    assert set(table["Mask prediction"]) == {""}


def test_cases_are_those_of_the_last_step_that_has_the_accuracy() -> None:
    """An accuracy that was not measured has none; a group of words does not count."""
    scores = pd.concat(
        [
            rows("mask_prediction", "all", [0.0, 0.1, 0.2]).assign(n=[5, 6, 7]),
            rows("mask_prediction", "noun", [0.0, 0.1, 0.2]).assign(n=3),
        ]
    )
    assert cases(scores) == {"Mask prediction": 7}
