"""Tests of moving through the steps in a browser: kept zoom and hidden curves, playing, keys, and clicks."""

import json
import re
import shutil
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Locator, expect

from embryo_core import runs
from embryo_core.types import Run
from tests.browser.conftest import WINDOW, serve

VIEW = """figure => JSON.stringify([
    figure._fullLayout.xaxis.range, figure._fullLayout.yaxis.range, figure._fullData.map(({ visible }) => visible)])"""
KEY_AND_CLICK = """link => {
    window.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    link.click();
}"""
DRAWN = "one => JSON.stringify(one._fullData.map(({ y }) => Array.from(y)))"
SLOW_CLOCK = """() => {
    const now = performance.now.bind(performance);
    const begin = now();
    performance.now = () => begin + (now() - begin) / 20;
    window.restoreClock = () => { performance.now = now; };
}"""


def step_shown(visitor) -> Locator:
    """Return the step that the time bar shows."""
    return visitor.page.locator(".reading .step")


def mark_at(figure: Locator) -> float:
    """Return the middle of the line at the chosen step, in pixels of the page."""
    box = figure.locator(".shapelayer path").last.bounding_box()
    return box["x"] + box["width"] / 2


# === Zoom and hidden curves ===


def zoom(visitor, figure: Locator) -> None:
    """Zoom a figure with the pointer."""
    figure.scroll_into_view_if_needed()
    visitor.rest()
    whole = figure.evaluate(VIEW)
    box = figure.locator(".nsewdrag.drag").first.bounding_box()
    visitor.page.mouse.move(box["x"] + 20, box["y"] + 40)
    visitor.page.mouse.down()
    visitor.page.mouse.move(box["x"] + box["width"] - 60, box["y"] + box["height"] - 60, steps=5)
    visitor.page.mouse.up()
    zoomed = f"([figure, whole]) => ({VIEW})(figure) !== whole"
    visitor.page.wait_for_function(zoomed, arg=[figure.element_handle(), whole])
    visitor.rest()


def test_zoom_and_hidden_curves_are_kept_when_figure_changes(visit, app):
    """Training curves of a probe or a fine-tuning differ at each step, but keep their zoom and hidden curves."""
    visitor = visit(app)
    for page, query, figure in (
        ("probing", {"probing": "layers", "open": "probe"}, "-training"),
        ("finetuning", {"open": "tuning"}, "-tuning"),
    ):
        visitor.open(page, **query, step="16")
        plot = visitor.page.locator(f'[class*="{figure}"] .js-plotly-plot')
        expect(plot.locator(".scatterlayer .points path").first).to_be_attached()
        hidden = plot.locator(".legend .traces").nth(1)
        hidden.scroll_into_view_if_needed()
        visitor.rest()
        hidden.locator(".legendtoggle").click()
        expect(hidden).to_have_css("opacity", "0.5")
        zoom(visitor, plot)
        before, curves = plot.evaluate(VIEW), plot.evaluate(DRAWN)
        visitor.page.locator(".bar .track").press("Home")
        visitor.expect_query(step="0")
        visitor.page.wait_for_function(
            f"([plot, before, curves]) => ({VIEW})(plot) === before && ({DRAWN})(plot) !== curves",
            arg=[plot.element_handle(), before, curves],
        )
        visitor.rest()
        expect(hidden).to_have_css("opacity", "0.5")
        assert plot.evaluate(VIEW) == before


def test_zoom_and_hidden_curves_are_kept_when_figure_is_redrawn(visit, app):
    """A slow page draws a figure again as it was sent, with all curves, and those that were hidden are hidden again.

    Hiding is done by a click on the legend, which would show a curve that the page has hidden in the meantime.
    At another step only the line of a figure over all steps moves.
    """
    visitor = visit(app)
    plot = visitor.page.locator(".js-plotly-plot").first
    entries = plot.locator(".legend .traces")
    hidden = "one => one._fullData.filter(({ visible }) => visible === 'legendonly').map(({ name }) => name)"
    for hidden_meanwhile in (False, True):
        visitor.page.set_viewport_size(WINDOW["viewport"])
        visitor.open("tokens", scale="linear", step="16")
        for i in (1, 2):
            entries.nth(i).locator(".legendtoggle").click()
            expect(entries.nth(i)).to_have_css("opacity", "0.5")
        before, width = plot.evaluate(hidden), plot.evaluate("one => one._fullLayout.width")
        if hidden_meanwhile:
            plot.evaluate(
                "one => one.once('plotly_legendclick', ({ node }) => { node.__data__[0].trace.visible = 'legendonly' })"
            )
        plot.evaluate("one => one.data.forEach((trace) => { trace.visible = true; })")
        visitor.page.set_viewport_size({"width": 1000, "height": 900})
        visitor.page.wait_for_function(
            "([one, width]) => one._fullLayout.width !== width", arg=[plot.element_handle(), width]
        )
        visitor.rest()
        for i in (1, 2):
            expect(entries.nth(i)).to_have_css("opacity", "0.5")
        assert before and plot.evaluate(hidden) == before
        entries.nth(1).locator(".legendtoggle").click()
        expect(entries.nth(1)).to_have_css("opacity", "1")
        visitor.rest()
        assert set(plot.evaluate(hidden)) < set(before)
    check_figure_is_kept_at_another_step(visitor, plot)


def check_figure_is_kept_at_another_step(visitor, figure: Locator) -> None:
    """Check that a figure with a hidden curve keeps it and its zoom, and that its line at the chosen step moves."""
    figure.hover()
    expect(figure.locator(".modebar-btn").first).to_be_attached()
    expect(figure.locator(".modebar-btn").first).to_be_hidden()  # they would cover the figure; buttons below save it
    zoom(visitor, figure)
    before, line = figure.evaluate(VIEW), mark_at(figure)
    visitor.page.locator(".bar .track").press("ArrowLeft")
    visitor.expect_query(step="8")
    visitor.settle()
    assert figure.evaluate(VIEW) == before and mark_at(figure) < line


# === Playing ===


def test_playing_moves_only_forward(visit, app):
    """However late the server answers, the line of a figure never moves back, and playing stops at the last step.

    A link that is copied meanwhile has the shown step, even if the address bar still has an earlier one.
    """
    visitor = visit(app)
    visitor.open("tokens", step="0")
    figure = visitor.page.locator(".js-plotly-plot").first
    expect(figure.locator(".shapelayer path").last).to_be_attached()
    visitor.page.evaluate(
        """() => {
            navigator.clipboard.writeText = (text) => {
                window.copied = [text, window.embryoStep];
                return Promise.resolve();
            };
            window.places = [];
            const look = () => {
                const line = [...document.querySelectorAll(".js-plotly-plot .shapelayer path")].at(0);
                if (line) window.places.push(line.getBoundingClientRect().x);
                requestAnimationFrame(look);
            };
            look();
        }"""
    )
    visitor.page.get_by_role("button", name="Play").click()
    visitor.page.wait_for_function("window.embryoStep > 0")
    visitor.page.get_by_role("button", name="Copy link").click()
    visitor.page.wait_for_function("window.copied")
    link, seen = visitor.page.evaluate("window.copied")
    assert parse_qs(urlsplit(link).query)["step"] == [str(seen)] and seen > 0
    visitor.expect_query(step="16")
    visitor.settle()
    expect(step_shown(visitor)).to_have_text("step 16")
    expect(visitor.page.get_by_role("button", name="Play")).to_be_visible()
    places = visitor.page.evaluate("window.places")
    assert places == sorted(places) and places[-1] > places[0]


def test_run_chosen_while_playing_is_played_from_its_first_step(visit, tiny_run: Run, tmp_path: Path):
    """The two runs have no common step. Labels of large steps that are close together are written in full."""
    shutil.copytree(tiny_run.path, tmp_path / "runs" / "early")
    steps = later_by(118_000, Path(shutil.copytree(tiny_run.path, tmp_path / "runs" / "late")))
    with serve(tmp_path) as address:
        visitor = visit(address)
        visitor.open(run="early", step="0")
        visitor.page.evaluate(
            """() => {
                window.shown = [];
                window.addEventListener("embryo:step", ({ detail }) => window.shown.push(detail.step));
            }"""
        )
        visitor.page.get_by_role("combobox", name="Run").click()  # first: the film lasts twelve seconds
        late = visitor.page.get_by_role("option", name="late")
        expect(late).to_be_visible()
        visitor.page.evaluate("window.dispatchEvent(new Event('embryo:play'))")
        visitor.page.wait_for_function("window.embryoStep > 0")
        visitor.page.evaluate(SLOW_CLOCK)  # a busy server may take longer than the film to draw the other run
        late.click()
        labels = visitor.page.locator(".bar svg text[y='38']")
        expect(labels.first).to_have_text("118,016")
        visitor.page.evaluate("window.restoreClock()")
        visitor.page.wait_for_function("last => window.embryoStep === last && !window.embryoPlaying", arg=steps[-1])
        shown = [step for step in visitor.page.evaluate("window.shown") if step in steps]
        assert shown[0] == steps[0] and shown == sorted(shown)
        texts = labels.all_text_contents()
        assert len(texts) == len(set(texts)) > 2 and all(re.fullmatch(r"118,0\d\d", text) for text in texts)


def later_by(steps: int, path: Path) -> list[int]:
    """Add `steps` to the steps of a run's checkpoints, and return the new ones."""
    for checkpoint in runs.checkpoints(runs.read_run(path)):
        manifest = checkpoint.path / "manifest.json"
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"step": checkpoint.step + steps}))
        checkpoint.path.rename(checkpoint.path.with_name(f"step{checkpoint.step + steps}"))
    return [checkpoint.step for checkpoint in runs.checkpoints(runs.read_run(path))]


# === Keys and clicks ===


def test_keys_move_through_steps_and_click_on_any_cell_chooses_row(visit, app):
    """Arrow and page keys change the step and the space bar plays; in a text field they edit the text.

    The step follows to a page that is opened at once. There a click on the last cell of a row chooses its relation.
    """
    visitor = visit(app)
    visitor.open("tokens", step="0")
    expect(step_shown(visitor)).to_have_text("step 0")  # the bar listens from now on
    visitor.heading("Tokens").click()
    for key, step in (("ArrowRight", "8"), ("ArrowLeft", "0"), ("PageUp", "8"), ("PageDown", "0")):
        visitor.page.keyboard.press(key)
        expect(step_shown(visitor)).to_have_text(f"step {step}")
    field = visitor.page.get_by_role("textbox", name="Search")
    field.fill("ab")
    for key in ("ArrowLeft", " ", "PageUp"):
        visitor.page.keyboard.press(key)
    expect(field).to_have_value("a b")
    expect(step_shown(visitor)).to_have_text("step 0")
    visitor.heading("Tokens").click()
    visitor.page.get_by_role("link", name="Knowledge").evaluate(KEY_AND_CLICK)
    expect(visitor.heading("Knowledge")).to_be_visible()
    visitor.rest()
    visitor.expect_query(step="8")
    visitor.heading("Knowledge").click()
    visitor.page.keyboard.press(" ")
    expect(visitor.page.get_by_role("button", name="Pause")).to_be_visible()
    visitor.expect_query(step="16")
    visitor.rest()
    click_last_cells(visitor)


def click_last_cells(visitor) -> None:
    """Click the last cell of two rows of the table, and wait until the second has chosen another relation."""
    relation = "new URL(location).searchParams.get('relation')"
    visitor.page.wait_for_function(relation)
    table = visitor.page.locator(".st-key-relation_table")
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    for row in (1, 2):  # one of them may be chosen already
        before = visitor.page.evaluate(relation)
        visitor.page.mouse.click(box["x"] + box["width"] - 40, box["y"] + 35 * row + 17)
        visitor.rest()
    visitor.page.wait_for_function(f"before => {relation} !== before", arg=before)
