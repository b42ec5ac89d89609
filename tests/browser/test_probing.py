"""The Probing page in a browser: what a click chooses, what a link restores, and that nothing is covered."""

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

SECTIONS = {  # of the page: its figures, from above
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
def probed(tiny_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of the app on a run with made results of probing."""
    run = copy_run(tiny_run, tmp_path_factory.mktemp("probed"))
    write_probes(run)
    with serve(run.path.parents[1]) as address:
        yield address


def figure(visitor, name: str) -> Locator:
    """Return a figure of the section that is open, by its name in SECTIONS."""
    (place,) = [figures.index(name) for figures in SECTIONS.values() if name in figures]
    return visitor.page.locator(".js-plotly-plot").nth(place)


def drawn(visitor, name: str) -> Locator:
    """Return a figure, once the section's last one is drawn: then nothing moves any more."""
    (last,) = [figures[-1] for figures in SECTIONS.values() if name in figures]
    expect(figure(visitor, last).locator(".nsewdrag").first).to_be_attached()
    return figure(visitor, name)


def click_point(visitor, name: str, trace: int, index: int, hint: str) -> None:
    """Click a point of a figure once it answers the pointer with this hint."""
    drawn(visitor, name).scroll_into_view_if_needed()
    one = figure(visitor, name)
    visitor.point_at(lambda: one.evaluate(POINT, [trace, index]), one.locator(".hoverlayer"), hint)
    visitor.page.mouse.click(*one.evaluate(POINT, [trace, index]))


def trace_named(visitor, name: str, trace: str) -> int:
    """Return the place of the trace that the legend calls so."""
    return drawn(visitor, name).evaluate("(plot, name) => plot.data.findIndex((one) => one.name === name)", trace)


def test_the_page_opens_from_the_navigation_with_all_its_figures(visit, probed):
    """Six figures in three sections, each saved as a vector graphic from the menu below it."""
    visitor = visit(probed)
    visitor.open()
    visitor.follow("Probing")
    for section, figures in SECTIONS.items():
        visitor.page.get_by_role("radio", name=NAMES[section]).click()
        visitor.expect_query(probing=section)
        visitor.rest()
        for name in figures:
            expect(figure(visitor, name)).to_be_visible()
        expect(visitor.page.locator(".js-plotly-plot")).to_have_count(len(figures))
        drawn(visitor, figures[-1])
        saves = visitor.page.locator('[class*="st-key-save_"]')
        names = saves.evaluate_all("all => all.map(one => one.className.match(/st-key-save_(\\S+)/)[1])")
        assert len(names) == len(figures)
        for name in names:
            _, content = visitor.save(visitor.files(name).get_by_role("button", name="SVG"))
            assert content.startswith(b"<svg")
        visitor.close_files()


def test_a_click_in_the_heat_map_chooses_layer_and_step(visit, probed):
    """Every figure follows, the probe's own training among them once it is opened."""
    visitor = visit(probed)
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


def test_click_on_point_chooses_task_layer_and_step(visit, probed):
    """A point of a task chooses task and step, a peak its layer as well; a point of the path of two tasks, a step."""
    visitor = visit(probed)
    visitor.open("probing", probing="tasks")
    click_point(visitor, "tasks", trace_named(visitor, "tasks", "semantic roles"), 1, "step 8:")
    visitor.expect_query(probe_task="srl", step="8", probing="layers")
    visitor.settle()
    visitor.open("probing", probing="order")
    click_point(visitor, "peaks", 0, 2, "parts of speech, layer 2")
    visitor.expect_query(probe_task="pos", probe_layer="2", step="8", probing="layers")
    visitor.settle()
    visitor.open("probing", probing="order")
    click_point(visitor, "two tasks", 0, 0, "step 0")
    visitor.expect_query(step="0")
    visitor.settle()


def test_a_link_shows_the_same_to_somebody_else(visit, probed):
    """Choices made by hand are in the address. The table below the heat map has every cell, as measured."""
    visitor = visit(probed)
    visitor.open("probing", probing="layers")
    _, content = visitor.save(visitor.files("tiny-pos-f1-map").get_by_role("button", name="CSV"))
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    found = {(int(row["layer"]), int(row["step"])): float(row["value"]) for row in rows}
    assert found == {(layer, step): f1 for layer, f1s in F1["pos"].items() for step, f1 in zip(STEPS, f1s)}
    assert {row["n"] for row in rows} == {"400"}
    visitor.close_files()
    visitor.page.get_by_role("radio", name="Selectivity").click()
    visitor.expect_query(score="selectivity")
    visitor.settle()
    other = visit(probed)
    other.open_link(visitor.page.url)
    expect(other.page.get_by_role("radio", name="Selectivity")).to_be_checked()
    expect(other.page.get_by_role("radio", name=NAMES["layers"])).to_be_checked()


@pytest.mark.parametrize("width", [390, pytest.param(1024, marks=pytest.mark.slow)])
def test_steps_below_a_heat_map_never_touch(visit, app_of_demo: str, width: int):
    """The demo has many steps: a phone has room for some of them, and a tablet for more or all."""
    visitor = visit(app_of_demo)
    visitor.page.set_viewport_size({"width": width, "height": 1000})
    visitor.open("probing", probing="layers")
    labels = drawn(visitor, "heat map").evaluate(LABELS)
    steps = open_run(demo.PATH).scores("edge_probing_f1")["step"].nunique()
    assert 3 < len(labels) <= (steps if width > 390 else steps - 1)
    assert all(left > right for (_, right), (left, _) in pairwise(labels))


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 900])
@pytest.mark.parametrize("scale", ["log", "linear"])
def test_nothing_lies_upon_the_data_or_beside_the_page(visit, probed, width: int, scale: str):
    """Legends and colour bars keep off the data, and the page is as wide as the window."""
    visitor = visit(probed)
    visitor.page.set_viewport_size({"width": width, "height": 1000})
    for section, figures in SECTIONS.items():
        visitor.open("probing", scale=scale, probing=section)
        for name in figures:
            expect(figure(visitor, name).locator(".nsewdrag").first).to_be_attached()
            assert figure(visitor, name).evaluate(OVERLAPS) == 0, name
        assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
