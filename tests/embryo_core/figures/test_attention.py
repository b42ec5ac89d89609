"""The attention figures hold the stored numbers."""

import numpy as np
import pandas as pd
import pytest

from embryo_core.curves.positions import POSITIONS, position_weights
from embryo_core.curves.step_scales import SCALES
from embryo_core.figures import attention as charts
from embryo_core.figures.axis import StepAxis
from embryo_core.types import StepUnit

STEPS = np.array([0, 8, 16])


@pytest.fixture
def maps() -> np.ndarray:
    """Weights [S, layers, heads, L, L] whose rows sum to one."""
    weights = np.random.default_rng(0).random((3, 2, 4, 6, 6)).astype(np.float32) ** 4
    return weights / weights.sum(axis=-1, keepdims=True)


def measured(maps: np.ndarray) -> pd.DataFrame:
    """What is stored of maps [S, L, L] of a head."""
    return pd.DataFrame({"step": STEPS} | dict(zip(POSITIONS, position_weights(maps).T, strict=True)))


def test_each_position_has_a_row_at_each_step(maps):
    """Under the name of its curve, with the number that was measured."""
    wide = measured(maps[:, 1, 2])
    frame = charts.by_position(wide).set_index(["position", "step"])["weight"]
    assert len(frame) == wide[[*POSITIONS]].size and charts.POSITIONS.keys() == {*POSITIONS}
    for position, (name, _) in charts.POSITIONS.items():
        assert frame[name].tolist() == wide[position].tolist()


@pytest.mark.parametrize("scale", SCALES)
def test_the_figure_holds_the_weights_at_their_steps(maps, scale):
    """Each line has the numbers of its position, in the order of the recorded steps."""
    frame = charts.by_position(measured(maps[:, 0, 0]))
    figure = charts.position_figure(frame, StepAxis(scale, step_unit=StepUnit.UPDATES))
    assert [line.name for line in figure.data] == [name for name, _ in charts.POSITIONS.values()]
    for line in figure.data:
        rows = frame[frame["position"] == line.name]
        assert list(line.customdata) == [0, 8, 16]
        assert list(line.y) == list(rows["weight"])


def test_the_table_of_a_step_names_every_weight(maps):
    """Each row of the download is the weight at its layer, head, from and to, counted as the page counts them."""
    table = charts.weights_table(maps[1], 8)
    assert len(table) == maps[1].size
    for row in table.sample(20, random_state=0).to_dict("records"):
        assert row["weight"] == maps[1][row["layer"] - 1, row["head"] - 1, row["from"], row["to"]]
        assert row["step"] == 8
