"""Tests that all renderers of attention maps, canvas, SVG and the self-contained page, show the same colours."""

import base64
import io
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Locator, expect

from embryo_core import results, runs
from embryo_core.browser.head_maps import MAX_MAPS
from embryo_core.curves import step_scales
from embryo_core.figures.figure import small_print
from embryo_core.measurements import AttentionMap, Findings
from embryo_core.share import html_page, map_style, read_averaged
from embryo_core.types import Run, StepUnit
from tests.browser.conftest import serve
from tests.conftest import copy_run, lengthen

STEPS = (0, 8, 16)
LEFT, TOP, SIDE = map_style.POSITION_MARGINS.left, map_style.POSITION_MARGINS.top, map_style.MAX_SIDE
CODE = 0.5 / 65535  # error of a share of the largest weight in the self-contained page
BYTE = 10 ** (map_style.DECADES / 254 / 2)  # factor by which small multiples may miss a share
SVG = "{http://www.w3.org/2000/svg}"


def pixels_of(url: str) -> np.ndarray:
    """Return the pixels [height, width, 3] of a picture inside a data URL."""
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB"))


def canvas_colours(canvas: Locator, size: int) -> np.ndarray:
    """Return the colours [size, size, 3] of the squares of the map on a canvas, each read in its middle."""
    middles = ((np.arange(size) + 0.5) * SIDE / size).astype(int)
    return pixels_of(canvas.evaluate("canvas => canvas.toDataURL()"))[np.ix_(TOP + middles, LEFT + middles)]


def expect_colours(drawn_colours: np.ndarray, low: np.ndarray, high: np.ndarray, scale: str) -> None:
    """Check that each colour [L, L, 3] is that of a share of the largest weight between `low` and `high` [L, L]."""
    positions = [map_style.colour_positions(np.clip(shares, 0, 1), 1.0, scale) for shares in (low, high)]
    half = 0.5 + 1e-4  # of a level; in float32, halves may be rounded either way
    first = np.maximum(np.ceil(255 * positions[0] - half), 0).astype(int)
    last = np.floor(255 * positions[1] + half).astype(int)
    colours = map_style.colours().tolist()
    for spot in np.ndindex(first.shape):
        assert drawn_colours[spot].tolist() in colours[first[spot] : last[spot] + 1], spot


def pictures(svg: ElementTree.Element, size: int) -> list[np.ndarray]:
    """Return the maps of a drawing: colours [size, size, 3], one for each weight."""
    maps = [pixels_of(image.get("{http://www.w3.org/1999/xlink}href")) for image in svg.iter(f"{SVG}image")]
    middles = [((np.arange(size) + 0.5) * len(head_map) / size).astype(int) for head_map in maps]
    return [one[np.ix_(middle, middle)] for one, middle in zip(maps, middles)]


def saved(visitor, maps: str) -> tuple[str, ElementTree.Element]:
    """Save the SVG file of these maps; return its name and its root element."""
    name, content = visitor.save(visitor.files(maps).get_by_role("button", name="SVG", exact=True))
    return name, ElementTree.fromstring(content)


@pytest.mark.parametrize("scale", [pytest.param("linear", marks=pytest.mark.slow), "log"])
def test_canvas_svg_and_page_draw_same_colours(visit, app, offline, tiny_results, scale):
    """At each step every square has the colour of its weight; the self-contained page stores weights in 16 bits.

    The small multiples are checked too.
    """
    history = read_averaged(tiny_results, 2, 1)
    end = map_style.end_of(history)
    shares, code = history.weights.astype(float) / end, CODE * history.maximum / end
    visitor = visit(app)
    visitor.open("attention", layer="2", head="1", colours=scale)
    expect(visitor.page.locator(".history")).to_have_attribute("data-step", "16")  # drawn, and so listening
    offline.open(html_page(history, scale))
    expect(offline.page.locator("#step")).to_have_text("step 16")
    for share, index, step in zip(shares, range(3), STEPS):
        visitor.page.evaluate(
            "step => window.dispatchEvent(new CustomEvent('embryo:step', { detail: { step } }))", step
        )
        expect(visitor.page.locator(".history")).to_have_attribute("data-step", str(step))
        expect(visitor.page.locator(".history .hover")).to_have_text(f"step {step}")
        expect(visitor.page.locator(".grid .note")).to_contain_text(f"step {step}; layer ")
        expect_colours(canvas_colours(visitor.page.locator("canvas.map"), history.size), share, share, scale)
        offline.page.locator("#scrub").fill(str(index))
        expect_colours(canvas_colours(offline.page.locator("#map"), history.size), share - code, share + code, scale)

    name, svg = saved(visitor, "tiny-attention-layer2-head1")
    assert name == "tiny-attention-layer2-head1-step16.svg"
    (picture,) = pictures(svg, history.size)
    expect_colours(picture, shares[-1], shares[-1], scale)
    texts = [text.text for text in svg.iter(f"{SVG}text")]
    labels = [*map_style.axis_labels(history), *map_style.legend(history, scale).labels]
    expected = [label.text for label in labels if label.least <= SIDE]
    assert texts[: len(expected) + 1] == ["tiny, layer 2, head 1, step 16", *expected]
    assert " ".join(texts[len(expected) + 1 :]) == small_print(["tiny"], history.note)
    check_small_multiples(visitor, tiny_results, scale)


def check_small_multiples(visitor, run: Run, scale: str) -> None:
    """Check the small multiples: each head's colours end at its own percentile, and a byte keeps a share to 1.4 %."""
    name, svg = saved(visitor, "tiny-attention-all-heads")
    assert name == "tiny-attention-all-heads-step16.svg"
    heads = [read_averaged(run, layer, head) for layer in (1, 2) for head in (1, 2)]
    for picture, history in zip(pictures(svg, heads[0].size), heads, strict=True):
        end = map_style.end_of(history)
        share = history.weights[-1].astype(float) / end
        low = np.where(share < 0.0011 * history.maximum / end, 0, share / BYTE)
        expect_colours(picture, low, share * BYTE, scale)


def test_page_of_maps_names_unit_of_steps(offline, tiny_results):
    """The steps of the run count words, so the self-contained page shows a number of words."""
    offline.open(html_page(replace(read_averaged(tiny_results, 2, 1), step_unit=StepUnit.WORDS)))
    expect(offline.page.locator("#step")).to_have_text("16 words")


def test_animation_starts_unless_reduced_motion_is_preferred(offline, tiny_results):
    """A reader who prefers reduced motion starts the animation with Play."""
    page = html_page(read_averaged(tiny_results, 2, 1))
    play = offline.page.locator("#play")
    offline.page.add_init_script("window.setInterval = () => 1")  # keeps the animation at its start
    for motion, state in (("no-preference", "Pause"), ("reduce", "Play")):
        offline.page.emulate_media(reduced_motion=motion)
        offline.open(page)
        expect(play).to_have_attribute("aria-label", state)
    play.click()
    expect(play).to_have_attribute("aria-label", "Pause")


@pytest.fixture
def long_run(tiny_run: Run, tmp_path) -> Run:
    """Return a run with maps at more steps than the page reads together; the weights grow with the step."""
    run = copy_run(tiny_run, tmp_path)
    lengthen(run, range(100, 100 + MAX_MAPS + 5))
    for checkpoint in runs.checkpoints(run):
        rng = np.random.default_rng(checkpoint.step)
        weights = rng.random((2, 2, 8, 8)) * (1 + checkpoint.step)
        maps = [AttentionMap(i + 1, j + 1, weights[i, j] / 1000, 9) for i, j in np.ndindex(2, 2)]
        results.write(checkpoint, "attention", Findings(attention=maps))
    results.compact(run)
    return run


@pytest.mark.slow
def test_small_multiples_of_long_series_include_chosen_step(visit, long_run):
    """A step outside those read together is drawn on their colour scale; one that is not read shows an earlier step."""
    steps = [checkpoint.step for checkpoint in runs.checkpoints(long_run)]
    together = step_scales.log_spaced(steps, MAX_MAPS)
    alone = [step for step in steps if step not in together]
    end = map_style.colour_end(results.read_attention(long_run, 1, 2, together).weights)
    with serve(long_run.path.parents[1]) as address:
        visitor = visit(address)
        for step in (alone[1], together[3], alone[-1]):
            visitor.open("attention", step=str(step))
            expect(visitor.page.locator(".grid")).to_have_attribute("data-step", str(step))
            expect(visitor.page.locator(".history")).to_have_attribute("data-step", str(step))
            _, svg = saved(visitor, "tiny-attention-all-heads")
            share = results.read_attention_step(long_run, step)[0][0, 1].astype(float) / end
            expect_colours(pictures(svg, 8)[1], share / BYTE, share * BYTE, "linear")
        before = [step for step in together if step < alone[-1]][-1]
        visitor.page.evaluate(
            "step => window.dispatchEvent(new CustomEvent('embryo:step', { detail: { step } }))", alone[-1] - 1
        )
        expect(visitor.page.locator(".grid")).to_have_attribute("data-step", str(before))
