"""The attention figures hold the stored numbers, and what travels to the browser can be read back."""

import json

import numpy as np
import pytest

from app.charts import attention as charts
from app.charts.step_axis import StepAxis
from app.components import head_maps
from embryo_core.curves import SCALES

STEPS = np.array([0, 8, 16])


@pytest.fixture
def maps() -> np.ndarray:
    """Weights [S, layers, heads, L, L] whose rows sum to one."""
    weights = np.random.default_rng(0).random((3, 2, 4, 6, 6)).astype(np.float32) ** 4
    return weights / weights.sum(axis=-1, keepdims=True)


def read(payload: bytes) -> tuple[dict, bytes]:
    """Header and body of a payload, as the browser reads them."""
    length = int.from_bytes(payload[:4], "little")
    return json.loads(payload[4 : 4 + length]), payload[4 + length :]


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


@pytest.mark.parametrize("scale", SCALES)
def test_the_figure_holds_the_weights_at_their_steps(maps, scale):
    """Each line has the numbers of its place, in the order of the recorded steps."""
    frame = charts.place_weights(STEPS, maps[:, 0, 0])
    figure = charts.place_figure(frame, StepAxis(8, scale))
    assert [line.name for line in figure.data] == list(charts.PLACES)
    for line in figure.data:
        rows = frame[frame["place"] == line.name]
        assert list(line.customdata) == [0, 8, 16]
        assert list(line.y) == list(rows["weight"])


def test_a_history_travels_to_the_digit(maps):
    """The large map's weights arrive as stored, with the facts that the drawing needs."""
    history = maps[:, 1, 3]
    payload = head_maps.history_payload({"run": "tiny", "layer": 2, "head": 4}, STEPS, history)
    header, body = read(payload)
    assert header["steps"] == [0, 8, 16]
    assert header["size"] == 6
    assert header["max"] == history.max()
    assert np.array_equal(np.frombuffer(body, "<f4").reshape(history.shape), history)


def test_the_grid_keeps_each_weight_within_its_stated_error(maps):
    """Every code of the grid stands for the weight at its step, layer, head and place to 1.4 %, or for less than 1/1000."""
    header, body = read(head_maps.grid_payload("tiny", STEPS, maps))
    picture = np.frombuffer(body, np.uint8).reshape(3, 2 * 6, 4 * 6).astype(float)
    share = np.where(picture == 0, 0, 10 ** (header["decades"] * ((picture - 1) / 254 - 1)))
    for layer in range(2):
        for head in range(4):
            exact = maps[:, layer, head] / maps[:, layer, head].max()
            got = share[:, layer * 6 : layer * 6 + 6, head * 6 : head * 6 + 6]
            large = exact >= 0.001
            assert np.abs(got / np.where(large, exact, 1) - 1)[large].max() < 0.014
            assert got[~large].max(initial=0) <= 0.00101
            assert header["largest"][layer][head] == pytest.approx(maps[:, layer, head].max(), abs=1e-6)


def test_a_head_without_any_weight_is_drawn_dark():
    """Maps of zeros give codes of zero, not a division by zero."""
    _, body = read(head_maps.grid_payload("tiny", STEPS, np.zeros((3, 1, 1, 4, 4), np.float32)))
    assert set(body) == {0}


def test_long_maps_are_averaged_over_blocks():
    """A map of 70 positions becomes one of 23, each the mean of 3 x 3 weights; the last position is left out."""
    weights = np.random.default_rng(1).random((70, 70)).astype(np.float32)
    small = head_maps.shrink(weights, 32)
    assert small.shape == (23, 23)
    assert small[1, 2] == pytest.approx(weights[3:6, 6:9].mean())
    assert np.array_equal(head_maps.shrink(weights[:32, :32], 32), weights[:32, :32])


def test_the_table_of_a_step_names_every_weight(maps):
    """Each row of the download is the weight at its layer, head, from and to, counted as the page counts them."""
    table = charts.weights_table(maps[1], 8)
    assert len(table) == maps[1].size
    for row in table.sample(20, random_state=0).to_dict("records"):
        assert row["weight"] == maps[1][row["layer"] - 1, row["head"] - 1, row["from"], row["to"]]
        assert row["step"] == 8
