"""Tests of the Query page in a browser: rounds, links, facts, comparisons, files, and inert markup."""

import csv
import io
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, expect

from embryo_core.types import Run
from tests.browser.conftest import serve
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


# === Links and files ===


def test_view_is_restored_from_link_saved_and_embedded(visit, app):
    """A copied link restores text, word, step and the pinned cell of the lens in a new window.

    Folding the lens removes its URL parameters. The button also says if nothing was copied.
    """
    visitor = visit(app)
    visitor.page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=app)
    open_query(visitor, step="8", word="London", probability="log")
    visitor.page.get_by_text("Lens: what each layer would answer").click()
    figure(visitor, "tiny-query-lens").scroll_into_view_if_needed()
    click_cell(visitor, "tiny-query-lens", 1, 0)
    visitor.expect_query(pin="0-8")
    expect(visitor.page.get_by_text("Embeddings at step 8")).to_be_visible()
    visitor.settle()
    link = copied_link(visitor)
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
    check_files(visitor)
    check_frame(visitor)


def copied_link(visitor) -> str:
    """Return the link that the page copies, after a check that a refused copy is shown for a moment and announced."""
    visitor.page.evaluate(
        """() => {
            window.write = navigator.clipboard.writeText;
            navigator.clipboard.writeText = () => Promise.reject(new Error("refused"));
        }"""
    )
    visitor.page.get_by_role("button", name="Copy link").click()
    expect(visitor.page.get_by_role("button", name="Not copied")).to_have_attribute("aria-live", "polite")
    visitor.page.evaluate("() => { navigator.clipboard.writeText = window.write; }")
    visitor.page.get_by_role("button", name="Copy link").click()
    expect(visitor.page.get_by_role("button", name="Copied", exact=True)).to_be_visible()
    return visitor.page.evaluate("navigator.clipboard.readText()")


def check_files(visitor) -> None:
    """Check that the rank curve is saved as CSV, and the lens, which is wider than the page, as SVG, PNG and CSV."""
    open_query(visitor, curves="rank", open="lens")
    for name, pictures in (("tiny-query-rank", {}), ("tiny-query-lens", {"svg": b"<svg", "png": b"\x89PNG"})):
        menu = visitor.files(name)
        for kind, start in pictures.items():
            title, content = visitor.save(menu.get_by_role("button", name=kind.upper(), exact=True))
            assert (title, content[: len(start)]) == (f"{name}.{kind}", start)
        title, content = visitor.save(menu.get_by_test_id("stDownloadButton").get_by_role("button"))
        rows = list(csv.DictReader(io.StringIO(content.decode())))
        assert title == f"{name}.csv" and {"token", "step", "probability", "rank"} <= rows[0].keys()


def check_frame(visitor) -> None:
    """Check that a frame of the lens has no border around the hidden form, and has the time bar at the top."""
    visitor.page.goto(f"{visitor.address}/query?figure=tiny-query-lens&embed=true")
    expect(figure(visitor, "tiny-query-lens")).to_be_visible()
    visitor.rest()
    empty = visitor.page.get_by_test_id("stVerticalBlock").evaluate_all(
        """blocks => blocks.filter((block) => block.offsetHeight && !block.querySelector(".js-plotly-plot")
            && getComputedStyle(block).borderTopWidth !== "0px").map(({ className }) => className)"""
    )
    assert not empty and visitor.page.locator(".st-key-time").bounding_box()["y"] < 20


# === Questions ===


def test_texts_and_facts_are_answered_at_chosen_step_and_over_all(visit, app):
    """A text without [MASK] and one of 14,000 characters get a message, a text with one [MASK] answers and a curve.

    Relation and subject fill the text; the true object has its own curve, and the stored answer is mentioned.
    """
    visitor = visit(app)
    visitor.open("query")
    box = visitor.page.get_by_role("textbox", name="Text with [MASK]")
    for text, answer in (("Paris is a city .", "The text has no [MASK]"), ("[MASK] " * 2000, "at most")):
        box.fill(text)
        box.press("Control+Enter")
        expect(visitor.page.get_by_test_id("stAlert").filter(has_text=answer)).to_be_visible()
        visitor.settle()
    box.fill("Berlin is the capital of [MASK] .")
    visitor.page.get_by_role("button", name="Ask", exact=True).click()  # takes the text just typed
    visitor.expect_query(text="Berlin is the capital of [MASK] .")
    visitor.settle()
    expect(visitor.page.get_by_role("heading", name="At step 16")).to_be_visible()
    expect(visitor.page.get_by_role("heading", name="Over 3 checkpoints")).to_be_visible()
    expect(visitor.page.locator(".js-plotly-plot").first).to_be_visible()

    visitor.page.get_by_text("A fact, a word to track, a comparison").click()
    choose(visitor, "LAMA relation", "capital (P36)")
    choose(visitor, "Subject", "")
    expect(box).to_have_value(re.compile(r"The capital of .+ is \[MASK\] \."))
    visitor.rest()  # two charts of one name are on the page for a moment
    expect(figure(visitor, "tiny-query-probability")).to_contain_text("(true object)", timeout=FIRST_QUERY)
    expect(visitor.page.get_by_text("is the answer stored when the run was evaluated on LAMA.")).to_be_visible()


def test_word_and_fact_of_other_pages_can_be_asked(visit, app):
    """A word is chosen by an arrow key or a click, which name it on the button below the table and do not ask it.

    The button asks a sentence and tracks the word; the button of a fact asks its question.
    """
    visitor = visit(app)
    visitor.open("tokens", step="8")
    table, ask = visitor.page.get_by_test_id("stDataFrame").first, visitor.page.get_by_role("button", name="Ask “")
    first = ask.inner_text()
    table.locator("canvas").first.focus()
    for _ in range(2):
        visitor.page.keyboard.press("ArrowDown")
    expect(ask).not_to_have_text(first)
    visitor.rest()  # each key draws the page again
    second = ask.inner_text()
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    visitor.page.mouse.click(box["x"] + 60, box["y"] + 35 * 4 + 17)
    expect(ask).not_to_have_text(second)
    visitor.rest()
    expect(visitor.heading("Tokens")).to_be_visible()
    word = ask.inner_text()[len("Ask “") : -1]
    ask.press("Enter")
    expect(visitor.heading("Query")).to_be_visible()
    visitor.expect_query(word=word)
    visitor.settle()
    assert "[MASK]" in visitor.query()["text"] and visitor.query()["step"] == "8"
    expect(visitor.page.get_by_text("Tracked:")).to_be_visible(timeout=FIRST_QUERY)

    visitor.follow("Knowledge")
    visitor.page.get_by_role("button", name="Ask it").click()
    expect(visitor.heading("Query")).to_be_visible()
    visitor.settle()
    assert visitor.query()["subject"] and "[MASK]" in visitor.query()["text"]


def test_two_sentences_share_axes_are_labelled_and_not_rendered(visit, app):
    """Side by side each sentence has one heading; in a narrow window every part of an answer repeats its sentence.

    A script, an image with a handler, HTML and Markdown, typed in every box, are neither run nor rendered.
    """
    visitor = visit(app)
    open_query(visitor, MARKUP, word=MARKUP, compare="text", text2=MARKUP)
    visitor.rest()  # an image would have failed to load by now
    assert visitor.page.evaluate("window.hurt") is None
    assert visitor.page.locator("img[src=x]").count() == 0
    assert visitor.page.locator("b:has-text('**bold**'), strong:has-text('bold')").count() == 0

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
