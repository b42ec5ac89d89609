"""What travels to the attention maps of the browser can be read back, and is what every other renderer draws."""

import json

import numpy as np
import pytest
from plotly import colors

from embryo_core.browser import head_maps
from embryo_core.browser.head_maps import MAPS
from embryo_core.curves import step_scales
from embryo_core.share import HeadHistory, map_style
from embryo_core.types import StepUnit

STEPS = np.array([0, 8, 16])
LARGE = np.full((24, 16, 128, 128), 1 / 128, np.float32)  # the maps of a step


@pytest.fixture
def maps() -> np.ndarray:
    """Weights [S, layers, heads, L, L] whose rows sum to one."""
    weights = np.random.default_rng(0).random((3, 2, 4, 6, 6)).astype(np.float32) ** 4
    return weights / weights.sum(axis=-1, keepdims=True)


def read(payload: bytes) -> tuple[dict, bytes]:
    """Header and body of a payload, as the browser reads them."""
    length = int.from_bytes(payload[:4], "little")
    return json.loads(payload[4 : 4 + length]), payload[4 + length :]


def test_a_history_travels_to_the_digit(maps):
    """The large map's weights arrive as stored, with the facts that the drawing needs."""
    history = HeadHistory("tiny", 2, 4, "Attention weights", STEPS, maps[:, 1, 3], step_unit=StepUnit.UPDATES)
    header, body = read(head_maps.history_payload(history, "log", "file"))
    assert header["steps"] == [0, 8, 16] and header["name"] == "file"
    assert (header["run"], header["layer"], header["head"]) == ("tiny", 2, 4)
    assert header["maximum"] == history.weights.max()
    assert np.array_equal(np.frombuffer(body, "<f4").reshape(3, 6, 6), history.weights)


@pytest.mark.parametrize("scale", step_scales.SCALES)
def test_the_browser_gets_the_style_of_all_renderers(maps, scale):
    """Colours, decades, margins, labels and legend arrive as Python has them, in the large map and in the grid."""
    history = HeadHistory("tiny", 2, 4, "Attention weights", STEPS, maps[:, 1, 3], step_unit=StepUnit.UPDATES)
    header, _ = read(head_maps.history_payload(history, scale, "file"))
    style = json.loads(json.dumps(map_style.drawing(history, scale)))
    assert {name: header[name] for name in style} == style
    grid, _ = read(head_maps.grid_payload("tiny", head_maps.grid(STEPS, maps), unit=StepUnit.UPDATES))
    assert grid["colours"] == style["colours"] == map_style.colours().tolist()
    assert grid["decades"] == map_style.DECADES


def test_the_colours_are_those_of_plotly():
    """The figures of the page use Plotly's scale of the same name."""
    stops = [colors.hex_to_rgb(stop) for stop in colors.sequential.Viridis]
    assert np.array_equal(map_style.VIRIDIS, stops)


def test_the_grid_keeps_each_weight_within_its_stated_error(maps):
    """A code of the grid is the weight of its step, head and positions to 1.4 %, or for less than 0.1 %."""
    header, body = read(head_maps.grid_payload("tiny", head_maps.grid(STEPS, maps), unit=StepUnit.UPDATES))
    picture = np.frombuffer(body, np.uint8).reshape(3, 2 * 6, 4 * 6).astype(float)
    share = np.where(picture == 0, 0, 10 ** (header["decades"] * ((picture - 1) / 254 - 1)))
    for layer in range(2):
        for head in range(4):
            exact = maps[:, layer, head] / maps[:, layer, head].max()
            got = share[:, layer * 6 : layer * 6 + 6, head * 6 : head * 6 + 6]
            large = exact >= 0.001
            assert np.abs(got / np.where(large, exact, 1) - 1)[large].max() < 0.014
            assert got[~large].max(initial=0) <= 0.00101
            assert header["maxima"][layer][head] == pytest.approx(maps[:, layer, head].max(), abs=1e-6)


def test_a_head_without_any_weight_is_drawn_dark():
    """Maps of zeros give codes of zero, not a division by zero."""
    _, body = read(
        head_maps.grid_payload(
            "tiny", head_maps.grid(STEPS, np.zeros((3, 1, 1, 4, 4), np.float32)), unit=StepUnit.UPDATES
        )
    )
    assert set(body) == {0}


def test_the_grid_knows_where_the_colours_of_each_head_end(maps):
    """At the percentile of the large map's; and at one of all heads together, where the reader shares it."""
    header, _ = read(head_maps.grid_payload("tiny", head_maps.grid(STEPS, maps), unit=StepUnit.UPDATES))
    for layer, head in np.ndindex(2, 4):
        history = HeadHistory("tiny", layer + 1, head + 1, "", STEPS, maps[:, layer, head], step_unit=StepUnit.UPDATES)
        assert header["ends"][layer][head] == pytest.approx(map_style.end_of(history))
        assert header["peaks"][layer][head] == pytest.approx(history.maximum)
    assert header["shared_end"] == pytest.approx(np.percentile(maps, map_style.CLIP))


def test_a_step_that_is_added_is_a_grid_of_its_own(maps):
    """Its maps are those of a grid of this step alone, under the name of the run's grid."""
    header, body = read(head_maps.added_payload("tiny", 8, maps[1], 4.5))
    alone, codes = read(head_maps.grid_payload("tiny", head_maps.grid([8], maps[1:2]), unit=StepUnit.UPDATES))
    assert body == codes
    assert {name: header[name] for name in ("name", "peaks", "maxima")} == {
        name: alone[name] for name in ("name", "peaks", "maxima")
    }
    assert (header["step"], header["at"]) == (8, 4.5)
    assert read(head_maps.added_payload("tiny", 8, maps[1]))[0]["at"] == 8
    assert read(head_maps.added_payload("tiny")) == ({"name": alone["name"], "step": None, "at": None}, b"")


def test_a_large_model_over_a_long_series_stays_within_20_megabytes():
    """24 layers of 16 heads, sentences of 128 pieces: what one more step adds, at as many steps as a page has.

    And another step of the time bar brings a seventh of it: the grid stays in the browser.
    """

    def sizes(steps: int) -> tuple[int, int]:
        weights = np.stack([LARGE] * steps)
        at = np.arange(steps)
        history = HeadHistory("large", 1, 1, "Attention weights", at, weights[:, 0, 0], step_unit=StepUnit.UPDATES)
        grid = head_maps.grid_payload("large", head_maps.grid(at, weights), unit=StepUnit.UPDATES)
        again = len(head_maps.history_payload(history, "log", "file"))
        return len(grid), again

    (grid, history), (grid_of_two, history_of_two) = sizes(1), sizes(2)
    grid += (grid_of_two - grid) * (MAPS - 1)
    again = history + (history_of_two - history) * MAPS + len(head_maps.added_payload("large", 1, LARGE))
    assert grid + again <= 20_000_000  # MAPS and the chosen step
    assert again <= 20_000_000 / 7
