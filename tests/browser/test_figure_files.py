"""Tests of the files of a figure in Chromium: light, in a generic font, with title and run, and not cut off."""

import io
import random
import re
from xml.etree import ElementTree

import pandas as pd
import plotly.graph_objects as go
import pytest
from PIL import Image
from playwright.sync_api import expect

from embryo_core.figures.file_layout import SIZES
from tests.app.test_figures import expect_in_table, marks
from tests.browser.test_access import VIEWS
from tests.demo import PATH, read

WITHOUT = ("layers and steps", "sentence", "compare")  # maps, which test_maps.py tests, and no curves of one run
SVG = "{http://www.w3.org/2000/svg}"
OUTSIDE = """() => {
    const { right, bottom } = document.querySelector("svg").getBoundingClientRect();
    const inside = (box) => box.left >= -1 && box.top >= -1 && box.right <= right + 1 && box.bottom <= bottom + 1;
    return [...document.querySelectorAll("text")]
        .filter((text) => !inside(text.getBoundingClientRect())).map((text) => text.textContent);
}"""


NAME = """figure => figure.closest('[class*="st-key-figure_"]').className.match(/st-key-figure_(\\S+)/)[1]"""
TRACES = """figure => {
    const plain = (values) => ArrayBuffer.isView(values) || Array.isArray(values) ? Array.from(values, plain) : values;
    const { tickvals, ticktext } = figure._fullLayout.yaxis ?? {};
    const data = figure._fullData.filter((trace) => trace.visible === true).map((trace) => ({
        type: trace.type, name: trace.name, x: plain(trace.x), y: plain(trace.y),
        customdata: plain(trace.customdata), text: plain(trace.text),
        ...(trace.type === "heatmap" ? { z: plain(trace.z) } : { marker: { opacity: plain(trace.marker?.opacity) } }),
    }));
    return { data, layout: { yaxis: { tickvals: plain(tickvals ?? []), ticktext: plain(ticktext ?? []) } } };
}"""


BOTH_SIZES = pytest.mark.parametrize("columns", [pytest.param("one", marks=pytest.mark.slow), "two"])


def saved_figure(visitor, figure: str, columns: str, format: str):
    """Choose a size and return the download of a figure in this format."""
    files = visitor.files(figure)
    files.get_by_role("combobox").select_option(columns)
    with visitor.page.expect_download() as download:
        files.get_by_role("button", name=format, exact=True).click()
    return download.value


@BOTH_SIZES
def test_figure_of_dark_page_is_saved_for_paper(visit, app, offline, columns):
    """The file has title and run but no line at the step; even in a wider font no text is cut off.

    The reader asks for a first file while the charts of a slow page are still placeholders; it is saved once drawn.
    """
    visitor, held = visit(app), []
    visitor.page.emulate_media(color_scheme="dark")
    visitor.page.route("**/PlotlyChart*.js", lambda script: held.append(script))
    visitor.page.goto(f"{app}/tokens")
    files = visitor.files("tiny-mask_prediction")
    with visitor.page.expect_download() as download:
        files.get_by_role("button", name="SVG", exact=True).click()
        expect(visitor.page.locator(".js-plotly-plot")).to_have_count(0)
        for script in held:
            script.continue_()
    assert b"Mask prediction accuracy" in download.value.path().read_bytes()
    visitor.close_files()
    visitor.rest()
    expect(visitor.page.locator(".js-plotly-plot .legend").first).to_be_attached()
    file = saved_figure(visitor, "tiny-mask_prediction", columns, "SVG")
    assert file.suggested_filename == "tiny-mask_prediction.svg"
    status = visitor.page.get_by_test_id("stPopoverBody").get_by_role("status")  # saving leaves the menu open
    expect(status).to_have_text(re.compile("^Caption (not )?copied$"))
    content = file.path().read_text(encoding="utf-8")
    root = ElementTree.fromstring(content)
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert any("Mask prediction accuracy by category".startswith(text[:20]) for text in texts)
    assert any(text.startswith("Run tiny; ") for text in texts) and "proper noun" in texts
    assert float(root.get("width")) == pytest.approx(SIZES[columns].inches * 96, abs=1)
    assert "Arial" in content and "stroke-dasharray: 3px" not in content
    wide = content.replace("Arial, Helvetica", "DejaVu Sans, Verdana")
    assert wide != content
    offline.open(f"<!doctype html><body style='margin:0'>{wide}</body>")
    assert offline.page.evaluate(OUTSIDE) == []
    assert visitor.page.locator(".st-key-figure_tiny-mask_prediction .shapelayer path").count() > 0  # the page keeps it


def test_maps_and_figures_are_saved_as_png(visit, app):
    """One head's map, the maps of all heads, and a figure are saved at 300 dots per inch.

    The first request of the menu is lost, as before the script of the maps has run, and the menu repeats it.
    """
    visitor = visit(app)
    visitor.page.add_init_script(
        "addEventListener('embryo:save', (event) => event.stopImmediatePropagation(), { once: true })"
    )
    visitor.open("attention", layer="2", head="1")
    expect(visitor.page.locator(".history")).to_have_attribute("data-step", "16")
    for maps in ("tiny-attention-layer2-head1", "tiny-attention-all-heads"):
        file = saved_figure(visitor, maps, "one", "PNG")
        assert file.suggested_filename == f"{maps}-step16.png"
        with Image.open(file.path()) as image:
            assert image.format == "PNG" and len(image.convert("RGB").getcolors(1 << 24)) > 10
            assert image.width == pytest.approx(SIZES["one"].inches * 300, rel=0.02)
    figure = saved_figure(visitor, "tiny-attention-positions-layer2-head1", "two", "PNG")
    with Image.open(figure.path()) as image:
        assert image.width == pytest.approx(SIZES["two"].inches * 300, abs=2)


@pytest.mark.slow
@BOTH_SIZES
def test_maps_are_laid_out_for_paper(visit, app, offline, columns):
    """Files have title, run and the same font size; even in a wider font no text is cut off."""
    visitor = visit(app)
    visitor.open("attention", layer="2", head="1")
    expect(visitor.page.locator(".history")).to_have_attribute("data-step", "16")
    titles = {"tiny-attention-layer2-head1": "tiny, layer 2, head 1", "tiny-attention-all-heads": "tiny, step 16: "}
    for maps, title in titles.items():
        content = saved_figure(visitor, maps, columns, "SVG").path().read_text(encoding="utf-8")
        root = ElementTree.fromstring(content)
        texts = [text.text for text in root.iter(f"{SVG}text")]
        assert texts[0].startswith(title) and any(text.startswith("Run tiny; ") for text in texts)
        drawn = float(root.get("viewBox").split()[2])
        assert float(root.get("width")) / drawn == pytest.approx(SIZES[columns].inches * 96 / SIZES[columns].pixels)
        wide = content.replace("Arial, Helvetica", "DejaVu Sans, Verdana")
        offline.open(f"<!doctype html><body style='margin:0'>{wide}</body>")
        assert offline.page.evaluate(OUTSIDE) == []


@pytest.mark.slow
@pytest.mark.parametrize("view", [view for view in VIEWS if view not in WITHOUT])
def test_drawn_points_are_in_saved_table(visit, app_of_demo: str, view: str):
    """A sample of up to 200 points or cells that Plotly has drawn in each figure is found in its CSV."""
    visitor = visit(app_of_demo)
    path, query = VIEWS[view]
    visitor.open(path, **query)
    for folded in visitor.page.locator('details:not([open]):has([class*="st-key-figure_"]) summary').all():
        folded.click()
        visitor.rest()
    figures = visitor.page.locator('[class*="st-key-figure_"] .js-plotly-plot').all()
    assert sum(_compare(visitor, figure) for figure in figures) >= 5


def _compare(visitor, figure) -> int:
    """Check a sample of a figure's points against its table; return the size of the sample."""
    expect(figure.locator(".main-svg").first).to_be_attached()
    name = figure.evaluate(NAME)
    if not visitor.page.locator(f".st-key-save_{name}").count():
        return 0  # a small picture without a menu
    _, content = visitor.save(visitor.files(name).get_by_role("button", name="CSV"))
    held = marks(go.Figure(figure.evaluate(TRACES)))
    chosen = random.Random(0).sample(held, min(200, len(held)))
    expect_in_table(chosen, pd.read_csv(io.BytesIO(content), keep_default_na=False, na_values=[""]))
    return len(chosen)


@pytest.mark.slow
@BOTH_SIZES
def test_words_of_saved_lens_are_legible(visit, app_of_demo: str, columns):
    """Fonts have at least 6.5 pixels; the small print says how many steps of the page have room in the file."""
    rows = 1 + read().config["num_hidden_layers"]  # the embeddings and each layer
    visitor = visit(app_of_demo)
    visitor.open("query", first_steps="on", open="lens")
    expect(visitor.page.locator('[class*="st-key-scroll_"] .heatmap-label').first).to_be_attached()
    root = ElementTree.parse(saved_figure(visitor, f"{PATH.name}-query-lens", columns, "SVG").path()).getroot()
    words = [text for group in root.iter(f"{SVG}g") if group.get("class") == "heatmap-label" for text in group]
    steps = re.search(r"(\d+) of the (\d+) steps on the page", " ".join(root.itertext()))
    assert 1 < int(steps[1]) < int(steps[2]) and len(words) == rows * int(steps[1])
    assert all(float(re.search(r"font-size: ([\d.]+)px", word.get("style"))[1]) >= 6.5 for word in words)
