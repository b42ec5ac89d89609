"""Tests of the Query page in a browser: rounds, links, facts, comparisons, files, inert markup, and browser history."""

import csv
import io
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, expect

from embryo_core.types import Run
from tests.browser.conftest import Visitor, serve
from tests.conftest import copy_run, lengthen

TEXT = "Paris is the capital of [MASK] ."
OTHER = "The [MASK] sat ."
MARKUP = "</script><img src=x onerror=window.hurt=1><b>**bold**</b> $x$ :red[x] [MASK]"
LONG = 700  # checkpoints, so that a reader has time to press Stop before all are asked
FIRST_QUERY = 90_000  # milliseconds: the first question to a server imports torch


def open_query(visitor, text: str = TEXT, **query: str) -> None:
    """Open a link to the page with this text."""
    visitor.open("query", **{name: quote(value) for name, value in {"text": text, **query}.items()})


def figure(visitor, name: str) -> Locator:
    """Return the chart whose files have this name once it is drawn; until then the page shows an earlier one."""
    return visitor.page.locator(f'.st-key-figure_{name}[data-stale="false"] .js-plotly-plot')


def choose(visitor, label: str, typed: str) -> None:
    """Type into a select box and take the first hit, at rest, since a page that is being drawn would close the list."""
    visitor.rest()
    box = visitor.page.get_by_role("combobox", name=label)
    box.click()
    box.fill(typed)
    visitor.page.get_by_role("option").first.click()
    visitor.settle()


def saved_file(visitor, button: Locator) -> tuple[str, bytes]:
    """Return the name and the content of the file that this button saves."""
    with visitor.page.expect_download() as download:
        button.click()
    return download.value.suggested_filename, download.value.path().read_bytes()


def click_cell(visitor, name: str, column: int, row: int) -> None:
    """Click the cell of a lens, counted from the lower left, once it shows a hint at the pointer."""
    x, y = figure(visitor, name).evaluate(
        """(plot, [x, y]) => {
            const { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect();
            return [box.x + xaxis._offset + xaxis.d2p(x), box.y + yaxis._offset + yaxis.d2p(y)];
        }""",
        [column, row],
    )
    visitor.point_at(lambda: (x, y), figure(visitor, name).locator(".hoverlayer"), re.compile(r"\S"))
    visitor.page.mouse.click(x, y)


# === A long series ===


@pytest.mark.slow
def test_long_series_is_asked_in_rounds_and_can_be_stopped(visit, tiny_run: Run, tmp_path: Path):
    """The line of progress counts until it is stopped, and after Go on to the last checkpoint, when it disappears."""
    lengthen(copy_run(tiny_run, tmp_path), range(100, 100 + LONG - 3))
    with serve(tmp_path) as address:
        visitor = visit(address)
        visitor.page.goto(f"{address}/query?text={quote(TEXT)}")
        line = visitor.page.locator(".st-key-query_progress")
        expect(line).to_contain_text(f"of {LONG:,} checkpoints asked; going on", timeout=FIRST_QUERY)
        visitor.page.get_by_role("button", name="Stop").click()
        expect(visitor.page.get_by_role("button", name="Go on")).to_be_visible()
        visitor.rest()
        asked = int(line.inner_text().split()[0].replace(",", ""))
        assert 32 <= asked < LONG
        expect(visitor.page.get_by_role("heading", name=f"Over {asked:,} checkpoints")).to_be_visible()
        visitor.page.get_by_role("button", name="Go on").click()
        expect(line).to_have_count(0, timeout=4 * FIRST_QUERY)  # all of them, on a slow machine beside other tests
        expect(visitor.page.get_by_role("heading", name=f"Over {LONG:,} checkpoints")).to_be_visible()


# === Links ===


def test_copied_link_restores_view_in_new_window(visit, app):
    """Text, word, step and the pinned cell of the lens are restored; folding the lens removes its URL parameters."""
    visitor = visit(app)
    visitor.page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=app)
    open_query(visitor, step="8", word="London", probability="log")
    visitor.page.get_by_text("Lens: what each layer would answer").click()
    figure(visitor, "tiny-query-lens").scroll_into_view_if_needed()
    click_cell(visitor, "tiny-query-lens", 1, 0)
    visitor.expect_query(pin="0-8")
    expect(visitor.page.get_by_text("Embeddings at step 8")).to_be_visible()
    visitor.settle()
    visitor.page.get_by_role("button", name="Copy link").click()
    expect(visitor.page.get_by_role("button", name="Copied")).to_be_visible()
    link = visitor.page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(f"{app}/query?") and len(link) < 250

    other = visit(app)
    other.open_link(link)
    expect(other.page.get_by_role("textbox", name="Text with [MASK]")).to_have_value(TEXT)
    expect(other.page.get_by_role("textbox", name="Track a word")).to_have_value("London")
    expect(other.page.get_by_role("heading", name="At step 8")).to_be_visible()
    expect(other.page.get_by_text("Embeddings at step 8")).to_be_visible()
    assert other.query() == visitor.query()

    other.page.get_by_text("Lens: what each layer would answer").click()  # folds it
    expect(other.page.get_by_text("Embeddings at step 8")).to_have_count(0)
    other.settle()
    assert not {"pin", "open"} & other.query().keys()


# === Questions ===


def test_fact_is_found_by_typing_and_marked_in_figure(visit, app):
    """Relation and subject fill the text; the true object has its own curve, and the stored answer is mentioned."""
    visitor = visit(app)
    visitor.open("query")
    visitor.page.get_by_text("A fact, a word to track, a comparison").click()
    choose(visitor, "LAMA relation", "capital (P36)")
    choose(visitor, "Subject", "")
    box = visitor.page.get_by_role("textbox", name="Text with [MASK]")
    expect(box).to_have_value(re.compile(r"The capital of .+ is \[MASK\] \."))
    visitor.rest()  # two charts of one name are on the page for a moment
    expect(figure(visitor, "tiny-query-probability")).to_contain_text("(true object)", timeout=FIRST_QUERY)
    expect(visitor.page.get_by_text("is the answer stored when the run was evaluated on LAMA.")).to_be_visible()


def test_word_and_fact_of_other_pages_can_be_asked(visit, app):
    """The button of a chosen word asks a sentence and tracks the word; the button of a fact asks its question."""
    visitor = visit(app)
    visitor.open("tokens", step="8")
    table = visitor.page.get_by_test_id("stDataFrame").first
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    first = visitor.page.get_by_role("button", name="Ask “").inner_text()
    visitor.page.mouse.click(box["x"] + 60, box["y"] + 35 * 2 + 17)
    visitor.settle()
    ask = visitor.page.get_by_role("button", name="Ask “")
    expect(ask).not_to_have_text(first)
    ask.click()
    expect(visitor.heading("Query")).to_be_visible()
    visitor.settle()
    assert "[MASK]" in visitor.query()["text"] and visitor.query()["word"] and visitor.query()["step"] == "8"
    expect(visitor.page.get_by_text("Tracked:")).to_be_visible(timeout=FIRST_QUERY)

    visitor.follow("Knowledge")
    visitor.page.get_by_role("button", name="Ask it").click()
    expect(visitor.heading("Query")).to_be_visible()
    visitor.settle()
    assert visitor.query()["subject"] and "[MASK]" in visitor.query()["text"]


def test_two_sentences_share_axes_and_are_labelled(visit, app):
    """Side by side each sentence has one heading; in a narrow window every part of an answer repeats its sentence."""
    visitor = visit(app)
    open_query(visitor, compare="text", text2=OTHER)
    ranges = [
        figure(visitor, name).evaluate(
            "plot => JSON.stringify([plot._fullLayout.xaxis.range, plot._fullLayout.yaxis.range])"
        )
        for name in ("tiny-query-probability", "tiny-query-probability-2")
    ]
    assert ranges[0] == ranges[1]
    for width, headings, repeated in ((1400, 2, 0), (880, 0, 6)):
        visitor.page.set_viewport_size({"width": width, "height": 1000})
        for key, count in (("questions_", headings), ("again_", repeated)):
            labels = visitor.page.locator(f'[class*="st-key-{key}"]').get_by_test_id("stMarkdown")
            expect(labels.locator("visible=true")).to_have_count(count)
    cells = visitor.page.get_by_test_id("stColumn").filter(has=figure(visitor, "tiny-query-probability-2"))
    expect(cells.last).to_contain_text(OTHER)


@pytest.mark.slow
def test_long_joint_answer_is_wrapped_on_phone(visit, app_of_demo: str):
    """The final answer, which the demo's model gives confidently, is longer than a line and is not cut off."""
    visitor = visit(app_of_demo)
    visitor.page.set_viewport_size({"width": 390, "height": 1000})
    again = "the [MASK] States of America and the United [MASK] of America and the United States of [MASK] ."
    open_query(visitor, f"The United States of America , {again}")
    value = visitor.page.locator(".st-key-lead_1").get_by_test_id("stMetricValue").first
    expect(value).to_be_visible()
    cut = "one => [one, ...one.querySelectorAll('*')].filter((part) => part.scrollWidth > part.clientWidth + 1).length"
    assert len(value.inner_text()) > 20 and value.evaluate(cut) == 0


# === Files ===


def test_figures_are_saved_under_their_names(visit, app):
    """The rank curve is saved as CSV; the lens, which is wider than the page, as SVG, PNG and CSV."""
    visitor = visit(app)
    open_query(visitor, curves="rank", open="lens")
    for name, pictures in (("tiny-query-rank", {}), ("tiny-query-lens", {"svg": b"<svg", "png": b"\x89PNG"})):
        for kind, start in pictures.items():
            title, content = saved_file(
                visitor, visitor.files(name).get_by_role("button", name=kind.upper(), exact=True)
            )
            assert (title, content[: len(start)]) == (f"{name}.{kind}", start)
        title, content = saved_file(
            visitor, visitor.files(name).get_by_test_id("stDownloadButton").get_by_role("button")
        )
        rows = list(csv.DictReader(io.StringIO(content.decode())))
        assert title == f"{name}.csv" and {"token", "step", "probability", "rank"} <= rows[0].keys()


def test_frame_of_lens_has_no_border_without_content(visit, app):
    """The form, which is hidden, has no border either; the time bar is at the top."""
    visitor = visit(app)
    visitor.page.goto(f"{app}/query?figure=tiny-query-lens&embed=true")
    expect(figure(visitor, "tiny-query-lens")).to_be_visible()
    visitor.rest()
    empty = visitor.page.get_by_test_id("stVerticalBlock").evaluate_all(
        """blocks => blocks.filter((block) => block.offsetHeight && !block.querySelector(".js-plotly-plot")
            && getComputedStyle(block).borderTopWidth !== "0px").map(({ className }) => className)"""
    )
    assert not empty and visitor.page.locator(".st-key-time").bounding_box()["y"] < 20


# === Safety ===


def test_typed_markup_is_neither_run_nor_rendered(visit, app):
    """A script, an image with a handler, HTML and Markdown are typed in every box."""
    visitor = visit(app)
    open_query(visitor, MARKUP, word=MARKUP, compare="text", text2=MARKUP)
    visitor.rest()  # an image would have failed to load by now
    assert visitor.page.evaluate("window.hurt") is None
    assert visitor.page.locator("img[src=x]").count() == 0
    assert visitor.page.locator("b:has-text('**bold**'), strong:has-text('bold')").count() == 0


# === Browser history ===


def test_back_returns_to_previous_page_at_once(visit, app):
    """After two links, two presses of Back show the two pages before."""
    visitor = visit(app)
    visitor.open("tokens")
    visitor.follow("Knowledge")
    visitor.expect_query(step="16")
    visitor.follow("Query")
    visitor.expect_query(step="16")
    for title in ("Knowledge", "Tokens"):
        visitor.rest()  # a component that has just appeared may request one more run of its page
        visitor.page.go_back()
        expect(visitor.heading(title)).to_be_visible()
        visitor.settle()


def test_early_parameters_of_next_page_add_no_history_entry(visit, app):
    """A busy browser may add the next page's parameters to the current URL; the next page then replaces that entry."""
    visitor = visit(app)
    visitor.open("tokens")
    visitor.expect_query(step="16")
    addresses = "navigation.entries().map((entry) => entry.url)"
    before = visitor.page.evaluate(addresses)
    follow = "(pages) => pages.forEach((page) => history.pushState({}, '', `/${page}?run=tiny&scale=log`))"
    visitor.page.evaluate(follow, ["tokens", "knowledge"])
    assert visitor.page.evaluate(addresses) == [*before, f"{app}/knowledge?run=tiny&scale=log"]


LATE = """
    const create = URL.createObjectURL;
    URL.createObjectURL = (blob) => {
        const late = "while (!location.search.includes('step')) await new Promise((go) => setTimeout(go, 50));";
        return create(blob.type === "text/javascript" ? new Blob([late, blob], blob) : blob);
    };
"""  # delays the scripts of components until the URL is complete


@pytest.mark.parametrize(
    ("link", "script"),
    [({}, LATE), pytest.param({"run": "tiny"}, "", marks=pytest.mark.slow)],
    ids=["bare, late", "partial, in time"],
)
def test_back_skips_url_that_page_completed(visit, app, link: dict[str, str], script: str):
    """The URL of a link with few or no parameters and the one that the page completes are a single history entry."""
    visitor = visit(app)
    visitor.page.add_init_script(script)
    visitor.open("overview", run="tiny", step="16", scale="log")
    overview = visitor.page.url
    visitor.open("tokens", **link)
    visitor.expect_query(step="16")
    tokens = visitor.page.url
    visitor.page.go_back()
    expect(visitor.heading("Overview")).to_be_visible()
    visitor.rest()
    expect(visitor.page).to_have_url(overview)
    visitor.page.go_forward()
    expect(visitor.heading("Tokens")).to_be_visible()
    expect(visitor.page).to_have_url(tokens)


def test_back_on_first_page_stays_there(visit, app):
    """In a new window Back leads to the first URL, which the page has completed."""
    opener = visit(app)
    opener.page.context.add_init_script(LATE)
    with opener.page.expect_popup() as window:
        opener.page.evaluate("address => void window.open(address)", f"{app}/tokens")
    visitor = Visitor(window.value, app)
    visitor.expect_query(step="16")
    visitor.rest()
    tokens = visitor.page.url
    assert visitor.page.evaluate("navigation.entries().length") == 2
    visitor.page.go_back()
    expect(visitor.heading("Tokens")).to_be_visible()
    expect(visitor.page).to_have_url(tokens)  # not at once: the script is notified after the browser has gone back
    assert not visitor.errors
