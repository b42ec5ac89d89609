"""Tests of the Attention page in a browser: its sections, and the behaviour of heads."""

import csv
import io

import pytest
from playwright.sync_api import Locator, expect

SECTIONS = {"maps": "Averaged maps", "heads": "What a head does", "sentence": "Your sentence"}


def figure(visitor, number: int) -> Locator:
    """Return the figure of the page with this number, from 0."""
    return visitor.page.locator(".js-plotly-plot").nth(number)


def click_cell(visitor, number: int, layer: int, head: int) -> None:
    """Click a cell of a figure of layers by heads (2 by 2) once it answers the pointer."""
    box = figure(visitor, number).locator(".nsewdrag.drag").bounding_box()
    x = box["x"] + box["width"] * (2 * head - 1) / 4
    y = box["y"] + box["height"] * (2 * layer - 1) / 4
    visitor.point_at(lambda: (x, y), figure(visitor, number).locator(".hoverlayer"), f"layer {layer}, head {head}")
    visitor.page.mouse.click(x, y)


def downloaded_rows(visitor) -> list[dict[str, str]]:
    """Return the rows of the CSV that the first figure saves."""
    menu = visitor.files()
    with visitor.page.expect_download() as download:
        menu.get_by_role("button", name="CSV").click()
    return list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8"))))


def test_sections_are_kept_in_url(visit, app):
    """Each section opens by its button, and the last one opens again from its link."""
    visitor = visit(app)
    visitor.open("attention")
    for name in ("heads", "sentence", "maps", "heads"):
        visitor.page.get_by_role("radio", name=SECTIONS[name]).click()
        visitor.expect_query(section=name)
        visitor.settle()
    visitor.open_link(visitor.page.url)
    expect(visitor.page.get_by_role("radio", name=SECTIONS["heads"])).to_be_checked()
    expect(figure(visitor, 2)).to_be_visible()


@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.slow)], ids=("at a step", "since when"))
def test_click_on_cell_chooses_its_head(visit, app, number: int):
    """Both figures of layers by heads answer clicks."""
    visitor = visit(app)
    visitor.open("attention", section="heads", pattern="entropy", layer="1", head="1")
    expect(figure(visitor, 2)).to_be_visible()
    click_cell(visitor, number, layer=2, head=1)
    visitor.expect_query(layer="2", head="1", section="heads", pattern="entropy")
    expect(visitor.page.get_by_role("heading", name="All patterns of layer 2, head 1")).to_be_visible()
    visitor.settle()


def test_section_follows_time_bar(visit, app):
    """Heading and download have the values of the chosen step."""
    visitor = visit(app)
    visitor.open("attention", section="heads", pattern="previous")
    last = downloaded_rows(visitor)
    visitor.page.locator(".bar .track").press("Home")
    visitor.expect_query(step="0")
    expect(visitor.page.get_by_role("heading", name="Previous token, step 0")).to_be_visible()
    visitor.settle()
    first = downloaded_rows(visitor)
    assert {row["step"] for row in last} == {"16"} and {row["step"] for row in first} == {"0"}
    assert [(row["layer"], row["head"]) for row in first] == [("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")]
    assert [row["value"] for row in first] != [row["value"] for row in last]
