"""Eyes, keyboard and phone: no serious violation that axe-core finds, cells by keyboard, and room on a small screen."""

import re
from itertools import pairwise

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from embryo_core.findings import FINDINGS

VIEWS = {  # every page and section: its path and parameters
    "overview": ("", {}),
    "folds": ("", {"open": "card,objective,ngrams,computed,length,embeddings,similarity,phases"}),
    "findings": ("findings", {}),
    "tokens": ("tokens", {}),
    "single tags": ("tokens", {"family": "single tags", "order": "paper"}),
    "maps": ("attention", {"section": "maps"}),
    "layers and steps": ("attention", {"section": "layers"}),
    "heads": ("attention", {"section": "heads"}),
    "sentence": ("attention", {"section": "sentence"}),
    "tasks": ("probing", {"probing": "tasks"}),
    "layers": ("probing", {"probing": "layers"}),
    "order": ("probing", {"probing": "order"}),
    "geometry": ("geometry", {}),
    "grammar": ("grammar", {}),
    "words": ("words", {}),
    "knowledge": ("knowledge", {}),
    "relations": ("knowledge", {"panels": "on"}),
    "fine-tuning": ("finetuning", {}),
    "query": ("query", {"open": "lens"}),
    "compare": ("compare", {}),
}
GRAVE = ("serious", "critical")
PHONE = {"width": 390, "height": 844}


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_grave(visit, app, view: str):
    """On every page and section, light and dark."""
    visitor = visit(app)
    path, query = VIEWS[view]
    for scheme in ("light", "dark"):
        visitor.page.emulate_media(color_scheme=scheme)
        visitor.open(path, **query)
        found = Axe().run(visitor.page).response["violations"]
        grave = [
            f"{scheme}, {one['id']}: {node['html'][:160]}"
            for one in found
            if one["impact"] in GRAVE
            for node in one["nodes"]
        ]
        assert not grave, "\n".join(grave)


def test_the_keyboard_is_seen_in_the_navigation(visit, app):
    """The page that it has come to has a line around it, in both schemes."""
    visitor = visit(app)
    for scheme in ("light", "dark"):
        visitor.page.emulate_media(color_scheme=scheme)
        visitor.open("findings")
        for _ in ("the link that skips it", "its first page"):
            visitor.page.keyboard.press("Tab")
        link = visitor.page.locator("[data-testid=stHeader] :is(a, button):focus-visible")
        expect(link).to_have_css("outline", re.compile("solid 2px"))


def test_cells_are_reached_and_chosen_by_keyboard(visit, app):
    """A heat map is one tab stop; arrows announce cells and leave the step alone, Enter chooses one.

    A table chooses nothing while Tab goes through; the first arrow key does.
    """
    visitor = visit(app)
    visitor.open("attention", section="heads", layer="1", head="1", pattern="entropy", step="8")
    page, figure = visitor.page, visitor.page.get_by_role("application").first
    figure.focus()
    announced = figure.get_by_role("status")
    cells = {"ArrowDown": ("layer 1, head 1", "layer 2, head 1"), "ArrowRight": ("layer 2, head 2",)}
    for key, cell in [(key, cell) for key, reached in cells.items() for cell in reached]:
        page.keyboard.press(key)
        expect(announced).to_contain_text(cell)
    page.keyboard.press("Enter")
    visitor.expect_query(layer="2", head="2", step="8")
    visitor.rest()
    before = page.url
    page.get_by_role("button", name="Fullscreen: All patterns").focus()
    for key in ("Tab", "Tab", "Shift+Tab"):
        page.keyboard.press(key)
    expect(page.locator(".stDataFrame canvas").first).to_be_focused()
    visitor.rest()
    assert page.url == before
    page.keyboard.press("ArrowDown")
    page.wait_for_function("before => location.href !== before", arg=before)


def test_a_table_has_a_name_and_is_one_stop_of_the_tab_key(visit, app):
    """The arrow keys go from cell to cell; Tab goes on, in either direction."""
    visitor = visit(app)
    visitor.open("findings")
    table = visitor.page.get_by_test_id("stDataFrame").first
    canvas = table.locator("canvas").first
    for key in ("Tab", "Shift+Tab"):
        canvas.focus()
        visitor.page.keyboard.press(key)
        assert table.evaluate(
            "one => !one.contains(document.activeElement) || document.activeElement.tagName !== 'CANVAS'"
        )
    expect(visitor.page.locator("[aria-label='All findings']").first).to_be_attached()


def test_an_arrow_key_chooses_a_word_and_asks_nothing(visit, app):
    """The button below the table names the word, and opens the Query page."""
    visitor = visit(app)
    visitor.open("tokens")
    ask = visitor.page.get_by_role("button", name="Ask “")
    first = ask.inner_text()
    visitor.page.get_by_test_id("stDataFrame").first.locator("canvas").first.focus()
    for _ in range(2):
        visitor.page.keyboard.press("ArrowDown")
    expect(ask).not_to_have_text(first)
    expect(visitor.heading("Tokens")).to_be_visible()
    word = ask.inner_text()[len("Ask “") : -1]
    ask.press("Enter")
    expect(visitor.heading("Query")).to_be_visible()
    visitor.expect_query(word=word)


def test_a_head_chosen_by_keyboard_is_announced(visit, app):
    """Arrows go through the small multiples; hover texts are announced, and not at other times."""
    visitor = visit(app)
    visitor.open("attention", section="maps", layer="1", head="1", step="8")
    heads = visitor.page.get_by_role("application", name="Attention maps of 2 layers")
    announced = visitor.page.locator(".grid").get_by_role("status")
    expect(announced).to_be_empty()
    heads.focus()
    visitor.page.keyboard.press("ArrowDown")
    expect(announced).to_contain_text("step 8; layer 2, head 1: largest weight")
    visitor.expect_query(layer="2", head="1", step="8")


def test_a_copy_that_the_browser_refuses_is_shown(visit, app):
    """On the button, and to those who do not see it; it was shown as if nothing had been pressed."""
    visitor = visit(app)
    visitor.page.add_init_script("navigator.clipboard.writeText = () => Promise.reject(new Error('refused'))")
    visitor.open()
    visitor.page.get_by_role("button", name="Copy link").click()
    button = visitor.page.get_by_role("button", name="Not copied")
    expect(button).to_have_attribute("aria-live", "polite")
    expect(visitor.page.get_by_role("button", name="Copy link")).to_be_visible()


def test_a_phone_has_a_labelled_menu_that_closes(visit, app):
    """It covers the page until one is chosen. Findings are a list in place of the table, which would cut them."""
    visitor = visit(app)
    visitor.page.set_viewport_size(PHONE)
    visitor.open("findings")
    rows = visitor.page.locator(".st-key-findings_list li")
    assert rows.count() == len(FINDINGS)
    assert rows.first.is_visible() and not visitor.page.get_by_test_id("stDataFrame").first.is_visible()
    menu = visitor.page.get_by_test_id("stExpandSidebarButton")
    labelled = """button => getComputedStyle(button, "::after").content === '"Menu"'"""
    visitor.page.wait_for_function(labelled, arg=menu.element_handle())  # the page's styles come with its content
    menu.click()
    visitor.page.get_by_test_id("stSidebarNavLink").filter(has_text="Knowledge").click()
    expect(visitor.heading("Knowledge")).to_be_visible()
    expect(visitor.page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")


def test_a_phone_scrolls_down_and_not_sideways(visit, app):
    """On every page and section nothing is wider than the screen, and the time bar's reading is in it.

    Headings go down one level at a time: h1 is followed by h2.
    """
    visitor = visit(app)
    visitor.page.set_viewport_size(PHONE)
    for view, (path, query) in VIEWS.items():
        visitor.open(path, **query)
        assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
        assert visitor.page.get_by_test_id("stMain").evaluate("one => one.scrollWidth <= one.clientWidth"), view
        box = visitor.page.locator(".reading").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"], view
        levels = visitor.page.locator("h1, h2, h3, h4").evaluate_all("all => all.map(one => Number(one.tagName[1]))")
        assert levels[0] == 1 and all(below <= above + 1 for above, below in pairwise(levels)), view


def test_a_phone_shows_the_answer_at_once(visit, app):
    """The best answer of the example is in sight, without scrolling; more examples are beside the first."""
    visitor = visit(app)
    visitor.page.set_viewport_size(PHONE)
    visitor.open("query")
    box = visitor.page.get_by_test_id("stDataFrame").first.bounding_box()
    assert box["y"] + 2 * 35 <= PHONE["height"]  # the table's head and its first row
    examples = visitor.page.locator(".st-key-examples")
    assert examples.evaluate("one => one.scrollWidth > one.clientWidth && one.clientHeight < 60")


def test_words_of_the_lens_keep_their_width_on_a_phone(visit, app_of_demo: str):
    """The lens is as wide as its words need, and is scrolled; names of its rows stay at the edge of what is seen."""
    visitor = visit(app_of_demo)
    visitor.page.set_viewport_size(PHONE)
    visitor.open("query", open="lens")
    lens = visitor.page.locator('[class*="st-key-scroll_"]')
    expect(lens.locator(".js-plotly-plot")).to_be_visible()
    assert lens.evaluate("one => one.scrollWidth >= 900 && one.clientWidth < 390")
    name = lens.locator(".ytick text").first
    expect(name).to_be_visible()
    for share in (0, 0.5, 1):
        lens.evaluate("(one, share) => { one.scrollLeft = share * (one.scrollWidth - one.clientWidth); }", share)
        visitor.rest()
        assert lens.evaluate("one => one.scrollLeft") >= 400 * share
        assert -4 < name.bounding_box()["x"] - lens.bounding_box()["x"] < 60


def test_panels_are_two_in_a_row_on_a_phone_and_four_on_a_page(visit, app_of_demo: str):
    """None is cut, and all are drawn in full; a phone that is turned has the page's again."""
    visitor = visit(app_of_demo)
    visitor.page.set_viewport_size(PHONE)
    visitor.open("grammar")
    frame = visitor.page.locator('[class*="st-key-wide_"]')
    rows = """plot => {
        const lefts = Object.values(plot._fullLayout._plots).map(({ xaxis }) => Math.round(xaxis._offset));
        return new Set(lefts).size;
    }"""
    for width, across in ((390, 2), (1000, 4)):
        visitor.page.set_viewport_size({"width": width, "height": 844})
        visitor.page.wait_for_function(
            f"across => ({rows})(document.querySelector('[class*=st-key-wide_] .js-plotly-plot')) === across",
            arg=across,
        )
        visitor.rest()
        assert frame.evaluate("one => one.scrollWidth <= one.clientWidth && one.scrollHeight <= one.clientHeight + 1")


def test_narrow_window_shows_chosen_step_and_stacks_columns(visit, app_of_demo: str):
    """In maps of layers, which are wider, its column is in sight; maps of heads keep the width of their numbers."""
    visitor = visit(app_of_demo)
    visitor.page.set_viewport_size({"width": 700, "height": 900})
    visitor.open("attention", section="layers")
    grid = visitor.page.locator('[class*="st-key-scroll_"]')
    column = grid.locator(".shapelayer path").first
    expect(column).to_be_attached()
    visitor.rest()
    frame, box = grid.bounding_box(), column.bounding_box()
    assert frame["x"] <= box["x"] and box["x"] + box["width"] <= frame["x"] + frame["width"]
    visitor.open("attention", section="heads")
    plots = visitor.page.locator(".js-plotly-plot")
    expect(plots.nth(1)).to_be_visible()
    boxes = [plots.nth(i).bounding_box() for i in (0, 1)]
    assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"]
    assert all(box["width"] > 500 for box in boxes)
