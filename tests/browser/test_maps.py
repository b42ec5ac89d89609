"""One map in every renderer of the browser: the page's canvas, its SVG and the self-contained page show the same colours."""

import base64
import io
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Locator, expect

from embryo_core.share import HeadHistory, html_page, map_style, read_averaged

STEPS = (0, 8, 16)
LEFT, TOP, SIDE = map_style.POSITIONS.left, map_style.POSITIONS.top, map_style.WIDEST


def decoded(url: str) -> np.ndarray:
    """The pixels [height, width, 3] of a picture inside a data URL."""
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB"))


def drawn(canvas: Locator, size: int) -> np.ndarray:
    """Colours [size, size, 3] of the squares of the map on a canvas, each read in its middle."""
    middles = ((np.arange(size) + 0.5) * SIDE / size).astype(int)
    return decoded(canvas.evaluate("canvas => canvas.toDataURL()"))[np.ix_(TOP + middles, LEFT + middles)]


def expect_colours(found: np.ndarray, history: HeadHistory, index: int, scale: str, error: float = 0.0) -> None:
    """Each colour is the one nearest to the weight's position; `error` is that of a share of the largest weight."""
    shares = history.weights[index].astype(float) / history.maximum
    low, high = (map_style.colour_positions(np.clip(shares + e, 0, 1), 1.0, scale) for e in (-error, error))
    half = 0.5 + 1e-4  # of a level; in float32, halves may be rounded either way
    first, last = np.ceil(255 * low - half).astype(int), np.floor(255 * high + half).astype(int)
    colours = map_style.colours()
    for spot in np.ndindex(first.shape):
        nearest = colours[max(first[spot], 0) : last[spot] + 1]
        assert found[spot].tolist() in nearest.tolist(), f"{spot} of step {STEPS[index]}"


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_canvas_svg_and_page_draw_the_same_map(visit, app, offline, tiny_results, scale):
    """At each step every square has the colour of its weight, at the same place of the canvas; the page's in 16 bits."""
    history = read_averaged(tiny_results, 2, 1)
    visitor = visit(app)
    visitor.open("attention", layer="2", head="1", colours=scale)
    offline.open(html_page(history, scale))
    expect(offline.page.locator("#step")).to_have_text("step 16")
    for index, step in enumerate(STEPS):
        visitor.page.evaluate(
            "step => window.dispatchEvent(new CustomEvent('embryo:step', { detail: { step } }))", step
        )
        expect(visitor.page.locator(".history")).to_have_attribute("data-step", str(step))
        expect_colours(drawn(visitor.page.locator("canvas.map"), history.size), history, index, scale)
        offline.page.locator("#scrub").fill(str(index))
        expect_colours(drawn(offline.page.locator("#map"), history.size), history, index, scale, error=0.5 / 65535)

    with visitor.page.expect_download() as download:
        visitor.page.locator(".history .svg").click()
    assert download.value.suggested_filename == "tiny-attention-layer2-head1-step16.svg"
    svg = ElementTree.parse(download.value.path()).getroot()
    expect_colours(decoded(svg.find("{http://www.w3.org/2000/svg}image").get("href")), history, 2, scale)
    texts = [text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    labels = [*map_style.axis_labels(history), *map_style.legend(history.maximum, scale).labels]
    wanted = [label.text for label in labels if SIDE >= label.least]
    assert texts[0] == "tiny, layer 2, head 1, step 16" and sorted(wanted) == sorted(texts[1 : 1 + len(wanted)])
    assert " ".join(texts[1 + len(wanted) :]) == history.note
