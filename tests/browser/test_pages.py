"""Tests of every page in a browser: navigation, the time bar, links, downloads, and messages about missing data."""

import csv
import io
import re
from itertools import pairwise

import pytest
from playwright.sync_api import Locator, expect

from embryo_core import open as open_run
from embryo_core.curves.phases import phases_of_log
from tests.demo import PATH

MIDDLES = "all => [...all].map(one => one.getBoundingClientRect()).map(({ left, right }) => (left + right) / 2)"
POINTS_AND_LINE = f"""figure => {{
    const middles = {MIDDLES};
    const traces = [...figure.querySelectorAll(".scatterlayer .trace")];
    const curves = traces.map(trace => trace.querySelectorAll(".points path"));
    return [middles(curves.find(points => points.length) ?? []), middles(figure.querySelectorAll(".shapelayer path"))];
}}"""
EVALUATED = ("Tokens", "Attention", "Probing", "Knowledge")  # pages that need results of evaluation
PAGES = ("Overview", *EVALUATED, "Fine-tuning", "Query")


def time_bar(visitor) -> Locator:
    """Return the time bar's track, on which a checkpoint is chosen."""
    return visitor.page.locator(".bar .track")


def step_shown(visitor) -> Locator:
    """Return the step that the time bar shows."""
    return visitor.page.locator(".reading .step")


def points_and_line(visitor) -> tuple[list[float], float]:
    """Return the positions of the first figure's first curve and of its line at the chosen step, in pixels of the page.

    Both are read at once, after the figure has stopped changing: its first layout has no room for the legend yet.
    """
    figure = visitor.page.locator(".js-plotly-plot").first
    expect(figure.locator(".shapelayer path")).to_be_attached()
    expect(figure.locator(".scatterlayer .trace .points path").first).to_be_attached()
    visitor.rest()
    points, (line,) = figure.evaluate(POINTS_AND_LINE)
    return points, line


def shares(places: list[float]) -> list[float]:
    """Return places as shares of the way from the first (0) to the last (1)."""
    return [(place - places[0]) / (places[-1] - places[0]) for place in places]


# === Navigation ===


def test_every_page_opens_from_navigation_at_chosen_step(visit, app):
    """One visit goes through all pages and back: the URL of each has the step, and its first figure can be saved.

    The SVG is a vector graphic, and the CSV has the rows of the figure. There is no exception on a page, no error in
    the browser, and no request to another host.
    """
    visitor = visit(app)
    visitor.open()
    expect(step_shown(visitor)).to_have_text("step 16")
    time_bar(visitor).press("ArrowLeft")
    visitor.expect_query(step="8")
    for title in (*PAGES[1:], PAGES[0]):
        visitor.follow(title)
        expect(step_shown(visitor)).to_have_text("step 8")
        visitor.expect_query(step="8")
        expect(visitor.page.get_by_test_id("stAlertContentError")).to_have_count(0)
        expect(visitor.page.locator(".js-plotly-plot .nsewdrag").first).to_be_attached()
        menu = visitor.files()
        name, content = visitor.save(menu.get_by_role("button", name="CSV"))
        rows = list(csv.DictReader(io.StringIO(content.decode())))
        assert name.endswith(".csv") and rows and all(rows[0])
        name, content = visitor.save(menu.get_by_role("button", name="SVG", exact=True))
        assert name.endswith(".svg") and content.startswith(b"<svg") and content.rstrip().endswith(b"</svg>")
        visitor.close_files()


# === The time bar ===


def test_time_bar_moves_figures_and_link_restores_view(visit, app):
    """On both scales the bar is like a figure, and it moves the figure's line before the server has answered.

    A second window that opens the link has the same step, scale and metric, and the same URL.
    """
    visitor = visit(app)
    visitor.open("tokens", scale="linear", step="8")
    check_scale_of_steps(visitor)
    choose_scale(visitor, "log")
    check_scale_of_steps(visitor)
    check_step_is_shown_before_server_answers(visitor)
    choose_scale(visitor, "linear")
    drag_to_middle(visitor)
    visitor.page.get_by_role("radio", name="Token reconstruction").click()
    visitor.expect_query(metric="token_reconstruction", step="8", scale="linear")
    visitor.settle()

    other = visit(app)
    other.open_link(visitor.page.url)
    expect(step_shown(other)).to_have_text("step 8")
    expect(other.page.locator('.scale [data-scale="linear"]')).to_have_attribute("aria-pressed", "true")
    expect(other.page.get_by_role("heading", name="Token reconstruction accuracy by category")).to_be_visible()
    assert other.query() == visitor.query()


def choose_scale(visitor, scale: str) -> None:
    """Click the button of a scale of steps, and wait until the page is drawn on it."""
    visitor.page.locator(f'.scale [data-scale="{scale}"]').click()
    visitor.expect_query(scale=scale)
    visitor.rest()


def check_scale_of_steps(visitor) -> None:
    """Check that checkpoints divide bar and figure in the same ratios, and that the line at step 8 is at its point."""
    points, line = points_and_line(visitor)
    marks = visitor.page.locator(".bar .mark").evaluate_all(MIDDLES)
    pixel = 1 / (points[-1] - points[0])
    assert len(marks) == len(points) == 3
    assert shares(points) == pytest.approx(shares(marks), abs=2 * pixel)
    assert line == pytest.approx(points[1], abs=1)


def check_step_is_shown_before_server_answers(visitor) -> None:
    """Check that a figure's line moves at once, and that the page is marked as waiting until it is drawn."""
    waiting = visitor.page.locator("html[data-embryo-waiting]")
    expect(waiting).to_have_count(0)
    points, _ = points_and_line(visitor)
    moved, waits = time_bar(visitor).evaluate(
        "track => { track.dispatchEvent(new KeyboardEvent('keydown', { key: 'Home' }));"
        f" return [({MIDDLES})(document.querySelectorAll('.js-plotly-plot .shapelayer path'))[0],"
        " document.documentElement.hasAttribute('data-embryo-waiting')]; }"
    )
    assert moved == pytest.approx(points[0], abs=1) and waits
    visitor.expect_query(step="0")
    expect(waiting).to_have_count(0)


def drag_to_middle(visitor) -> None:
    """Drag along the bar: it shows the checkpoint nearest to the pointer, which the URL has after the release."""
    box = time_bar(visitor).bounding_box()
    y = box["y"] + box["height"] / 2
    visitor.page.mouse.move(box["x"] + box["width"] - 10, y)
    visitor.page.mouse.down()
    visitor.page.mouse.move(box["x"] + 0.55 * box["width"], y, steps=5)
    expect(step_shown(visitor)).to_have_text("step 8")
    visitor.page.mouse.up()
    visitor.expect_query(step="8")


@pytest.mark.parametrize("width", [pytest.param(1400, marks=pytest.mark.slow), 1024])
def test_time_bar_names_phases_if_wide_enough(visit, app_of_demo: str, width: int):
    """Every phase is drawn, and the names neither overlap nor leave the screen.

    The bar of a phone has no room for phases, but names the phase of the step to screen readers.
    """
    visitor = visit(app_of_demo)
    visitor.page.set_viewport_size({"width": width, "height": 900})
    visitor.open("findings", scale="log", step="100000")
    phases = phases_of_log(open_run(PATH).log())
    expect(visitor.page.locator(".bar .phase rect")).to_have_count(len(phases))
    names = visitor.page.locator(".bar .phase text")
    expect(names.filter(has_text="plateau").first).to_be_visible()
    boxes = sorted((box.bounding_box() for box in names.all()), key=lambda box: box["x"])
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
    assert all(left["x"] + left["width"] <= right["x"] for left, right in pairwise(boxes))
    visitor.page.set_viewport_size({"width": 390, "height": 900})
    visitor.open("findings", scale="log", step="100000")
    expect(visitor.page.locator(".bar .phase")).to_have_count(len(phases))
    expect(visitor.page.locator(".bar .phase").locator("visible=true")).to_have_count(0)
    assert visitor.page.locator(".bar").bounding_box()["height"] == 64
    expect(visitor.page.locator(".bar .track")).to_have_attribute("aria-valuetext", re.compile(phases[-1].name))


# === Missing data ===


def test_pages_without_runs_show_pretraining_command(visit, app_without_runs):
    """The data root is empty."""
    visitor = visit(app_without_runs)
    visitor.open()
    for title in PAGES:
        visitor.follow(title)
        expect(visitor.page.get_by_test_id("stCode")).to_contain_text("python -m pretrain")


def test_pages_without_or_with_broken_results_show_evaluation_command(visit, app_with_damage):
    """The command names the run that was not evaluated; a message names the truncated Parquet file with the command."""
    visitor = visit(app_with_damage)
    visitor.open(run="unevaluated")
    for title in EVALUATED:
        visitor.follow(title)
        expect(visitor.page.get_by_test_id("stCode")).to_contain_text("python -m embryo_core evaluate unevaluated")
    visitor.open(run="broken")
    for title in EVALUATED:
        visitor.follow(title)
        alert = visitor.page.get_by_test_id("stAlert")
        expect(alert).to_contain_text(".parquet")
        expect(alert).to_contain_text("python -m embryo_core evaluate")
