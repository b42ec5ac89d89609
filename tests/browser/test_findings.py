"""The Findings page in a browser: a small picture leads to its page, and the time bar names the phases of a run."""

import re
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from embryo_core import open as open_run
from embryo_core.curves.phases import phases_of_log
from tests.demo import PATH

CELL = (930, 35 + 17)  # pixels: within the first row of the fourth column, the picture, on a wide page


def test_a_click_on_a_picture_opens_its_page(visit, app):
    """The first finding's curves are those of Tokens."""
    visitor = visit(app)
    visitor.open("findings")
    table = visitor.page.get_by_test_id("stDataFrame").first
    table.click(position={"x": CELL[0], "y": CELL[1]})
    expect(visitor.heading("Tokens")).to_be_visible()


@pytest.mark.parametrize("width", [pytest.param(1400, marks=pytest.mark.slow), 1024])
def test_the_time_bar_names_phases_where_there_is_room(visit, app_of_demo: str, width: int):
    """All phases have their stretch; names do not run into each other, and each is on the screen.

    The bar of a phone has no room to draw them, and names that of the step to screen readers.
    """
    visitor = visit(app_of_demo)
    visitor.page.set_viewport_size({"width": width, "height": 900})
    visitor.open("findings", scale="log", step="100000")
    phases = phases_of_log(open_run(PATH).log())
    expect(visitor.page.locator(".bar .phase rect")).to_have_count(len(phases))
    names = visitor.page.locator(".bar .phase text")
    expect(names.filter(has_text="plateau").first).to_be_visible()
    boxes = sorted((one.bounding_box() for one in names.all()), key=lambda box: box["x"])
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
    assert all(left["x"] + left["width"] <= right["x"] for left, right in pairwise(boxes))
    visitor.page.set_viewport_size({"width": 390, "height": 900})
    visitor.open("findings", scale="log", step="100000")
    expect(visitor.page.locator(".bar .phase")).to_have_count(len(phases))
    expect(visitor.page.locator(".bar .phase").locator("visible=true")).to_have_count(0)
    assert visitor.page.locator(".bar").bounding_box()["height"] == 64
    expect(visitor.page.locator(".bar .track")).to_have_attribute("aria-valuetext", re.compile(phases[-1].name))
