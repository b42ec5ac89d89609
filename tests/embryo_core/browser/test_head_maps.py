"""Tests of the payloads of attention maps: they can be read back, and agree with the other renderers."""

import json

import numpy as np
import pytest

from embryo_core.browser import head_maps
from embryo_core.browser.head_maps import MAX_MAPS
from embryo_core.curves import step_scales
from embryo_core.share import HeadHistory, map_style
from embryo_core.types import StepUnit

STEPS = np.array([0, 8, 16])
LARGE = np.full((24, 16, 128, 128), 1 / 128, np.float32)  # maps of one step


@pytest.fixture
def maps() -> np.ndarray:
    """Return weights [S, layers, heads, L, L] whose rows sum to one."""
    weights = np.random.default_rng(0).random((3, 2, 4, 6, 6)).astype(np.float32) ** 4
    return weights / weights.sum(axis=-1, keepdims=True)


def read(payload: bytes) -> tuple[dict, bytes]:
    """Return the header and body of a payload as the browser reads them."""
    length = int.from_bytes(payload[:4], "little")
    return json.loads(payload[4 : 4 + length]), payload[4 + length :]


def test_history_is_transferred_exactly(maps):
    """The weights of the large map arrive as stored, with what the drawing needs."""
    history = HeadHistory("tiny", 2, 4, "Attention weights", STEPS, maps[:, 1, 3], step_unit=StepUnit.UPDATES)
    header, body = read(head_maps.history_payload(history, "log"))
    assert header["steps"] == [0, 8, 16] and header["name"] == "tiny-attention-layer2-head4"
    assert (header["layer"], header["head"]) == (2, 4)
    assert header["maximum"] == history.weights.max()
    assert np.array_equal(np.frombuffer(body, "<f4").reshape(3, 6, 6), history.weights)


@pytest.mark.parametrize("scale", step_scales.SCALES)
def test_browser_draws_in_the_style_of_all_renderers(maps, scale):
    """Colours, decades, margins, labels and legend come from Python, for the large map and the grid."""
    history = HeadHistory("tiny", 2, 4, "Attention weights", STEPS, maps[:, 1, 3], step_unit=StepUnit.UPDATES)
    header, _ = read(head_maps.history_payload(history, scale))
    style = json.loads(json.dumps(map_style.drawing(history, scale)))
    assert {name: header[name] for name in style} == style
    grid, _ = read(head_maps.grid_payload("tiny", head_maps.grid(STEPS, maps), unit=StepUnit.UPDATES))
    assert grid["colours"] == style["colours"] == map_style.colours().tolist()
    assert grid["decades"] == map_style.DECADES


def test_grid_codes_are_within_the_stated_error(maps):
    """A code gives a weight, relative to its head's maximum, to 1.4 %; below 0.1 % it is at most 0.101 %."""
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


def test_head_without_weights_is_drawn_dark():
    """Maps of zeros give codes of zero instead of a division by zero."""
    _, body = read(
        head_maps.grid_payload(
            "tiny", head_maps.grid(STEPS, np.zeros((3, 1, 1, 4, 4), np.float32)), unit=StepUnit.UPDATES
        )
    )
    assert set(body) == {0}


def test_grid_has_the_colour_limits_of_each_head(maps):
    """A head's limits are the percentile and maximum of its large map; the shared one is a percentile of all heads."""
    header, _ = read(head_maps.grid_payload("tiny", head_maps.grid(STEPS, maps), unit=StepUnit.UPDATES))
    for layer, head in np.ndindex(2, 4):
        history = HeadHistory("tiny", layer + 1, head + 1, "", STEPS, maps[:, layer, head], step_unit=StepUnit.UPDATES)
        assert header["ends"][layer][head] == pytest.approx(map_style.end_of(history))
        assert header["peaks"][layer][head] == pytest.approx(history.maximum)
    assert header["shared_end"] == pytest.approx(np.percentile(maps, map_style.CLIP_PERCENTILE))


def test_added_step_equals_grid_of_that_step(maps):
    """The payload has the name of the run's grid, so that the browser adds it there."""
    header, body = read(head_maps.added_payload("tiny", 8, maps[1], 4.5))
    alone, codes = read(head_maps.grid_payload("tiny", head_maps.grid([8], maps[1:2]), unit=StepUnit.UPDATES))
    assert body == codes
    assert {name: header[name] for name in ("name", "peaks", "maxima")} == {
        name: alone[name] for name in ("name", "peaks", "maxima")
    }
    assert (header["step"], header["at"]) == (8, 4.5)
    assert read(head_maps.added_payload("tiny", 8, maps[1]))[0]["at"] == 8
    assert read(head_maps.added_payload("tiny")) == ({"name": alone["name"], "step": None, "at": None}, b"")


def test_large_model_payload_stays_within_20_megabytes():
    """The model has 24 layers of 16 heads and 128 pieces; the share of one step is multiplied by the maps of a page.

    Moving the time bar sends at most a seventh of it, since the grid stays in the browser.
    """

    def sizes(steps: int) -> tuple[int, int]:
        weights = np.stack([LARGE] * steps)
        at = np.arange(steps)
        history = HeadHistory("large", 1, 1, "Attention weights", at, weights[:, 0, 0], step_unit=StepUnit.UPDATES)
        grid = head_maps.grid_payload("large", head_maps.grid(at, weights), unit=StepUnit.UPDATES)
        again = len(head_maps.history_payload(history, "log"))
        return len(grid), again

    (grid, history), (grid_of_two, history_of_two) = sizes(1), sizes(2)
    grid += (grid_of_two - grid) * (MAX_MAPS - 1)
    again = history + (history_of_two - history) * MAX_MAPS + len(head_maps.added_payload("large", 1, LARGE))
    assert grid + again <= 20_000_000  # MAX_MAPS and the chosen step
    assert again <= 20_000_000 / 7
