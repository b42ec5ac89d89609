"""Tests of a static site in Chromium, opened from files without a network."""

import base64
import csv
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from playwright.sync_api import Browser, Page, expect

from embryo_core import results, runs
from embryo_core.browser import growth, head_maps
from embryo_core.comparison import StepCounts
from embryo_core.curves import interval, smooth
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.smoothing import WINDOWS
from embryo_core.runs.schema import BestAnswers, ExampleQuestion
from embryo_core.site.drawings import Drawing
from embryo_core.site.pages import PAGES, Panel
from embryo_core.types import Run
from tests.browser.conftest import PATIENCE, WINDOW


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """Yield a page without a network; any error and any request to a host fails the test."""
    context = chromium.new_context(**WINDOW, offline=True, accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: faults.append(request.url) if request.url.startswith(("http", "ws")) else None)
    yield page
    context.close()
    assert not faults


def test_every_page_opens_and_draws_its_figures(tiny_site: Path, page: Page):
    """Every page of the menu has a headline or a section; Overview, Tokens and Probing draw a figure."""
    page.goto((tiny_site / "index.html").as_uri())
    expect(page.locator(".note strong")).to_have_text("Note")
    titles = page.locator("nav a").all_inner_texts()
    for title in titles:
        page.get_by_role("link", name=title, exact=True).first.click()
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        expect(page.locator(".headline:not(:empty), section").first).to_be_visible()
        if title in ("Overview", "Tokens", "Probing"):
            expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    check_tiles(page, tiny_site)


def check_tiles(page: Page, folder: Path) -> None:
    """Check that an answer that is a number comes after more probable words, and that zeros are at the bottom."""
    answers = [BestAnswers(8, {"in": 0.5, "until": 0.25, "18": 0.125})]
    zeros = pd.DataFrame({"group": "noun", "step": [0, 8], "accuracy": 0.0})
    sentence = growth.sentence_tile(ExampleQuestion("Founded [MASK] 1890.", "in", 8, answers))
    payload = head_maps.pack({"sentence": sentence, "curves": growth.curves_tile(zeros, "log")})
    page.goto((folder / "index.html").as_uri())
    best, words, points = page.evaluate(
        """async (payload) => {
            await load("site");
            const host = document.body.appendChild(document.createElement("div"));
            mount(host, "growth", Uint8Array.from(atob(payload), (sign) => sign.charCodeAt(0)));
            const texts = (selector) => [...host.shadowRoot.querySelectorAll(selector)].map((one) => one.textContent);
            const line = host.shadowRoot.querySelector("polyline");
            return [texts(".text b"), texts(".answers span"), line.getAttribute("points")];
        }""",
        base64.b64encode(payload).decode(),
    )
    assert best == ["in"] and words[::2] == ["in", "until", "18"]
    assert points == "3,146 297,146"


def test_tables_match_stored_scores_and_can_be_searched(tiny_site: Path, page: Page, tiny_results: Run):
    """A key changes the step of the table and the URL; the CSV has the stored scores with their intervals.

    The search in a long table ignores case and keeps only the rows that contain the text.
    """
    page.goto((tiny_site / "tokens.html").as_uri())
    expect(page.locator("#accuracy .js-plotly-plot .main-svg").first).to_be_visible()
    page.keyboard.press("ArrowLeft")
    numbers = page.locator("#accuracy details.numbers summary")
    expect(numbers).to_have_text("Numbers at step 8")
    page.wait_for_url("**#*step=8*")
    numbers.click()
    with page.expect_download() as download:
        page.locator("#accuracy").get_by_role("button", name="CSV").click()
    rows = [*csv.DictReader(StringIO(Path(download.value.path()).read_text()))]
    scores = results.read_scores(tiny_results, "mask_prediction").set_index(["group", "step"])
    assert len(rows) > 3
    for row in rows:
        stored = scores.loc[(row["group"], int(row["step"]))]
        low, high = interval(stored["value"], stored["n"])
        assert [float(row[name]) for name in ("accuracy", "low", "high")] == pytest.approx([stored["value"], low, high])
    shown = page.locator("#accuracy .numbers tbody tr").all_inner_texts()
    at_8 = [row["accuracy"] for row in rows if row["step"] == "8"]
    assert len(shown) == len(at_8) and all(value in text for value, text in zip(at_8, shown, strict=True))

    page.locator("summary", has_text="Words behind").click()
    found = page.locator("details:has(input) tbody tr")
    expect(found.first).to_be_visible()
    word = results.read_words(tiny_results, "mask_prediction", step=16)["word"].str.lower().iloc[0]
    page.get_by_role("searchbox").fill(word.upper())
    expect(page.get_by_text("rows found")).to_be_visible()
    assert all(word in text.lower() for text in found.all_inner_texts()) and found.count() < 500


def test_url_parameters_choose_one_figure_or_none(tiny_site: Path, page: Page):
    """The URL asks for one figure with a linear axis; the page is dark if the reader prefers it.

    If it is unknown, a message lists the names of the page's figures. Every JavaScript object has properties of some
    names, which must not be taken for runs or units.
    """
    page.emulate_media(color_scheme="dark")
    page.goto((tiny_site / "tokens.html").as_uri() + "#embed=acquisition&step=8&scale=linear")
    expect(page.locator("section")).to_have_count(1)
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    expect(page.locator("nav")).to_be_hidden()
    assert page.locator(".js-plotly-plot").evaluate("plot => plot._fullLayout.xaxis.type") == "linear"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(25, 24, 22)"

    page.goto("about:blank")
    page.goto((tiny_site / "tokens.html").as_uri() + "#embed=nonsense&unit=constructor")
    expect(page.get_by_text("nonsense")).to_contain_text("accuracy, rescaled, acquisition")
    page.goto((tiny_site / "probing.html").as_uri() + "#embed=Every fact")
    expect(page.get_by_text("'Every fact'")).to_contain_text("layers")

    for address in ("unit=constructor", "run=__proto__&beside=toString&step=x&scale=valueOf"):
        page.goto("about:blank")
        page.goto((tiny_site / "tokens.html").as_uri() + f"#{address}")
        expect(page.locator("#accuracy .js-plotly-plot .main-svg").first).to_be_visible()


def test_head_is_chosen_among_small_maps_and_saved(tiny_site: Path, page: Page, tiny_results: Run):
    """Arrow keys choose a head, which is shown large and named in the URL.

    The CSV has a row for each weight of a head, within 1.6 % of the stored one.
    """
    page.goto((tiny_site / "attention.html").as_uri())
    grid = page.locator("canvas.cells")
    expect(grid).to_be_visible()
    before = page.locator("#head h2").inner_text()
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft"):
        grid.focus()
        page.keyboard.press(key)
    expect(page.locator("#head h2")).not_to_have_text(before)
    page.wait_for_url("**#*head=Layer*")

    page.goto("about:blank")
    page.goto((tiny_site / "attention.html").as_uri() + "#head=Layer 1, head 2")
    expect(page.locator("#head canvas").first).to_be_visible()
    with page.expect_download() as download:
        page.locator("#head").get_by_role("button", name="CSV").click()
    rows = [*csv.DictReader(StringIO(Path(download.value.path()).read_text()))]
    maps = results.read_attention(tiny_results, 1, 2, [int(rows[-1]["step"])])
    last = [float(row["weight"]) for row in rows if row["step"] == rows[-1]["step"]]
    stored = maps.weights[-1].ravel().tolist()
    assert {(row["layer"], row["head"]) for row in rows} == {("1", "2")}
    assert last == pytest.approx(stored, rel=0.016, abs=1e-3 * max(stored))


def test_curves_are_drawn_over_tokens_and_smoothed(tiny_site: Path, page: Page, tiny_results: Run):
    """Measured points are at their checkpoints' tokens, and each curve has a line of running means of three."""
    page.goto((tiny_site / "tokens.html").as_uri() + "#unit=tokens&smoothing=3")
    expect(page.locator("#accuracy .js-plotly-plot .main-svg").first).to_be_visible()
    traces = page.locator("#accuracy .js-plotly-plot").evaluate(
        """plot => plot._fullData.filter(({ y }) => y.length === 3)
            .map(({ x, y, name, mode }) => ({ x: [...x], y: [...y], name, mode }))"""
    )
    measured = {trace["name"]: trace for trace in traces if trace["mode"] == "lines+markers"}
    means = {
        trace["name"].removesuffix(", smoothed"): trace["y"] for trace in traces if trace["name"].endswith(", smoothed")
    }
    tokens = [checkpoint.tokens for checkpoint in runs.checkpoints(tiny_results)]
    assert measured and set(measured) == set(means)
    for name, one in measured.items():
        assert one["x"][1:] == tokens[1:] and one["x"][0] > 0
        assert means[name] == pytest.approx(smooth(one["y"], 3))
    assert page.locator("#smoothing option").evaluate_all("all => all.map(one => Number(one.value))") == [*WINDOWS]
    assert (
        page.locator("#accuracy .js-plotly-plot").evaluate("plot => plot._fullLayout.xaxis.title.text") == "tokens seen"
    )
    with page.expect_download() as download:
        page.locator("#accuracy").get_by_role("button", name="SVG").first.click()
    assert ">tokens seen<" in Path(download.value.path()).read_text()


SHOWN = """async ([file, unit, window]) => {
    const figure = await load(file);
    const now = { run: page.site.names[0], unit, scale: "log" };
    const plain = (values) => [...(numbersOf(values) ?? [])].map((value) => (Number.isNaN(value) ? null : value));
    const draw = ({ data, layout }) => {
        const axes = Object.entries(layout).filter(([name]) => /^xaxis/.test(name));
        const traces = data.map(({ x, y, error_x }) => [x, y, error_x?.array, error_x?.arrayminus]);
        return [
            traces.map((parts) => parts.map(plain)),
            axes.map(([, axis]) => axis.title?.text || ""),
            axes.map(([, axis]) => [...(axis.tickvals ?? [])]),
            (layout.shapes ?? []).map(({ x0, x1 }) => [x0, x1]),
        ];
    };
    const { layout } = figure.files.log.two;
    const saved = recounted({ data: [], layout }, now);
    return [draw(smoothed(recounted(figure.plots.log[1], now), window)), draw(saved)[1]];
}"""


def drawn_data(plot: go.Figure) -> list:
    """Return the places of a plot's points and error bars, its axes' titles and ticks, and its shapes, as in SHOWN."""

    def plain(values: Any) -> list:
        return [] if values is None else [None if pd.isna(value) else value for value in np.asarray(values).tolist()]

    names = ("x", "y", "error_x.array", "error_x.arrayminus")
    traces = [[plain(trace[name]) if name in trace else [] for name in names] for trace in plot.data]
    axes = [*plot.select_xaxes()]
    titles = [axis.title.text or "" for axis in axes]
    shapes = [[shape.x0, shape.x1] for shape in plot.layout.shapes]
    return [traces, titles, [plain(axis.tickvals) for axis in axes], shapes]


def test_figures_in_tokens_match_dashboard(tiny_site: Path, page: Page, tiny_results: Run):
    """The first choice of every panel has the same points, smoothed lines, error bars, titles, ticks and shapes."""
    page.goto((tiny_site / "tokens.html").as_uri())
    page.wait_for_function("() => page.parts.length")
    compared, folder = [], page.evaluate("Object.values(page.site.views)[0]")
    for name, (_, make) in PAGES.items():
        for part in make([tiny_results], AxisChoice().for_run(tiny_results)).parts:
            file = f"{folder}/{name}-{part.name}-0" if isinstance(part, Panel) else ""
            if not (tiny_site / "data" / f"{file}.js").exists():
                continue
            figure = part.make([tiny_results], AxisChoice("log", "tokens", 3), **next(iter(part.choices.values())))
            if isinstance(figure, Drawing):
                continue
            shown, titles_in_file = page.evaluate(SHOWN, [file, "tokens", 3])
            for found, expected in zip(shown, drawn_data(figure.plot), strict=True):
                assert found == approx(expected), (name, part.name)
            assert titles_in_file == drawn_data(go.Figure(layout=figure.file_sizes["two"]["layout"]))[1]
            compared.append(part.name)
    assert len(compared) > 20 and {"heat", "panels", "peaks", "accuracy", "scores"} <= {*compared}


def approx(value: Any) -> Any:
    """Return nested lists whose numbers are compared within rounding."""
    if isinstance(value, list):
        return [approx(part) for part in value]
    return pytest.approx(value, rel=1e-9) if isinstance(value, int | float) else value


def test_unit_beyond_last_checkpoint_gap_and_estimates(tiny_site: Path, page: Page):
    """Points beyond the last step follow its rate, error bars are placed too, and a smoothed line breaks at a gap.

    The table of numbers skips steps that are no checkpoint's, and names the chosen one in the unit of the run's steps.
    """
    counts = StepCounts((0, 1000, 2000), (0.0, 100.0, 1000.0))
    page.goto((tiny_site / "tokens.html").as_uri())
    expect(page.locator("#accuracy .numbers summary")).to_have_text("Numbers at step 16")
    x, bars, means, label = page.evaluate(
        """(counts) => {
            const [part] = page.parts;
            const run = page.site.runs[part.now.run];
            run.bar.counted = "words";
            Object.assign(part.figure, { csv: "step,sigmoid\\n8,1\\n12,2\\n", rows: undefined });
            part.list();
            const axes = { linear: { title: { text: "tokens seen" } } };
            const tokens = { counts: counts.counts, values: { linear: counts.counts }, axes };
            const bar = { steps: counts.steps, values: { linear: counts.steps } };
            page.site.runs.made = { bar, title: "step", heading: " step", units: { tokens } };
            const error_x = { array: [1, 0, 0, 0], arrayminus: [500, 0, 0, 0] };
            const line = { x: [2000, 2001, 2500, 3000], y: [1, null, 2, 6], meta: "smoothable", line: {}, error_x };
            const layout = { xaxis: { type: "linear", title: { text: "step" } } };
            const { data } = recounted({ data: [line], layout }, { run: "made", unit: "tokens" });
            const [{ x, error_x: bars }] = data;
            return [x, bars, smoothed({ data: [line], layout }, 3).data[1].y, part.numbers.textContent];
        }""",
        {"steps": counts.steps, "counts": counts.counts},
    )
    assert x == approx(counts.at([2000, 2001, 2500, 3000]).tolist())
    assert bars["array"][0] == pytest.approx(0.9) and bars["arrayminus"][0] == pytest.approx(450)
    assert means == [1.5, None, 3, 4] and label == "Numbers at 8 words"
