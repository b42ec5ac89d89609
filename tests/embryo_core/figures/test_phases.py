"""Tests of the table of phases, which has the stored scores at both ends of each phase."""

import pandas as pd

from embryo_core.curves.phases import Phase
from embryo_core.figures.phases import cases, change_rows
from embryo_core.types import StepUnit

PHASES = [Phase("start", 1, 1, 1, 10, 0.125), Phase("first fall", 10, 8, 12, 16, 0.5)]


def rows(metric: str, group: str, values: list[float], layer: int | None = None) -> pd.DataFrame:
    """Return scores at the steps 0, 8 and 16."""
    scores = {"metric": metric, "group": group, "layer": layer, "step": [0, 8, 16], "value": values}
    return pd.DataFrame({**scores, "n": [5, 6, 7]})


def test_changes_are_between_last_evaluated_steps() -> None:
    """The phase from step 10 to 16 has the scores of steps 8 and 16; the head is the one whose weight changes most."""
    heads = [
        rows("head_behaviour_previous", "1", [0.05, 0.05, 0.75], 2),
        rows("head_behaviour_next", "2", [0.05, 0.15, 0.1], 1),
        rows("head_behaviour_entropy", "1", [9.0, 5.0, 0.0], 1),
    ]
    table = change_rows(PHASES, pd.concat([rows("mask_prediction", "all", [0, 0.1, 0.25]), *heads]), StepUnit.UPDATES)
    assert table["Steps"].tolist() == ["1 to 10", "10 to 16"]
    assert table["Begins between"].tolist() == ["", "8 and 12"]
    assert table["Mask prediction"].tolist() == ["0.0 → 10.0 %", "10.0 → 25.0 %"]
    assert table["Head that changes most"].tolist() == ["1.2 next: 0.05 → 0.15", "2.1 previous: 0.05 → 0.75"]
    assert table["Facts"].tolist() == ["", ""]


def test_changes_of_sparsely_evaluated_runs_name_their_steps() -> None:
    """A step less than half as far as the beginning of a phase is not used; if the end is far off, steps are named."""
    scores = rows("mask_prediction", "all", [0, 0.1, 0.25]).assign(step=[0, 300, 1448])
    phases = [Phase("start", 1, 1, 1, 100, 0.1), Phase("plateau", 203, 180, 230, 1722, 0.1)]
    later = [Phase("take-off", 1722, 1500, 2000, 5000, 1.0), Phase("plateau", 1000, 900, 1100, 9000, 0.1)]
    cells = change_rows([*phases, *later], scores, StepUnit.UPDATES)["Mask prediction"].tolist()
    assert cells == ["", "10.0 → 25.0 % (steps 300 to 1,448)", "", ""]
    further = pd.concat([scores, scores[-1:].assign(step=2048, value=0.5)])
    assert (
        change_rows(later, further, StepUnit.UPDATES)["Mask prediction"].tolist()
        == ["25.0 → 50.0 % (steps 1,448 to 2,048)"] * 2
    )


def test_phases_without_scores_have_only_their_loss() -> None:
    """Cells of metrics that were not evaluated are empty."""
    table = change_rows(
        PHASES, pd.DataFrame(columns=["metric", "group", "layer", "step", "value", "n"]), StepUnit.UPDATES
    )
    assert table["Loss, nats per doubling"].tolist() == ["-0.12", "-0.50"]
    assert set(table["Mask prediction"]) == {""}


def test_cases_are_those_of_the_last_measured_step() -> None:
    """Only accuracies over all words count, unmeasured ones are left out, and the cases of a head are pieces."""
    scores = pd.concat(
        [
            rows("mask_prediction", "all", [0.0, 0.1, 0.2]),
            rows("mask_prediction", "noun", [0.0, 0.1, 0.2]).assign(n=3),
            rows("head_behaviour_next", "2", [0.05, 0.15, 0.1], 1).assign(n=40),
        ]
    )
    assert cases(scores) == {"Mask prediction": 7, "Head that changes most": 40}


def test_positions_are_shown_relative_to_words() -> None:
    """The ratio is over all positions, not a group; cosines are those of the last layer, also without positions."""
    deviations = [rows("positions_deviation", "words", [0.02, 0.1, 0.2]).assign(n=700)]
    cosines = [rows("positions_cosine", None, [0.9, 0.8, 0.7], 0), rows("positions_cosine", None, [0.3, 0.6, 0.2], 1)]
    with_positions = [*deviations, rows("positions_deviation", "positions", [0.02, 0.05, 0.15]), *cosines]
    of_group = rows("positions_deviation", "positions 0 to 63", [0.5, 0.5, 0.5])
    table = change_rows(PHASES, pd.concat([*with_positions, of_group]), StepUnit.UPDATES)
    assert table["Positions / words"].tolist() == ["1.00 → 0.50", "0.50 → 0.75"]
    assert table["Cosine, last layer"].tolist() == ["0.30 → 0.60", "0.60 → 0.20"]
    assert cases(pd.concat(with_positions)) == {"Positions / words": 7, "Cosine, last layer": 7}
    without = change_rows(PHASES, pd.concat([*deviations, *cosines]), StepUnit.UPDATES)
    assert "Positions / words" not in without and "Cosine, last layer" in without
