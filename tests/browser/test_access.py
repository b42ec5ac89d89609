"""Tests of accessibility: violations that axe-core finds, use by keyboard, and layout on a phone."""

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
PICTURE = (930, 35 + 17)  # pixels: the picture in the first row of findings, in the fourth column of a wide page


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_no_serious_violation(visit, app, view: str):
    """This covers every page and section in the light and the dark theme."""
    visitor = visit(app)
    path, query = VIEWS[view]
    for scheme in ("light", "dark"):
        visitor.page.emulate_media(color_scheme=scheme)
        visitor.open(path, **query)
        violations = Axe().run(visitor.page).response["violations"]
        grave = [
            f"{scheme}, {violation['id']}: {node['html'][:160]}"
            for violation in violations
            if violation["impact"] in GRAVE
            for node in violation["nodes"]
        ]
        assert not grave, "\n".join(grave)


def test_findings_are_used_by_keyboard_and_pointer(visit, app):
    """The focused link of the navigation has an outline in the light and the dark theme.

    The table has a name, and Tab and Shift+Tab from a cell leave its cells. A click on a picture opens its page.
    """
    visitor = visit(app)
    for scheme in ("light", "dark"):
        visitor.page.emulate_media(color_scheme=scheme)
        visitor.open("findings")
        for _ in ("the link that skips it", "its first page"):
            visitor.page.keyboard.press("Tab")
        link = visitor.page.locator("[data-testid=stHeader] :is(a, button):focus-visible")
        expect(link).to_have_css("outline", re.compile("solid 2px"))
    table = visitor.page.get_by_test_id("stDataFrame").first
    canvas = table.locator("canvas").first
    for key in ("Tab", "Shift+Tab"):
        canvas.focus()
        visitor.page.keyboard.press(key)
        assert table.evaluate(
            "one => !one.contains(document.activeElement) || document.activeElement.tagName !== 'CANVAS'"
        )
    expect(visitor.page.locator("[aria-label='All findings']").first).to_be_attached()
    visitor.rest()
    table.click(position={"x": PICTURE[0], "y": PICTURE[1]})
    expect(visitor.heading("Tokens")).to_be_visible()  # it has the curves of the first finding


def test_heads_and_cells_are_chosen_by_keyboard(visit, app):
    """Arrow keys move through the small multiples; nothing is announced before the first key.

    In a heat map they announce cells without changing the step, and Enter chooses one. In a table Tab chooses nothing,
    and the first arrow key chooses a row.
    """
    visitor = visit(app)
    visitor.open("attention", section="maps", layer="1", head="1", step="8", pattern="entropy")
    heads = visitor.page.get_by_role("application", name="Attention maps of 2 layers")
    announced = visitor.page.locator(".grid").get_by_role("status")
    expect(announced).to_be_empty()
    heads.focus()
    visitor.page.keyboard.press("ArrowDown")
    expect(announced).to_contain_text("step 8; layer 2, head 1: largest weight at the steps shown")
    visitor.expect_query(layer="2", head="1", step="8")
    visitor.rest()
    heads.press("ArrowUp")
    visitor.expect_query(layer="1", head="1")
    visitor.page.get_by_role("radio", name="What a head does").click()
    visitor.expect_query(section="heads")
    visitor.rest()

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


def test_phone_shows_answer_findings_and_menu_that_closes(visit, app):
    """The first row of answers is on the screen without scrolling; examples are in one row, which scrolls sideways.

    Findings are a list, since the table would cut them. The labelled menu closes once a page is chosen.
    """
    visitor = visit(app)
    visitor.page.set_viewport_size(PHONE)
    visitor.open("query")
    box = visitor.page.get_by_test_id("stDataFrame").first.bounding_box()
    assert box["y"] + 2 * 35 <= PHONE["height"]  # the table's head and its first row
    examples = visitor.page.locator(".st-key-examples")
    assert examples.evaluate("one => one.scrollWidth > one.clientWidth && one.clientHeight < 60")
    choose_in_menu(visitor, "Findings")
    visitor.rest()
    rows = visitor.page.locator(".st-key-findings_list li")
    assert rows.count() == len(FINDINGS)
    assert rows.first.is_visible() and not visitor.page.get_by_test_id("stDataFrame").first.is_visible()
    choose_in_menu(visitor, "Knowledge")


def choose_in_menu(visitor, title: str) -> None:
    """Open the menu of a phone, which has a label, choose a page, and check that the menu closes."""
    menu = visitor.page.get_by_test_id("stExpandSidebarButton")
    labelled = """button => getComputedStyle(button, "::after").content === '"Menu"'"""
    visitor.page.wait_for_function(labelled, arg=menu.element_handle())  # the page's styles come with its content
    menu.click()
    visitor.page.get_by_test_id("stSidebarNavLink").filter(has_text=title).click()
    expect(visitor.heading(title)).to_be_visible()
    expect(visitor.page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")


@pytest.mark.slow
def test_no_page_scrolls_sideways_on_phone(visit, app):
    """Every page and section fits the width of the screen, as does the reading of the time bar.

    Headings begin with h1 and go down one level at a time.
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


@pytest.mark.slow
def test_lens_scrolls_on_phone_beside_names_of_rows(visit, app_of_demo: str):
    """The lens is as wide as its words need, and the names of its rows stay at the edge of the visible part."""
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


@pytest.mark.slow
def test_panels_are_two_in_row_on_phone_and_four_on_wide_page(visit, app_of_demo: str):
    """No panel is cut off, also after the width has changed, as when a phone is turned."""
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


@pytest.mark.slow
def test_narrow_window_shows_chosen_step_and_stacks_columns(visit, app_of_demo: str):
    """Maps of layers scroll to the step's column; heat maps of heads are stacked, and wide enough for their numbers."""
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
