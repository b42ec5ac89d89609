"""The attention figures hold the stored numbers."""

import numpy as np
import pytest

from app.charts import attention as charts

STEPS = np.array([0, 8, 16])


@pytest.fixture
def maps() -> np.ndarray:
    """Weights [S, layers, heads, L, L] whose rows sum to one."""
    weights = np.random.default_rng(0).random((3, 2, 4, 6, 6)).astype(np.float32) ** 4
    return weights / weights.sum(axis=-1, keepdims=True)


def test_each_place_is_the_mean_of_its_entries(maps):
    """The four curves are the means that their formulas state, entry by entry."""
    history = maps[:, 1, 2]
    frame = charts.place_weights(STEPS, history).set_index(["place", "step"])["weight"]
    for s, step in enumerate(STEPS):
        a = history[s]
        expected = {
            "same position": np.mean([a[i, i] for i in range(6)]),
            "previous position": np.mean([a[i, i - 1] for i in range(1, 6)]),
            "next position": np.mean([a[i, i + 1] for i in range(5)]),
            "first position, [CLS]": np.mean([a[i, 0] for i in range(1, 6)]),
        }
        for place, mean in expected.items():
            assert frame[place, step] == pytest.approx(mean, rel=1e-6)


@pytest.mark.parametrize("log", [True, False])
def test_the_figure_holds_the_weights_at_their_steps(maps, log):
    """Each line has the numbers of its place, in the order of the recorded steps."""
    frame = charts.place_weights(STEPS, maps[:, 0, 0])
    figure = charts.place_figure(frame, 8, log)
    assert [line.name for line in figure.data] == list(charts.PLACES)
    for line in figure.data:
        rows = frame[frame["place"] == line.name]
        assert list(line.customdata) == [0, 8, 16]
        assert list(line.y) == list(rows["weight"])


def test_the_table_of_a_step_names_every_weight(maps):
    """Each row of the download is the weight at its layer, head, from and to, counted as the page counts them."""
    table = charts.weights_table(maps[1], 8)
    assert len(table) == maps[1].size
    for row in table.sample(20, random_state=0).to_dict("records"):
        assert row["weight"] == maps[1][row["layer"] - 1, row["head"] - 1, row["from"], row["to"]]
        assert row["step"] == 8
