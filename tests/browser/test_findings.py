"""Tests of the Findings page in a browser: its pictures, and the phases that the time bar names."""

import re
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from embryo_core import open as open_run
from embryo_core.curves.phases import phases_of_log
from tests.demo import PATH

CELL = (930, 35 + 17)  # pixels, on a wide page: in the first row and the fourth column, which has the picture


def test_click_on_picture_opens_its_page(visit, app):
    """The first finding's curves are on the Tokens page."""
    visitor = visit(app)
    visitor.open("findings")
    table = visitor.page.get_by_test_id("stDataFrame").first
    table.click(position={"x": CELL[0], "y": CELL[1]})
    expect(visitor.heading("Tokens")).to_be_visible()


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
