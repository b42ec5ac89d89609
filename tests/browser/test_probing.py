"""Tests of the Probing page in a browser: clicks, links, saved figures, and layout."""

import csv
import io
from collections.abc import Iterator
from itertools import pairwise

import pytest
from playwright.sync_api import Locator, expect

from embryo_core import open as open_run
from embryo_core.types import Run
from tests import demo
from tests.browser.conftest import serve
from tests.conftest import copy_run
from tests.probed import F1, STEPS, write_probes

SECTIONS = {  # the figures of each section of the page, from top to bottom
    "tasks": ("tasks",),
    "layers": ("layers", "heat map"),
    "order": ("expected layer", "two tasks", "peaks"),
}
NAMES = {"tasks": "All tasks", "layers": "One task, layer by layer", "order": "Order of layers and tasks"}
POINT = """(plot, [trace, index]) => {  // where a point is drawn, in pixels of the window
  const { x, y, xaxis, yaxis } = plot.data[trace];
  const layout = plot._fullLayout, axis = (name, kind) => layout[(name ?? kind).replace(kind, `${kind}axis`)];
  const axes = [axis(xaxis, "x"), axis(yaxis, "y")];
  const at = plot.getBoundingClientRect(), data = plot._fullData[trace];
  const values = [x, y].map((list) => data[list === x ? "x" : "y"][index]);
  return [at.left + axes[0]._offset + axes[0].d2p(values[0]), at.top + axes[1]._offset + axes[1].d2p(values[1])];
}"""
OVERLAPS = """(plot) => {  // legends and colour bars that are upon the data
  const over = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const boxes = (what) => [...plot.querySelectorAll(what)].map((node) => node.getBoundingClientRect());
  return boxes(".legend, .colorbar").flatMap((key) => boxes(".nsewdrag").filter((data) => over(key, data))).length;
}"""

LABELS = """(plot) => [...plot.querySelectorAll(".xaxislayer-above text")]  // ends of those that are seen below it
  .filter((text) => getComputedStyle(text).visibility === "visible")
  .map((text) => text.getBoundingClientRect())
  .map(({ left, right }) => [left, right])
  .sort(([a], [b]) => a - b)"""


@pytest.fixture(scope="module")
def probed_app(tiny_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of the app on a run with artificial results of probing."""
    run = copy_run(tiny_run, tmp_path_factory.mktemp("probed"))
    write_probes(run)
    with serve(run.path.parents[1]) as address:
        yield address


def figure(visitor, name: str) -> Locator:
    """Return a figure of the open section by its name in SECTIONS."""
    (place,) = [figures.index(name) for figures in SECTIONS.values() if name in figures]
    return visitor.page.locator(".js-plotly-plot").nth(place)


def finished_figure(visitor, name: str) -> Locator:
    """Return a figure once the section's last one has been drawn, after which nothing moves."""
    (last,) = [figures[-1] for figures in SECTIONS.values() if name in figures]
    expect(figure(visitor, last).locator(".nsewdrag").first).to_be_attached()
    return figure(visitor, name)


def click_point(visitor, name: str, trace: int, index: int, hint: str) -> None:
    """Click a point of a figure once it shows this hint at the pointer."""
    finished_figure(visitor, name).scroll_into_view_if_needed()
    one = figure(visitor, name)
    visitor.point_at(lambda: one.evaluate(POINT, [trace, index]), one.locator(".hoverlayer"), hint)
    visitor.page.mouse.click(*one.evaluate(POINT, [trace, index]))


def trace_named(visitor, name: str, trace: str) -> int:
    """Return the index of the trace with this name in the legend."""
    return finished_figure(visitor, name).evaluate(
        "(plot, name) => plot.data.findIndex((one) => one.name === name)", trace
    )


def test_every_section_draws_and_saves_its_figures(visit, probed_app):
    """Three sections have six figures, and the menu below each saves it as a vector graphic.

    The CSV of the heat map has every cell's F1 and n. In another window a link restores section and score.
    """
    visitor = visit(probed_app)
    visitor.open("probing")
    for section, figures in SECTIONS.items():
        visitor.page.get_by_role("radio", name=NAMES[section]).click()
        visitor.expect_query(probing=section)
        visitor.rest()
        for name in figures:
            expect(figure(visitor, name)).to_be_visible()
        expect(visitor.page.locator(".js-plotly-plot")).to_have_count(len(figures))
        finished_figure(visitor, figures[-1])
        saves = visitor.page.locator('[class*="st-key-save_"]')
        names = saves.evaluate_all("all => all.map(one => one.className.match(/st-key-save_(\\S+)/)[1])")
        assert len(names) == len(figures)
        for name in names:
            _, content = visitor.save(visitor.files(name).get_by_role("button", name="SVG"))
            assert content.startswith(b"<svg")
        visitor.close_files()
        if section == "layers":
            check_cells_and_link(visitor, visit(probed_app))


def check_cells_and_link(visitor, other) -> None:
    """Check the CSV of the heat map, choose another score, and open the link in the other window."""
    _, content = visitor.save(visitor.files("tiny-pos-f1-map").get_by_role("button", name="CSV"))
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    values = {(int(row["layer"]), int(row["step"])): float(row["value"]) for row in rows}
    assert values == {(layer, step): f1 for layer, f1s in F1["pos"].items() for step, f1 in zip(STEPS, f1s)}
    assert {row["n"] for row in rows} == {"400"}
    visitor.close_files()
    visitor.page.get_by_role("radio", name="Selectivity").click()
    visitor.expect_query(score="selectivity")
    visitor.settle()
    other.open_link(visitor.page.url)
    expect(other.page.get_by_role("radio", name="Selectivity")).to_be_checked()
    expect(other.page.get_by_role("radio", name=NAMES["layers"])).to_be_checked()


def test_clicks_choose_task_layer_and_step(visit, probed_app):
    """A cell of the heat map chooses layer and step, and the opened figure of the probe's training follows.

    A curve's point chooses task and step, a peak also the layer, and the path of two tasks only the step.
    """
    visitor = visit(probed_app)
    visitor.open("probing", probing="layers")
    visitor.page.get_by_text("How the probe was trained").click()
    visitor.expect_query(open="probe")
    expect(visitor.page.locator(".js-plotly-plot")).to_have_count(3)
    cell = [(layer, step) for layer in F1["pos"] for step in STEPS].index((2, 8))
    click_point(visitor, "heat map", 1, cell, "layer 2, step 8: 90.0%")
    visitor.expect_query(probe_layer="2", step="8")
    expect(visitor.page.get_by_text("Training of a probe: parts of speech, layer 2, step 8")).to_be_visible()
    expect(visitor.page.locator(".js-plotly-plot")).to_have_count(3)
    visitor.settle()

    visitor.open("probing", probing="tasks")
    click_point(visitor, "tasks", trace_named(visitor, "tasks", "semantic roles"), 1, "step 8:")
    visitor.expect_query(probe_task="srl", step="8", probing="layers")
    visitor.settle()
    visitor.open("probing", probing="order")
    click_point(visitor, "two tasks", 0, 0, "step 0")
    visitor.expect_query(step="0", probing="order")
    visitor.rest()
    click_point(visitor, "peaks", 0, 2, "parts of speech, layer 2")
    visitor.expect_query(probe_task="pos", probe_layer="2", step="8", probing="layers")
    visitor.settle()


@pytest.mark.parametrize("width", [390, pytest.param(1024, marks=pytest.mark.slow)])
def test_step_labels_of_heat_map_do_not_overlap(visit, app_of_demo: str, width: int):
    """The demo has many steps: a phone labels only some of them, and a tablet more or all."""
    visitor = visit(app_of_demo)
    visitor.page.set_viewport_size({"width": width, "height": 1000})
    visitor.open("probing", probing="layers")
    labels = finished_figure(visitor, "heat map").evaluate(LABELS)
    steps = open_run(demo.PATH).scores("edge_probing_f1")["step"].nunique()
    assert 3 < len(labels) <= (steps if width > 390 else steps - 1)
    assert all(left > right for (_, right), (left, _) in pairwise(labels))


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 900])
@pytest.mark.parametrize("scale", ["log", "linear"])
def test_legends_keep_off_data_and_page_fits_window(visit, probed_app, width: int, scale: str):
    """Legends and colour bars are outside the plots, and no page is wider than its window."""
    visitor = visit(probed_app)
    visitor.page.set_viewport_size({"width": width, "height": 1000})
    for section, figures in SECTIONS.items():
        visitor.open("probing", scale=scale, probing=section)
        for name in figures:
            expect(figure(visitor, name).locator(".nsewdrag").first).to_be_attached()
            assert figure(visitor, name).evaluate(OVERLAPS) == 0, name
        assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
