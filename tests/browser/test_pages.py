"""Tests of every page in a browser: navigation, the time bar, links, downloads, and messages about missing data."""

import csv
import io

import pytest
from playwright.sync_api import Locator, expect

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


def press(visitor, key: str) -> None:
    """Press a key on the time bar."""
    time_bar(visitor).press(key)


def ask(visitor, text: str) -> None:
    """Enter a text on the Query page and ask it by the keyboard."""
    box = visitor.page.get_by_role("textbox", name="Text with [MASK]")
    box.fill(text)
    box.press("Control+Enter")


def downloaded_file(visitor, button: Locator) -> tuple[str, str]:
    """Return the name and the content of the file that this button saves."""
    with visitor.page.expect_download() as download:
        button.click()
    return download.value.suggested_filename, download.value.path().read_text(encoding="utf-8")


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
    press(visitor, "ArrowLeft")
    visitor.expect_query(step="8")
    for title in (*PAGES[1:], PAGES[0]):
        visitor.follow(title)
        expect(step_shown(visitor)).to_have_text("step 8")
        visitor.expect_query(step="8")
        expect(visitor.page.get_by_test_id("stAlertContentError")).to_have_count(0)
        expect(visitor.page.locator(".js-plotly-plot .nsewdrag").first).to_be_attached()
        menu = visitor.files()
        name, content = downloaded_file(visitor, menu.get_by_role("button", name="CSV"))
        rows = list(csv.DictReader(io.StringIO(content)))
        assert name.endswith(".csv") and rows and all(rows[0])
        name, content = downloaded_file(visitor, menu.get_by_role("button", name="SVG", exact=True))
        assert name.endswith(".svg") and content.startswith("<svg") and content.rstrip().endswith("</svg>")
        visitor.close_files()


def test_url_restores_view_in_another_window(visit, app):
    """The second window has the same step, scale and metric, and the same URL."""
    visitor = visit(app)
    visitor.open("tokens")
    press(visitor, "Home")
    visitor.expect_query(step="0")
    press(visitor, "ArrowRight")
    visitor.expect_query(step="8")
    visitor.page.locator('.scale [data-scale="linear"]').click()
    visitor.expect_query(step="8", scale="linear")
    visitor.page.get_by_role("radio", name="Token reconstruction").click()
    visitor.expect_query(metric="token_reconstruction")
    visitor.settle()

    other = visit(app)
    other.open_link(visitor.page.url)
    expect(step_shown(other)).to_have_text("step 8")
    expect(other.page.locator('.scale [data-scale="linear"]')).to_have_attribute("aria-pressed", "true")
    expect(other.page.get_by_role("heading", name="Token reconstruction accuracy by category")).to_be_visible()
    assert other.query() == visitor.query()


# === The time bar ===


def test_dragging_time_bar_chooses_nearest_checkpoint(visit, app):
    """The bar shows the checkpoint nearest to the pointer, and the URL has it after the pointer is released."""
    visitor = visit(app)
    visitor.open(scale="linear")
    box = time_bar(visitor).bounding_box()
    y = box["y"] + box["height"] / 2
    visitor.page.mouse.move(box["x"] + box["width"] - 10, y)
    visitor.page.mouse.down()
    visitor.page.mouse.move(box["x"] + 0.55 * box["width"], y, steps=5)
    expect(step_shown(visitor)).to_have_text("step 8")
    visitor.page.mouse.up()
    visitor.expect_query(step="8")


def test_time_bar_and_figures_share_scale_of_steps(visit, app):
    """Checkpoints divide the bar and a figure in the same ratios, and the line at the step goes through its points."""
    visitor = visit(app)
    for scale in ("linear", "log"):
        visitor.open("tokens", scale=scale, step="8")
        points, line = points_and_line(visitor)
        marks = visitor.page.locator(".bar .mark").evaluate_all(MIDDLES)
        pixel = 1 / (points[-1] - points[0])
        assert len(marks) == len(points) == 3
        assert shares(points) == pytest.approx(shares(marks), abs=2 * pixel)
        assert line == pytest.approx(points[1], abs=1)


def test_page_shows_chosen_step_before_server_answers(visit, app):
    """The line of a figure moves with the time bar, and the page is marked as waiting until it is drawn at the step."""
    visitor = visit(app)
    visitor.open("tokens", scale="log", step="16")
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


# === Answers ===


def test_attention_map_follows_time_bar(visit, app):
    """The map at step 0 differs from that at the last step; the page has one Play button, that of the time bar."""
    visitor = visit(app)
    visitor.open("attention")
    canvas = visitor.page.locator("canvas").first
    expect(canvas).to_be_visible()
    expect(visitor.page.get_by_role("button", name="Play")).to_have_count(1)  # that of the time bar
    drawn = "canvas => canvas.toDataURL()"
    last = canvas.evaluate(drawn)
    press(visitor, "Home")
    expect(step_shown(visitor)).to_have_text("step 0")
    visitor.page.wait_for_function(
        f"([canvas, last]) => ({drawn})(canvas) !== last", arg=[canvas.element_handle(), last]
    )


def test_query_is_answered_at_chosen_step_and_over_all(visit, app):
    """A text without [MASK] and one of 14,000 characters get a message, a text with one [MASK] answers and a curve."""
    visitor = visit(app)
    visitor.open("query")
    for text, answer in (("Paris is a city .", "The text has no [MASK]"), ("[MASK] " * 2000, "at most")):
        ask(visitor, text)
        expect(visitor.page.get_by_test_id("stAlert").filter(has_text=answer)).to_be_visible()
        visitor.settle()
    visitor.page.get_by_role("textbox", name="Text with [MASK]").fill("Berlin is the capital of [MASK] .")
    visitor.page.get_by_role("button", name="Ask", exact=True).click()  # takes the text just typed
    visitor.expect_query(text="Berlin is the capital of [MASK] .")
    visitor.settle()
    expect(visitor.page.get_by_role("heading", name="At step 16")).to_be_visible()
    expect(visitor.page.get_by_role("heading", name="Over 3 checkpoints")).to_be_visible()
    expect(visitor.page.locator(".js-plotly-plot").first).to_be_visible()


# === Missing data ===


def test_pages_without_runs_show_pretraining_command(visit, app_without_runs):
    """The data root is empty."""
    visitor = visit(app_without_runs)
    visitor.open()
    for title in PAGES:
        visitor.follow(title)
        expect(visitor.page.get_by_test_id("stCode")).to_contain_text("python -m pretrain")


def test_pages_without_results_show_evaluation_command(visit, app_with_damage):
    """The command names the run, which was not evaluated."""
    visitor = visit(app_with_damage)
    visitor.open(run="unevaluated")
    for title in EVALUATED:
        visitor.follow(title)
        expect(visitor.page.get_by_test_id("stCode")).to_contain_text("python -m embryo_core evaluate unevaluated")


def test_broken_results_are_named_with_evaluation_command(visit, app_with_damage):
    """One message names the truncated Parquet file and the command that writes it again."""
    visitor = visit(app_with_damage)
    visitor.open(run="broken")
    for title in EVALUATED:
        visitor.follow(title)
        alert = visitor.page.get_by_test_id("stAlert")
        expect(alert).to_contain_text(".parquet")
        expect(alert).to_contain_text("python -m embryo_core evaluate")
